"""A batch of graphs, as it comes or pooled: where each one's nodes start, and the neighbors of each node.

A pooled graph is again a graph, so layers and poolings see one record, block after block. What they may ask of it:

    propagate             x + A x               A: [n, n] of each graph, never stored; A_ij: the weight of j for i
    degrees               1 + sum_j abs(A_ij)   absolute, for weights may be negative
    propagate_normalized  D^(-1/2) (A + I) D^(-1/2) x
"""

from typing import NamedTuple

import torch
from torch import Tensor

from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import Neighbors, aggregate
from sopool.ops.segment.first_order import segment_sizes
from sopool.ops.segment.segments import owners


class GraphStructure(NamedTuple):
    """G graphs side by side."""

    ptr: Tensor
    """Where each one's nodes start [G + 1]."""
    neighbors: Neighbors | Dense


def propagate(x: Tensor, neighbors: Neighbors | Dense) -> Tensor:
    """X + A X: [n, f] -> [n, f]."""
    return aggregate(x, neighbors, "sum")


def degrees(x: Tensor, neighbors: Neighbors | Dense) -> Tensor:
    """Return 1 + the absolute weights of each node's neighbors [n, 1], in the type of x, for half types in float32."""
    return neighbors.degrees if isinstance(neighbors, Dense) else segment_sizes(neighbors.ptr, like=x)


def propagate_normalized(x: Tensor, neighbors: Neighbors | Dense) -> Tensor:
    """D^(-1/2) (A + I) D^(-1/2) X, with absolute degrees: [n, f] -> [n, f]."""
    share = degrees(x, neighbors).rsqrt().to(x.dtype)
    return share * propagate(share * x, neighbors)


def squared_weights(graphs: GraphStructure, like: Tensor) -> Tensor:
    """sum_ij A_ij^2 of each graph [G]. An edge given m times has the weight m."""
    if isinstance(graphs.neighbors, Dense):
        return graphs.neighbors.weights.square().sum((1, 2))
    ends = graphs.neighbors.ptr
    nodes = graphs.neighbors.nodes
    entry = torch.arange(nodes.numel(), device=nodes.device)
    target = owners(ends, nodes.numel())
    # The lists are in order, so equal entries follow one another: 1 + 3 + 5 + ... adds up to m^2.
    first = torch.ones_like(nodes, dtype=torch.bool)
    first[1:] = (nodes[1:] != nodes[:-1]) | (target[1:] != target[:-1])
    begins = torch.where(first, entry, 0).cummax(0).values if nodes.numel() else entry
    # Every node is in its own list once more than its loops say: (c - 1)^2 = c^2 - 2 c + 1.
    terms = 2 * (entry - begins) + 1 - 2 * (nodes == target)
    running = torch.cat([terms.new_zeros(1), terms.cumsum(0)])
    totals = running[ends[graphs.ptr]].diff() + graphs.ptr.diff()
    return totals.to(like.dtype)
