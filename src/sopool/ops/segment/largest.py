"""The largest value of each column in every segment, with a gradient."""

import torch
from torch import Tensor

from sopool.ops._autograd import by_columns
from sopool.ops.segment import standard
from sopool.ops.segment.segments import check_ptr_values


def segment_max(x: Tensor, ptr: Tensor) -> Tensor:
    """Return the maximum over the rows of every segment: ``[N, F]`` to ``[G, F]``, zero for an empty segment.

    Among equal values the first row receives the gradient. NaN counts as the largest value, as in ``torch.max``.
    """
    if standard.exporting():
        return standard.amax(x, ptr)
    if x.shape[0] == 0:
        return x.new_zeros(ptr.shape[0] - 1, x.shape[1])
    first = _segment_argmax(x.detach(), ptr)
    return x.gather(0, first.clamp(min=0)).masked_fill(first < 0, 0)


@torch.library.custom_op("sopool::segment_argmax", mutates_args=(), schema="(Tensor x, Tensor ptr) -> Tensor")
def _segment_argmax(x: Tensor, ptr: Tensor) -> Tensor:
    """Return the first row with the largest value of each column ``[G, F]``, -1 for an empty segment."""
    rows = x.shape[0]
    segments = ptr.numel() - 1
    check_ptr_values(ptr, x)
    if segments == 0:
        return ptr.new_empty(0, x.shape[1])
    largest = torch.segment_reduce(x, "max", offsets=ptr, initial=float("-inf"), unsafe=True)
    row = torch.arange(rows, device=x.device)
    segment = torch.searchsorted(ptr[1:], row, right=True)  # the number of segments for spare rows
    here = segment.clamp(max=segments - 1)
    is_largest = ((x == largest.index_select(0, here)) | x.isnan()) & (segment < segments).unsqueeze(1)
    candidates = torch.where(is_largest, row.unsqueeze(1), rows)
    first = torch.full((segments, x.shape[1]), rows, device=x.device)
    first.scatter_reduce_(0, here.unsqueeze(1).expand_as(candidates), candidates, "amin")
    return first.masked_fill_(first == rows, -1)


@_segment_argmax.register_fake
def _(x: Tensor, ptr: Tensor) -> Tensor:
    return x.new_empty(ptr.shape[0] - 1, x.shape[1], dtype=torch.long)


_segment_argmax.register_vmap(by_columns(_segment_argmax))
