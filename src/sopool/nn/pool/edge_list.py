"""The edges of a batch of graphs in PyG's format: row 0 has the sources, row 1 the targets, which aggregate them."""

import torch
from torch import Tensor

from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.neighbors import Adjacency
from sopool.ops.segment.segments import owners


def all_pairs(graphs: int, nodes: int, device: torch.device) -> Tensor:
    """Return all pairs (i, j) of nodes of the same graph ``[2, G * K * K]``, row by row, for graphs of K nodes."""
    node = torch.arange(graphs * nodes, device=device).view(graphs, nodes)
    shape = (graphs, nodes, nodes)
    return torch.stack([node.unsqueeze(2).expand(shape).reshape(-1), node.unsqueeze(1).expand(shape).reshape(-1)])


def list_edges(neighbors: Adjacency) -> Edges:
    """Return the edges with their weights: all pairs of nodes for dense graphs, otherwise the edges that there are."""
    if isinstance(neighbors, Edges):
        return neighbors
    if isinstance(neighbors, Dense):
        graphs, nodes, _ = neighbors.weights.shape
        return Edges(all_pairs(graphs, nodes, neighbors.weights.device), neighbors.weights.mT.reshape(-1))
    entry = torch.arange(neighbors.nodes.numel(), device=neighbors.nodes.device)
    target = owners(neighbors.ptr, neighbors.nodes.numel())
    to_itself = neighbors.nodes == target
    before = torch.cat([neighbors.ptr.new_zeros(1), to_itself.cumsum(0)])
    # Every node is listed once among its own neighbors in addition to its self-loops: the first such entry is no edge.
    own = to_itself & (before[:-1] == before[neighbors.ptr[target]])
    return Edges(torch.stack([neighbors.nodes, target])[:, ~own & (entry < neighbors.ptr[-1])])
