"""Matrix products in kernels."""

import triton
import triton.language as tl


@triton.jit
def multiply(left, right, total, EXACT: tl.constexpr, PRECISION: tl.constexpr):
    """total + left right. ``EXACT`` for double precision, which the matrix units of ``tl.dot`` do not take."""
    if EXACT:
        total += tl.sum(left[:, :, None] * right[None, :, :], 1)
    else:
        total = tl.dot(left, right, total, input_precision=PRECISION)
    return total
