"""First-order operations over segments, all through the primitive: its gradients, its determinism, its precision.

An ``order`` [N] brings the rows into segment order, if they do not lie so.
"""

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import by_columns
from sopool.ops.segment.gram import check_rows, promote, segment_apply, segment_gram
from sopool.ops.segment.segments import check_ptr_values, find_segments
from sopool.ops.segment.torch_backend import wide_type, widen


def segment_sizes(ptr: Tensor, like: Tensor) -> Tensor:
    """n_g, at least 1 so that one can divide by it: [G, 1] in the type of ``like``, for half types in float32."""
    return ptr.diff().clamp(min=1).to(wide_type(like)).unsqueeze(1)


def segment_sum(x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """X_g^T 1: [N, f] -> [G, f]."""
    return segment_gram(x, _ones(x), ptr, order=order).squeeze(2)


def segment_mean(x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """X_g^T 1 / n_g, zero for an empty segment: [N, f] -> [G, f]."""
    total = segment_sum(widen(x), ptr, order)
    return (total / segment_sizes(ptr, like=total)).to(promote(x).dtype)


def segment_spread(values: Tensor, ptr: Tensor, num_rows: int) -> Tensor:
    """Give each row its segment's values, the adjoint of the sum: [G, f] -> [N, f]."""
    return segment_apply(values.new_ones(num_rows, 1), values.unsqueeze(2), ptr)


def segment_softmax(x: Tensor, ptr: Tensor) -> Tensor:
    """Softmax over the rows of each segment: [N, f] -> [N, f]."""
    check_rows("x", x)
    ptr = find_segments(x.shape[0], x.device, ptr).ptr
    dtype = promote(x).dtype
    x = widen(_own_rows(x, ptr))
    with torch.no_grad():  # the shift cancels, so it needs no gradient
        shift = segment_spread(segment_amax(x, ptr), ptr, x.shape[0])
    weight = (x - shift).exp()
    empty = ptr.diff().eq(0).unsqueeze(1)
    total = segment_sum(weight, ptr) + empty.to(x.dtype)  # so that one can divide by it
    return (weight * segment_spread(1 / total, ptr, x.shape[0])).to(dtype)


@torch.library.custom_op("sopool::segment_amax", mutates_args=(), schema="(Tensor x, Tensor ptr) -> Tensor")
def segment_amax(x: Tensor, ptr: Tensor) -> Tensor:
    """The largest value of each column, zero for an empty segment; without a gradient: [N, f] -> [G, f]."""
    check_ptr_values(ptr, x)
    largest = torch.segment_reduce(x, "max", offsets=ptr, initial=float("-inf"), unsafe=True)
    return largest.masked_fill_(ptr.diff().eq(0).unsqueeze(1), 0)


@segment_amax.register_fake
def _(x: Tensor, ptr: Tensor) -> Tensor:
    return x.new_empty(ptr.shape[0] - 1, x.shape[1])


segment_amax.register_vmap(by_columns(segment_amax))


def _own_rows(x: Tensor, ptr: Tensor) -> Tensor:
    """Zeros for spare rows, whatever they hold; there are none where kernels never serve."""
    if x.device.type == "cpu" and backends.chosen().name != "triton":
        return x
    spare = torch.arange(x.shape[0], device=x.device) >= ptr[-1]
    return x.masked_fill(spare.unsqueeze(1), 0)


def _ones(x: Tensor) -> Tensor:
    return x.new_ones(x.shape[0], 1)
