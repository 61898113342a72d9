"""First-order operators over segments.

Most of them are built from the primitive and so share its gradients, determinism and precision.
"""

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import by_columns
from sopool.ops.segment import standard
from sopool.ops.segment.gram import check_rows, promote, segment_apply, segment_gram
from sopool.ops.segment.segments import check_ptr_values, find_segments
from sopool.ops.segment.torch_backend import wide_type, widen


def segment_sizes(ptr: Tensor, like: Tensor) -> Tensor:
    """Return the size of each segment, at least 1, as ``[G, 1]`` in the dtype of ``like`` (float32 for half types)."""
    return ptr.diff().clamp(min=1).to(wide_type(like)).unsqueeze(1)


def segment_sum(x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """Return the sum of the rows of every segment.

    Args:
        x: Rows ``[N, F]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``.
        order: Permutation ``[N]`` that sorts the rows by segment. Default: None, the rows are sorted.

    Returns:
        The sums ``[G, F]``; zero for an empty segment.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_sum
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> segment_sum(x, torch.tensor([0, 1, 3]))
        tensor([[ 1.,  2.],
                [ 8., 10.]])
    """
    return segment_gram(x, _ones(x), ptr, order=order).squeeze(2)


def segment_mean(x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """Return the mean of the rows of every segment.

    Args:
        x: Rows ``[N, F]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``.
        order: Permutation ``[N]`` that sorts the rows by segment. Default: None, the rows are sorted.

    Returns:
        The means ``[G, F]``; zero for an empty segment.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_mean
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> segment_mean(x, torch.tensor([0, 1, 3]))
        tensor([[1., 2.],
                [4., 5.]])
    """
    total = segment_sum(widen(x), ptr, order)
    return (total / segment_sizes(ptr, like=total)).to(promote(x).dtype)


def segment_spread(values: Tensor, ptr: Tensor, num_rows: int) -> Tensor:
    """Copy the values of each segment to all of its rows, the adjoint of :func:`segment_sum`.

    Args:
        values: One row for each segment ``[G, F]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``.
        num_rows: The number of rows N.

    Returns:
        The value of the segment of each row, ``[N, F]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_spread
        >>> segment_spread(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1, 3]), num_rows=3).flatten()
        tensor([1., 2., 2.])
    """
    return segment_apply(values.new_ones(num_rows, 1), values.unsqueeze(2), ptr)


def segment_softmax(x: Tensor, ptr: Tensor) -> Tensor:
    """Return the softmax over the rows of every segment, for each column separately.

    Args:
        x: Rows ``[N, F]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``.

    Returns:
        The weights ``[N, F]``, which add up to 1 in each segment.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_softmax
        >>> segment_softmax(torch.zeros(3, 1), torch.tensor([0, 1, 3])).flatten()
        tensor([1.0000, 0.5000, 0.5000])
    """
    check_rows("x", x)
    ptr = find_segments(x.shape[0], x.device, ptr).ptr
    dtype = promote(x).dtype
    x = widen(_own_rows(x, ptr))
    with torch.no_grad():  # the shift cancels out, so it needs no gradient
        shift = segment_spread(segment_amax(x, ptr), ptr, x.shape[0])
    weight = (x - shift).exp()
    empty = ptr.diff().eq(0).unsqueeze(1)
    total = segment_sum(weight, ptr) + empty.to(x.dtype)  # avoid a division by zero
    return (weight * segment_spread(1 / total, ptr, x.shape[0])).to(dtype)


def segment_amax(x: Tensor, ptr: Tensor) -> Tensor:
    """Return the largest value of each column ``[G, F]``, zero for an empty segment; it has no gradient."""
    largest: Tensor = standard.amax(x, ptr) if standard.exporting() else _amax(x, ptr)
    return largest


@torch.library.custom_op("sopool::segment_amax", mutates_args=(), schema="(Tensor x, Tensor ptr) -> Tensor")
def _amax(x: Tensor, ptr: Tensor) -> Tensor:
    check_ptr_values(ptr, x)
    largest = torch.segment_reduce(x, "max", offsets=ptr, initial=float("-inf"), unsafe=True)
    return largest.masked_fill_(ptr.diff().eq(0).unsqueeze(1), 0)


@_amax.register_fake
def _(x: Tensor, ptr: Tensor) -> Tensor:
    return x.new_empty(ptr.shape[0] - 1, x.shape[1])


_amax.register_vmap(by_columns(_amax))


def _own_rows(x: Tensor, ptr: Tensor) -> Tensor:
    """Set spare rows to zero. There are none on a CPU, unless the Triton backend is selected."""
    if x.device.type == "cpu" and backends.chosen().name != "triton":
        return x
    spare = torch.arange(x.shape[0], device=x.device) >= ptr[-1]
    return x.masked_fill(spare.unsqueeze(1), 0)


def _ones(x: Tensor) -> Tensor:
    return x.new_ones(x.shape[0], 1)
