"""Whether the compiled loops serve, and the way to them from tensors."""

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

LONGEST = 256
"""Rows of a graph up to which loops beat a call of the matrix product. By its own size, so company changes nothing."""
WIDEST = 64 * 64


def serves(x: Tensor) -> bool:
    """On a CPU with one thread, as the workers of a bank have, where Numba is installed."""
    return (
        x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and torch.get_num_threads() == 1
        and _installed()
    )


def prepare(name: str, *arguments: Any, module: str = "loops") -> Callable[..., None]:
    """One of :mod:`sopool.ops.numba.loops` on contiguous tensors and numbers, still to be told which model, if it asks.

    Another ``module`` with loops beside it may be named.
    """
    loop = getattr(_loops(module), name)
    views = [one.numpy() if isinstance(one, Tensor) else one for one in arguments]
    return lambda *first: loop(*first, *views)


def segment_gram(x: Tensor, y: Tensor, ptr: Tensor) -> Tensor:
    """out[g] = X_g^T Y_g: loops for small graphs, a product of its own for each large one."""
    out = x.new_empty(ptr.numel() - 1, x.shape[1], y.shape[1])
    prepare("gram", x.contiguous(), y.contiguous(), ptr, LONGEST, out)()
    for g, first, last in _large(ptr):
        torch.mm(x[first:last].t(), y[first:last], out=out[g])
    return out


def segment_apply(y: Tensor, s: Tensor, ptr: Tensor, symmetrize: bool) -> Tensor:
    """out[i] = S_g(i) y_i, or (S + S^T) y_i, likewise."""
    out = y.new_empty(y.shape[0], s.shape[1])
    scratch = y.new_empty(s.shape[2], s.shape[1])
    prepare("apply", y.contiguous(), s.contiguous(), ptr, symmetrize, LONGEST, scratch, out)()
    for g, first, last in _large(ptr):
        factor = s[g].t() + s[g] if symmetrize else s[g].t()
        torch.mm(y[first:last], factor, out=out[first:last])
    return out


def _large(ptr: Tensor) -> list[tuple[int, int, int]]:
    bounds = ptr.numpy()
    found = (bounds[1:] - bounds[:-1] > LONGEST).nonzero()[0].tolist()
    return [(g, int(bounds[g]), int(bounds[g + 1])) for g in found]


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


@cache
def _loops(module: str) -> Any:
    """Imported when first needed: Numba takes a second, and who only pools need not wait for it."""
    return importlib.import_module(f"sopool.ops.numba.{module}")
