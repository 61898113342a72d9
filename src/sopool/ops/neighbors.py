"""Message passing: each node hears its neighbours, and itself.

Lists of neighbours, not a matrix and not a scatter: every node's sum is taken in one place and in one order, so it
depends on nothing but the graph, and needs no memory per edge.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops.dense import Dense

if TYPE_CHECKING:
    from sopool.ops.clusters import Clusters

How = Literal["sum", "mean", "max"]


class Neighbors(NamedTuple):
    """Whom each node hears: ``nodes[ptr[i]:ptr[i + 1]]``, itself among them, so no list is empty."""

    ptr: Tensor
    """[n + 1], int64."""
    nodes: Tensor
    """[e], int64."""
    heard_by: tuple[Tensor, Tensor]
    """(ptr, nodes) of the reverse: by whom each node is heard. For undirected graphs the same two tensors."""
    clusters: Union["Clusters", None] = None
    """How the nodes fall into clusters, for a pooling that is told beforehand."""


def aggregate(x: Tensor, neighbors: Neighbors | Dense, how: How) -> Tensor:
    """The sum, mean or largest value over each node's list: [n, f] -> [n, f]."""
    if isinstance(neighbors, Dense):
        return neighbors.aggregate(x, how)
    if how == "max":
        rows = x.index_select(0, neighbors.nodes)
        largest: Tensor = torch.segment_reduce(rows, "max", offsets=neighbors.ptr, unsafe=True)
        return largest
    total = _sum(x, neighbors)
    return total if how == "sum" else total / neighbors.ptr.diff().unsqueeze(1).to(x.dtype)


def neighbors_of(edge_index: Tensor, num_nodes: int) -> Neighbors:
    """The lists of edges [2, E] from a source to a target, which hears it; an edge given twice is heard twice."""
    loops = torch.arange(num_nodes, device=edge_index.device)
    source, target = torch.cat([edge_index, loops.expand(2, -1)], dim=1)
    lists = []
    for hearer, heard in ((target, source), (source, target)):
        order = (hearer * num_nodes + heard).argsort()
        counts = torch.bincount(hearer, minlength=num_nodes)
        lists.append((torch.cat([counts.new_zeros(1), counts.cumsum(0)]), heard[order]))
    return Neighbors(*lists[0], lists[1])


class _Sum(torch.autograd.Function):
    """The gradient is the same sum over the reverse lists: no scatter in either direction."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, neighbors: Neighbors) -> Tensor:
        ctx.heard_by = neighbors.heard_by
        return _bag(x, neighbors.ptr, neighbors.nodes)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _bag(gradient, *ctx.heard_by), None


_sum: Callable[[Tensor, Neighbors], Tensor] = _Sum.apply


def _bag(x: Tensor, ptr: Tensor, nodes: Tensor) -> Tensor:
    return F.embedding_bag(nodes, x, ptr, mode="sum", include_last_offset=True)
