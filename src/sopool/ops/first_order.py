"""First-order operations over segments, all through the primitive: its gradients, its determinism, its precision."""

import torch
from torch import Tensor

from sopool.ops.gram import segment_apply, segment_gram
from sopool.ops.segments import check_ptr_values


def segment_sizes(ptr: Tensor, like: Tensor) -> Tensor:
    """n_g, at least 1 so that one can divide by it: [G, 1] in the type of ``like``."""
    return ptr.diff().clamp(min=1).to(like.dtype).unsqueeze(1)


def segment_sum(x: Tensor, ptr: Tensor) -> Tensor:
    """X_g^T 1: [N, f] -> [G, f]."""
    return segment_gram(x, _ones(x), ptr).squeeze(2)


def segment_mean(x: Tensor, ptr: Tensor) -> Tensor:
    """X_g^T 1 / n_g, zero for an empty segment: [N, f] -> [G, f]."""
    total = segment_sum(x, ptr)
    return total / segment_sizes(ptr, like=total)


def segment_spread(values: Tensor, ptr: Tensor, num_rows: int) -> Tensor:
    """Give each row its segment's values, the adjoint of the sum: [G, f] -> [N, f]."""
    return segment_apply(values.new_ones(num_rows, 1), values.unsqueeze(2), ptr)


def segment_softmax(x: Tensor, ptr: Tensor) -> Tensor:
    """Softmax over the rows of each segment: [N, f] -> [N, f]."""
    with torch.no_grad():  # the shift cancels, so it needs no gradient
        shift = segment_spread(_segment_max(x, ptr), ptr, x.shape[0])
    weight = (x - shift).exp()
    return weight / segment_spread(segment_sum(weight, ptr), ptr, x.shape[0])


@torch.library.custom_op("sopool::segment_max", mutates_args=(), schema="(Tensor x, Tensor ptr) -> Tensor")
def _segment_max(x: Tensor, ptr: Tensor) -> Tensor:
    """The largest value of each column, -inf for an empty segment; without a gradient: [N, f] -> [G, f]."""
    check_ptr_values(ptr, x.shape[0])
    return torch.segment_reduce(x, "max", offsets=ptr, initial=float("-inf"), unsafe=True)


@_segment_max.register_fake
def _(x: Tensor, ptr: Tensor) -> Tensor:
    return x.new_empty(ptr.shape[0] - 1, x.shape[1])


def _ones(x: Tensor) -> Tensor:
    return x.new_ones(x.shape[0], 1)
