"""Run tests as on a machine whose BLAS rounds otherwise: ``python -m pytest -p tests.helpers.other_rounding``.

A matrix product may sum in another order for another shape, on some processors and not on others. Here every product
gets an error of its last bit that depends on its shape and on the place in the result, as it may on any machine, so
that an assertion of equal bits which holds on one processor by luck fails at once. The same product of the same
matrices gives the same bits, and so does one of whole numbers, which is exact in any order.

Tests that count the memory of products fail here, and so do those that compare with another process, whose products
are PyTorch's own.
"""

import warnings

import numpy as np
import torch

PRODUCTS = torch.library.Library("aten", "IMPL")
EPS = {torch.float64: 2.0**-52, torch.float32: 2.0**-23}


def numbers(tensor):
    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    return tensor.detach().to(wide).numpy()


@np.errstate(all="ignore")
def nudged(a, b):
    """The product of two arrays, made in double precision, with an error of a bit of their own precision."""
    out = np.matmul(a, b, dtype=np.float64)
    if np.array_equal(a, np.rint(a)) and np.array_equal(b, np.rint(b)):
        return out
    place = np.arange(out.size, dtype=np.uint64).reshape(out.shape) + np.uint64(31 * out.size + sum(a.shape))
    sign = (place * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(62)).astype(np.float64) - 1.5
    eps = EPS[torch.float64] if a.dtype == np.float64 else EPS[torch.float32]
    return out * (1 + eps * sign)


def product(a, b):
    if not (a.is_floating_point() and b.is_floating_point()):
        return torch.from_numpy(np.matmul(a.numpy(), b.numpy()))
    return torch.from_numpy(np.asarray(nudged(numbers(a), numbers(b)))).to(a.dtype)


def scaled_sum(start, a, b, beta=1, alpha=1):
    out = product(a, b) * alpha
    return out if beta == 0 else out + start * beta


def fill(out, value):
    return out.resize_(value.shape).copy_(value)


def register():
    """Put these products in the place of PyTorch's own."""
    for name in ("mm", "bmm", "mv", "dot"):
        PRODUCTS.impl(name, product, "CPU")
    for name in ("mm.out", "bmm.out", "mv.out", "dot.out"):
        PRODUCTS.impl(name, lambda a, b, *, out: fill(out, product(a, b)), "CPU")
    for name in ("addmm", "baddbmm", "addmv"):
        PRODUCTS.impl(name, scaled_sum, "CPU")
        PRODUCTS.impl(f"{name}_", lambda s, a, b, *, beta=1, alpha=1: s.copy_(scaled_sum(s, a, b, beta, alpha)), "CPU")
        PRODUCTS.impl(
            f"{name}.out",
            lambda s, a, b, *, beta=1, alpha=1, out: fill(out, scaled_sum(s, a, b, beta, alpha)),
            "CPU",
        )


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch warns of what is meant here: a kernel that takes another's place
    register()


def pytest_configure():
    try:
        from triton.runtime import interpreter
    except ImportError:
        return

    class Products:
        """NumPy as Triton's interpreter sees it."""

        def __getattr__(self, name):
            return getattr(np, name)

        def matmul(self, a, b, dtype=None):
            return nudged(a, b).astype(dtype or a.dtype)

    interpreter.np = Products()
