"""Attentional second-order pooling of small batches in plain eager code on a CPU, with one query.

There, calls take longer than the work. PyTorch's own operators therefore replace a function with a gradient of its own,
or with Numba, one loop over the rows for each direction. Both read the segment of each row, in any order, and add up
the rows of a segment in the order in which they come.
"""

from typing import Any

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import apply_directly, is_intercepted
from sopool.ops.numba import dispatch as compiled
from sopool.ops.segment.gram import check_alike
from sopool.ops.segment.segments import check_index, check_index_values, count_segments
from sopool.ops.segment.size_classes import SMALL, may_pad
from sopool.ops.segment.torch_backend import HALF


def is_small(x: Tensor, query: Tensor, bias: Tensor | None, positions: Tensor) -> bool:
    """Return whether :func:`attend_rows` applies: in a bank and under autocast, it would round differently."""
    return (
        not is_intercepted((x, query, bias, positions))  # first, as a trace must not depend on sizes
        and x.is_cpu
        and x.numel() <= SMALL
        and x.dtype not in HALF
        and may_pad()
        and not torch.is_autocast_enabled("cpu")
        and backends.chosen().name != "triton"
    )


def attend_by_index(
    x: Tensor, query: Tensor, index: Tensor, dim_size: int | None, bias: Tensor | None = None
) -> Tensor | None:
    """Return ``X_g^T (X_g query + bias)`` ``[G, F]`` for one query ``[F, 1]``; None unless :func:`is_small`."""
    if not is_small(x, query, bias, index):
        return None
    check_alike("x", x, "query", query)
    index = check_index(index, x.shape[0], x.device, dim_size)
    size = count_segments(index) if dim_size is None else dim_size
    if size <= 0:  # PyTorch does not look at the index then
        check_index_values(index, size)
    return attend_rows(x, query, bias, index, size)


def attend_rows(x: Tensor, query: Tensor, bias: Tensor | None, index: Tensor, size: int) -> Tensor:
    """Return ``X_g^T (X_g query + bias)`` ``[G, F]``, and check the values of ``index`` by the way."""
    try:
        if compiled.serves(x):
            pooled: Tensor = _by_loops(x, query, bias, index, size)
            return pooled
        score = x.mm(query) if bias is None else torch.addmm(bias, x, query)
        return x.new_zeros(size, x.shape[1]).index_add_(0, index, x * score)
    except (IndexError, RuntimeError):
        check_index_values(index, size)
        raise


class _AttendByLoops(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, query: Tensor, bias: Tensor | None, index: Tensor, size: int) -> Tensor:
        pooled, score = compiled.attend_rows(x, query, bias, index, size)
        ctx.save_for_backward(x, query, bias, index, score)
        return pooled

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, query, bias, index, score = ctx.saved_tensors
        if torch.is_grad_enabled() or is_intercepted((gradient,)):
            return *_gradients(x, query, bias, index, gradient), None, None
        return *compiled.attend_rows_backward(x, query, bias, index, score, gradient), None, None


def _gradients(
    x: Tensor, query: Tensor, bias: Tensor | None, index: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the gradients of ``x``, ``query`` and ``bias`` by operators that can be differentiated again."""
    spread = gradient.index_select(0, index)
    d_score = (spread * x).sum(1, keepdim=True)
    score = x @ query if bias is None else x @ query + bias
    return spread * score + d_score @ query.t(), x.t() @ d_score, None if bias is None else d_score.sum(0)


_by_loops = apply_directly(_AttendByLoops)
