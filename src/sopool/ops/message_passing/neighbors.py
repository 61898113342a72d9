"""Message passing: each node aggregates its neighbors and itself.

Graphs are stored as lists of neighbors, not as matrices, and sums need no scatter operation. Each sum is computed in
one place and in a fixed order, so it depends on the graph only and needs no memory per edge. With weights w of edges:

    sum   x_i + sum_j w_ij x_j
    mean  the sum, divided by the number of neighbors and the node itself
    max   the maximum of x_i and all w_ij x_j, for each column
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import once_differentiable, transformed
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.entries import Places, collect, gather, list_total
from sopool.ops.segment import standard
from sopool.ops.segment.first_order import segment_amax, segment_sizes
from sopool.ops.segment.standard import exporting
from sopool.ops.segment.torch_backend import widen

NOTHING: Mapping[str, Any] = MappingProxyType({})

How = Literal["sum", "mean", "max"]


class EdgeLabels(NamedTuple):
    """The label of the edge to each list entry; label l of model m has the code ``m * kinds + l``."""

    codes: Tensor
    """The codes for ``Neighbors.nodes`` ``[L]``, int64; -1 for the node itself."""
    transposed: Tensor
    """The codes for the nodes of the transposed lists ``[L]``, int64."""
    kinds: int
    """The number of labels, including the one for unknown labels; or the number of combinations."""
    combinations: Tensor | None = None
    """With several columns of categories, the C categories that each label stands for ``[kinds, C]``, int64, numbered
    across the columns, each of which ends with its category for unknown values. None for a single column."""


class EdgeValues(NamedTuple):
    """Numbers of the edge to each list entry, for networks that use them."""

    order: Tensor
    """The position in ``Neighbors.nodes`` of each entry of the transposed lists ``[L]``, int64."""
    attributes: Tensor | None = None
    """The D attributes of the edge to each entry of ``Neighbors.nodes`` ``[L, D]``; 0 for the node itself."""
    weights: Tensor | None = None
    """The weight of the edge to each entry of ``Neighbors.nodes`` ``[L]``; 1 for the node itself."""


class Neighbors(NamedTuple):
    """The list of neighbors of each node i, ``nodes[ptr[i]:ptr[i + 1]]``, including i; spare rows have empty lists."""

    ptr: Tensor
    """The position at which each list starts ``[N + 1]``, int64."""
    nodes: Tensor
    """The entries of all lists ``[L]``, int64."""
    transposed: tuple[Tensor, Tensor]
    """``(ptr, nodes)`` of the transposed lists: the nodes that aggregate each node. The same tensors for undirected
    graphs."""
    labels: EdgeLabels | None = None
    """The labels of the edges, for a network that uses them."""
    values: EdgeValues | None = None
    """The attributes and weights of the edges, for a network that uses them."""
    extras: Mapping[str, Any] = NOTHING
    """What else was computed of the graphs in advance, by name: ``"clusters"`` for a pooling, see
    :class:`~sopool.ops.message_passing.clusters.Clusters`, or ``"pairs"`` for a readout, see
    :class:`~sopool.ops.Pairs`."""


Adjacency = Neighbors | Edges | Dense
"""The neighbors of each node, in one of three forms."""


def aggregate(x: Tensor, neighbors: Adjacency, how: How, weights: Tensor | None = None) -> Tensor:
    """Return the sum, mean or maximum over the list of each node, zero for an empty list.

    Args:
        x: Node features ``[N, F]``.
        neighbors: The neighbors of each node.
        how: ``"sum"``, ``"mean"`` or ``"max"``.
        weights: A factor of each list entry ``[L]``, for lists with :class:`EdgeValues`. Default: None, which means 1.

    Returns:
        Node features ``[N, F]``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import aggregate, neighbors_of
        >>> graph = neighbors_of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)  # the path 0 - 1 - 2
        >>> aggregate(torch.tensor([[1.0], [2.0], [4.0]]), graph, "sum").flatten()
        tensor([3., 7., 6.])
    """
    if not isinstance(neighbors, Neighbors):
        return neighbors.aggregate(x, how)
    if how == "max":
        return _max(x, neighbors) if weights is None else _largest(_messages(x, neighbors, weights), neighbors.ptr)
    if how == "mean":
        return (_total(widen(x), neighbors, weights) / segment_sizes(neighbors.ptr, like=x)).to(x.dtype)
    return _total(x, neighbors, weights)


def senders(neighbors: Neighbors) -> Places:
    """Return the neighbor that each list entry is, for lists with :class:`EdgeValues`."""
    assert neighbors.values is not None
    return Places(neighbors.nodes, neighbors.transposed[0], neighbors.values.order)


def neighbors_of(
    edge_index: Tensor,
    num_nodes: int,
    edge_labels: Tensor | None = None,
    kinds: int = 0,
    edge_attr: Tensor | None = None,
    edge_weight: Tensor | None = None,
) -> Neighbors:
    """Return the lists of neighbors of a graph or of a batch of graphs, each node included in its own list.

    Args:
        edge_index: Edges ``[2, E]`` from sources to targets, as in PyG. The target aggregates the source. An edge that
            occurs twice counts twice.
        num_nodes: The number of nodes N.
        edge_labels: The label of each edge ``[E]``, int64 from 0 to ``kinds - 1``. Default: None, edges have no labels.
        kinds: The number of labels, including the one for unknown labels. Default: 0.
        edge_attr: The attributes of each edge ``[E, D]``. Default: None, edges have no attributes.
        edge_weight: The weight of each edge ``[E]``. Default: None, edges have no weights.

    Returns:
        The lists, with L = E + N entries.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> graph = neighbors_of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)  # the path 0 - 1 - 2
        >>> graph.ptr, graph.nodes
        (tensor([0, 2, 5, 7]), tensor([0, 1, 0, 1, 2, 1, 2]))
    """
    loops = torch.arange(num_nodes, device=edge_index.device)
    source, target = torch.cat([edge_index, loops.expand(2, -1)], dim=1)
    ptr, order = _sort_edges(target, source, num_nodes)
    back_ptr, back = _sort_edges(source, target, num_nodes)

    def along(edges: Tensor | None, own: float) -> Tensor | None:
        """Return what edges have along the lists, with a value for the nodes themselves."""
        return None if edges is None else torch.cat([edges, edges.new_full((num_nodes, *edges.shape[1:]), own)])[order]

    labels = values = None
    if edge_labels is not None:
        codes = torch.cat([edge_labels, torch.full_like(loops, -1)])
        labels = EdgeLabels(codes[order], codes[back], kinds)
    if edge_attr is not None or edge_weight is not None:
        values = EdgeValues(order.argsort()[back], along(edge_attr, 0), along(edge_weight, 1))
    return Neighbors(ptr, source[order], (back_ptr, target[back]), labels=labels, values=values)


def _sort_edges(receiver: Tensor, sender: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Return the position of each receiver's first edge, and the edges sorted by receiver and then by sender."""
    counts = standard.count(receiver, num_nodes) if exporting() else torch.bincount(receiver, minlength=num_nodes)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), (receiver * num_nodes + sender).argsort()


class _Sum(torch.autograd.Function):
    """A sum whose gradient is the same sum over the transposed lists, so that neither direction needs a scatter."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, lists: tuple[Tensor, Tensor], reverse: tuple[Tensor, Tensor]) -> Tensor:
        ctx.lists = lists
        ctx.reverse = reverse
        return _list_sum(x, *lists)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _sum(gradient, ctx.reverse, ctx.lists), None, None


class _WeightedSum(torch.autograd.Function):
    """A weighted sum, whose gradient is a weighted sum over the transposed lists. Weights have no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, neighbors: Neighbors, weights: Tensor) -> Tensor:
        ctx.neighbors = neighbors
        ctx.weights = weights
        return _list_sum(x, neighbors.ptr, neighbors.nodes, weights)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _weighted_sum_backward(gradient, ctx.neighbors, ctx.weights), None, None


class _WeightedSumBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor, neighbors: Neighbors, weights: Tensor) -> Tensor:
        ctx.neighbors = neighbors
        ctx.weights = weights
        assert neighbors.values is not None
        return _list_sum(gradient, *neighbors.transposed, weights.index_select(0, neighbors.values.order))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _weighted_sum(gradient, ctx.neighbors, ctx.weights), None, None


class _Max(torch.autograd.Function):
    """A maximum whose gradient is divided equally among the nodes that attain it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, neighbors: Neighbors) -> Tensor:
        from sopool.ops.triton import neighbors as kernels

        largest, shared = kernels.list_max(x, neighbors.ptr, neighbors.nodes)
        ctx.save_for_backward(x, largest, shared)
        ctx.transposed = neighbors.transposed
        return largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        from sopool.ops.triton import neighbors as kernels

        x, largest, shared = ctx.saved_tensors
        return kernels.list_max_backward(x, largest, gradient / shared.clamp(min=1), ctx.transposed), None


_sum: Callable[[Tensor, tuple[Tensor, Tensor], tuple[Tensor, Tensor]], Tensor] = _Sum.apply
_weighted_sum: Callable[[Tensor, Neighbors, Tensor], Tensor] = _WeightedSum.apply
_weighted_sum_backward: Callable[[Tensor, Neighbors, Tensor], Tensor] = _WeightedSumBackward.apply
_max_by_kernel: Callable[[Tensor, Neighbors], Tensor] = _Max.apply


def _total(x: Tensor, neighbors: Neighbors, weights: Tensor | None) -> Tensor:
    if weights is not None and (transformed() or weights.requires_grad):
        return collect(_messages(x, neighbors, weights), Places.in_lists(neighbors.ptr, neighbors.nodes.shape[0]))
    if weights is not None:
        return _weighted_sum(x, neighbors, weights.to(x.dtype))
    if transformed():
        return list_total(x.index_select(0, neighbors.nodes), neighbors.ptr)
    return _sum(x, (neighbors.ptr, neighbors.nodes), neighbors.transposed)


def _messages(x: Tensor, neighbors: Neighbors, weights: Tensor) -> Tensor:
    """Return the weighted features of all list entries: ``[N, F]``, ``[L]`` to ``[L, F]``."""
    return gather(x, senders(neighbors)) * weights.to(x.dtype).unsqueeze(1)


def _max(x: Tensor, neighbors: Neighbors) -> Tensor:
    if backends.serves(x) and not transformed():
        return _max_by_kernel(x, neighbors)
    rows = x.index_select(0, neighbors.nodes)
    if transformed():
        return _largest(rows, neighbors.ptr)
    largest: Tensor = torch.segment_reduce(rows, "max", offsets=neighbors.ptr, unsafe=True)
    return largest


def _list_sum(x: Tensor, ptr: Tensor, nodes: Tensor, weights: Tensor | None = None) -> Tensor:
    if backends.serves(x):
        from sopool.ops.triton import neighbors as kernels

        return kernels.list_sum(x, ptr, nodes, weights)
    return F.embedding_bag(nodes, x, ptr, mode="sum", include_last_offset=True, per_sample_weights=weights)


def _largest(rows: Tensor, ptr: Tensor) -> Tensor:
    """Return the largest entry of each list for each column: ``[L, F]`` to ``[N, F]``.

    Its gradient is divided equally among the entries that attain it, since it is computed as their mean.
    """
    largest = segment_amax(rows.detach(), ptr)
    if exporting():
        return largest
    places = Places.in_lists(ptr, rows.shape[0])
    is_largest = (rows == F.pad(largest, (0, 0, 0, 1)).index_select(0, places.nodes)) | rows.isnan()
    total = collect(widen(rows).where(is_largest, 0), places)
    return (total / collect(is_largest.to(total.dtype), places).clamp(min=1)).to(rows.dtype)
