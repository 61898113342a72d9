"""A batch of graphs, original or pooled: the boundaries of the graphs and the neighbors of each node.

A pooled graph is a graph again, so layers and poolings use one data structure in every block. Its operations, where
A_ij is the weight of node j for node i and A is never stored for sparse graphs:

    propagate             x + A x
    degrees               1 + sum_j abs(A_ij)   absolute values, since weights may be negative
    propagate_normalized  D^(-1/2) (A + I) D^(-1/2) x
"""

from typing import NamedTuple

import torch
from torch import Tensor

from sopool.ops.message_passing.neighbors import Adjacency, Neighbors, aggregate
from sopool.ops.segment import standard
from sopool.ops.segment.first_order import segment_sizes
from sopool.ops.segment.segments import owners


class GraphStructure(NamedTuple):
    """A batch of G graphs."""

    ptr: Tensor
    """The row at which the nodes of each graph start ``[G + 1]``."""
    neighbors: Adjacency
    """The neighbors of each node."""


def propagate(x: Tensor, neighbors: Adjacency) -> Tensor:
    """Return ``X + A X``, each node's features plus the weighted sum over its neighbors.

    Args:
        x: Node features ``[N, F]``.
        neighbors: The neighbors of each node.

    Returns:
        Node features ``[N, F]``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> from sopool.ops.message_passing.structure import propagate
        >>> graph = neighbors_of(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> propagate(torch.tensor([[1.0], [2.0]]), graph).flatten()
        tensor([3., 3.])
    """
    return aggregate(x, neighbors, "sum")


def degrees(x: Tensor, neighbors: Adjacency) -> Tensor:
    """Return the degree of each node, 1 + the sum of the absolute weights of its neighbors.

    Args:
        x: Rows ``[N, F]`` that determine the dtype of the result (float32 for half types).
        neighbors: The neighbors of each node.

    Returns:
        The degrees ``[N, 1]``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> from sopool.ops.message_passing.structure import degrees
        >>> graph = neighbors_of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> degrees(torch.ones(3, 1), graph).flatten()
        tensor([2., 3., 2.])
    """
    return segment_sizes(neighbors.ptr, like=x) if isinstance(neighbors, Neighbors) else neighbors.degrees(x)


def propagate_normalized(x: Tensor, neighbors: Adjacency) -> Tensor:
    """Return ``D^(-1/2) (A + I) D^(-1/2) X``, where D holds the :func:`degrees`.

    Args:
        x: Node features ``[N, F]``.
        neighbors: The neighbors of each node.

    Returns:
        Node features ``[N, F]``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> from sopool.ops.message_passing.structure import propagate_normalized
        >>> graph = neighbors_of(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> propagate_normalized(torch.ones(2, 1), graph).shape
        torch.Size([2, 1])
    """
    share = degrees(x, neighbors).rsqrt().to(x.dtype)
    return share * propagate(share * x, neighbors)


def squared_weights(graphs: GraphStructure, like: Tensor) -> Tensor:
    """Return the sum of all A_ij^2 of each graph; an edge that occurs m times has the weight m.

    Args:
        graphs: A batch of G graphs.
        like: Rows ``[N, F]`` that determine the dtype of the result for sparse graphs.

    Returns:
        The sums ``[G]``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> from sopool.ops.message_passing.structure import GraphStructure, squared_weights
        >>> edges = neighbors_of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> squared_weights(GraphStructure(torch.tensor([0, 3]), edges), like=torch.ones(3, 1))
        tensor([4.])
    """
    if not isinstance(graphs.neighbors, Neighbors):
        return graphs.neighbors.squared_weights(graphs.ptr, like)
    ends = graphs.neighbors.ptr
    nodes = graphs.neighbors.nodes
    entry = torch.arange(nodes.numel(), device=nodes.device)
    target = owners(ends, nodes.numel())
    # Lists are sorted, so equal entries are consecutive, and m of them add up to 1 + 3 + 5 + ... = m^2.
    first = torch.ones_like(nodes, dtype=torch.bool)
    first[1:] = (nodes[1:] != nodes[:-1]) | (target[1:] != target[:-1])
    run = first.cumsum(0) - 1
    begins = standard.total(torch.where(first, entry, 0), run, entry.shape[0]).index_select(0, run)
    # A node occurs in its own list once more than it has self-loops: (c - 1)^2 = c^2 - 2 c + 1.
    terms = 2 * (entry - begins) + 1 - 2 * (nodes == target)
    running = torch.cat([terms.new_zeros(1), terms.cumsum(0)])
    totals = running[ends[graphs.ptr]].diff() + graphs.ptr.diff()
    return totals.to(like.dtype)
