"""Matrix products and ReLU in kernels."""

import triton
import triton.language as tl


@triton.jit
def product(left: tl.tensor, right: tl.tensor, total: tl.tensor, HOW: tl.constexpr) -> tl.tensor:
    """Return total + left right, computed as ``HOW`` says: ``[m, k]``, ``[k, n]`` to ``[m, n]``.

    The values of ``HOW`` are those of :func:`sopool.ops.triton.launching.how`.
    """
    if HOW == "exact":
        total += tl.sum(left[:, :, None] * right[None, :, :], 1)
    elif HOW == "widen":
        total = tl.dot(left.to(tl.float32), right.to(tl.float32), total)
    else:
        total = tl.dot(left, right, total, input_precision=HOW)
    return total


@triton.jit
def relu(values: tl.tensor) -> tl.tensor:
    """Return max(values, 0), but NaN for NaN, which ``tl.maximum`` would turn into zero."""
    return tl.where(values <= 0, 0.0, values)
