"""The entries of neighbor lists as rows: read a row for each entry, and add up the rows of the entries.

The two operations are adjoint, so each is the gradient of the other, and there are derivatives of every order. Neither
needs a scatter operation: each sum is computed in one place and in a fixed order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops._autograd import transformed
from sopool.ops.segment import standard
from sopool.ops.segment.segments import owners


class Places(NamedTuple):
    """The node that each of L entries belongs to, for one of N nodes each."""

    nodes: Tensor
    """The node of each entry ``[L]``."""
    ptr: Tensor
    """The position in ``order`` of each node's first entry ``[N + 1]``."""
    order: Tensor
    """The entries, node by node ``[L]``."""

    @classmethod
    def in_lists(cls, ptr: Tensor, entries: int) -> "Places":
        """Return the node whose list each entry is in, for lists that start at ``ptr``."""
        return cls(owners(ptr, entries), ptr, torch.arange(entries, device=ptr.device))


def gather(x: Tensor, places: Places) -> Tensor:
    """Return the row of the node of each entry: ``[N, F]`` to ``[L, F]``."""
    return x.index_select(0, places.nodes) if transformed() else _gather(x, places)


def collect(rows: Tensor, places: Places) -> Tensor:
    """Return the sum over the entries of each node: ``[L, F]`` to ``[N, F]``."""
    if transformed():
        return standard.total(rows, places.nodes, places.ptr.shape[0])[:-1]
    return _collect(rows, places)


def list_total(values: Tensor, ptr: Tensor) -> Tensor:
    """Return the sum over each list by a scatter, which supports every transform: ``[L, F]`` to ``[N, F]``."""
    return standard.total(values, owners(ptr, values.shape[0]), ptr.shape[0])[:-1]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return x.index_select(0, places.nodes)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _collect(gradient, ctx.places), None


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return F.embedding_bag(places.order, rows, places.ptr, mode="sum", include_last_offset=True)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _gather(gradient, ctx.places), None


_gather: Callable[[Tensor, Places], Tensor] = _Gather.apply
_collect: Callable[[Tensor, Places], Tensor] = _Collect.apply
