"""Concatenation of columns without a copy, for matrices that were allocated next to each other."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from sopool.ops._autograd import transformed

ALIGNED = 16


def side_by_side(rows: int, widths: Sequence[int], like: Tensor) -> list[Tensor]:
    """Allocate matrices ``[rows, width]`` whose columns are adjacent in memory, for :func:`join`.

    The rows of the second matrix start at a multiple of ``ALIGNED`` values, and so do those of the others if the widths
    allow it, so that several values are loaded or stored at a time.
    """
    lead = -widths[0] % ALIGNED
    whole = like.new_empty(rows, -(-(lead + sum(widths)) // ALIGNED) * ALIGNED)
    firsts = accumulate(widths, initial=lead)
    return [_part(whole, first, width) for first, width in zip(firsts, widths, strict=False)]


def join(parts: Sequence[Tensor]) -> Tensor:
    """Return ``torch.cat(parts, dim=1)``, without a copy if the parts are adjacent in memory."""
    if len(parts) == 1:
        return parts[0]
    if not transformed() and _are_side_by_side(parts):
        return _join(*parts)
    return torch.cat(list(parts), dim=1)


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *parts: Tensor) -> Tensor:
        ctx.widths = [part.shape[1] for part in parts]
        return _part(parts[0], 0, sum(ctx.widths))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        parts: tuple[Tensor, ...] = gradient.split(ctx.widths, dim=1)
        return parts


_join: Callable[..., Tensor] = _Join.apply


def _part(whole: Tensor, first: int, width: int) -> Tensor:
    """Return columns that share memory but are no view to autograd, for which a write to a view changes the whole."""
    offset = whole.storage_offset() + first
    return whole.new_empty(0).set_(whole.untyped_storage(), offset, (whole.shape[0], width), whole.stride())


def _are_side_by_side(parts: Sequence[Tensor]) -> bool:
    first = parts[0]
    total = sum(part.shape[1] for part in parts)
    ends = accumulate((part.shape[1] for part in parts), initial=first.storage_offset())
    return (
        first.stride(0) >= total
        and first.stride(1) == 1
        and all(
            part.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
            and part.storage_offset() == offset
            and part.shape[0] == first.shape[0]
            and part.stride() == first.stride()
            for part, offset in zip(parts, ends, strict=False)
        )
    )
