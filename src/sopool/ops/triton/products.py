"""Matrix products in kernels, and what follows them."""

import triton
import triton.language as tl


@triton.jit
def product(left: tl.tensor, right: tl.tensor, total: tl.tensor, HOW: tl.constexpr) -> tl.tensor:
    """total + left right, made as :func:`sopool.ops.triton.launching.how` says: [m, k], [k, n] -> [m, n]."""
    if HOW == "exact":
        total += tl.sum(left[:, :, None] * right[None, :, :], 1)
    elif HOW == "widen":
        total = tl.dot(left.to(tl.float32), right.to(tl.float32), total)
    else:
        total = tl.dot(left, right, total, input_precision=HOW)
    return total


@triton.jit
def relu(values: tl.tensor) -> tl.tensor:
    """max(values, 0), and what is not a number stays so: ``tl.maximum`` would make it zero."""
    return tl.where(values <= 0, 0.0, values)
