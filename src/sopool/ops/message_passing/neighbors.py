"""Message passing: each node aggregates its neighbors, and itself.

Lists of neighbours, not a matrix and not a scatter: every node's sum is taken in one place and in one order, so it
depends on nothing but the graph, and needs no memory per edge.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import once_differentiable, transformed
from sopool.ops.message_passing.dense import Dense
from sopool.ops.segment.first_order import segment_amax, segment_sizes
from sopool.ops.segment.segments import owners
from sopool.ops.segment.torch_backend import widen

if TYPE_CHECKING:
    from sopool.ops.message_passing.clusters import Clusters

How = Literal["sum", "mean", "max"]


class EdgeLabels(NamedTuple):
    """The label of the edge to each member of the lists: l of model m is m kinds + l."""

    codes: Tensor
    """Beside ``nodes`` [e], int64; -1 for the node itself, which takes no edge."""
    transposed: Tensor
    """Beside the nodes of the reverse [e], int64."""
    kinds: int
    """How many labels there are, the one for unknown ones included."""


class Neighbors(NamedTuple):
    """The neighbors of each node, ``nodes[ptr[i]:ptr[i + 1]]``, itself among them; only a spare row has none."""

    ptr: Tensor
    """[n + 1], int64."""
    nodes: Tensor
    """[e], int64."""
    transposed: tuple[Tensor, Tensor]
    """(ptr, nodes) of the reverse: the nodes that aggregate each node. For undirected graphs the same two tensors."""
    clusters: Union["Clusters", None] = None
    """How the nodes fall into clusters, for a pooling that is told beforehand."""
    labels: EdgeLabels | None = None
    """For a network that asks for them."""


def aggregate(x: Tensor, neighbors: Neighbors | Dense, how: How) -> Tensor:
    """The sum, mean or largest value over each node's list, zero over an empty one: [n, f] -> [n, f]."""
    if isinstance(neighbors, Dense):
        return neighbors.aggregate(x, how)
    if how == "max":
        return _max(x, neighbors)
    if how == "mean":
        return (_total(widen(x), neighbors) / segment_sizes(neighbors.ptr, like=x)).to(x.dtype)
    return _total(x, neighbors)


def neighbors_of(edge_index: Tensor, num_nodes: int) -> Neighbors:
    """The lists of edges [2, E] from a source to a target, which aggregates it; an edge given twice counts twice."""
    loops = torch.arange(num_nodes, device=edge_index.device)
    source, target = torch.cat([edge_index, loops.expand(2, -1)], dim=1)
    lists = []
    for receiver, sender in ((target, source), (source, target)):
        order = (receiver * num_nodes + sender).argsort()
        counts = torch.bincount(receiver, minlength=num_nodes)
        lists.append((torch.cat([counts.new_zeros(1), counts.cumsum(0)]), sender[order]))
    return Neighbors(*lists[0], lists[1])


class _Sum(torch.autograd.Function):
    """The gradient is the same sum over the reverse lists, and so is that one's: no scatter in either direction."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, lists: tuple[Tensor, Tensor], reverse: tuple[Tensor, Tensor]) -> Tensor:
        ctx.lists = lists
        ctx.reverse = reverse
        return _list_sum(x, *lists)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _sum(gradient, ctx.reverse, ctx.lists), None, None


class _Max(torch.autograd.Function):
    """Nodes that share the largest value share the gradient."""

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
_max_by_kernel: Callable[[Tensor, Neighbors], Tensor] = _Max.apply


def _total(x: Tensor, neighbors: Neighbors) -> Tensor:
    if transformed():
        return list_total(x.index_select(0, neighbors.nodes), neighbors.ptr)
    return _sum(x, (neighbors.ptr, neighbors.nodes), neighbors.transposed)


def _max(x: Tensor, neighbors: Neighbors) -> Tensor:
    if backends.serves(x) and not transformed():
        return _max_by_kernel(x, neighbors)
    rows = x.index_select(0, neighbors.nodes)
    if transformed():
        return _shared_largest(rows, neighbors.ptr)
    largest: Tensor = torch.segment_reduce(rows, "max", offsets=neighbors.ptr, unsafe=True)
    return largest


def _list_sum(x: Tensor, ptr: Tensor, nodes: Tensor) -> Tensor:
    if backends.serves(x):
        from sopool.ops.triton import neighbors as kernels

        return kernels.list_sum(x, ptr, nodes)
    return F.embedding_bag(nodes, x, ptr, mode="sum", include_last_offset=True)


def _shared_largest(rows: Tensor, ptr: Tensor) -> Tensor:
    """The mean of those that are the largest of each list, which is the largest: [e, f] -> [n, f]."""
    largest = F.pad(segment_amax(rows.detach(), ptr), (0, 0, 0, 1))
    is_largest = (rows == largest.index_select(0, owners(ptr, len(rows)))) | rows.isnan()
    return list_total(rows.where(is_largest, 0), ptr) / list_total(is_largest.to(rows.dtype), ptr).clamp(min=1)


def list_total(values: Tensor, ptr: Tensor) -> Tensor:
    """The sum over each list in operators that every transform knows, so by a scatter: [e, f] -> [n, f]."""
    capacity = values.new_zeros(ptr.shape[0], values.shape[1])
    return capacity.index_add(0, owners(ptr, len(values)), values)[:-1]
