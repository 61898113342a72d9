"""The decision whether compiled loops are used, and calls of them with tensors."""

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

LONGEST = 256
"""The largest number of rows for which loops are used. Only a graph's own size counts, not the rest of the batch."""
WIDEST = 64 * 64


def serves(x: Tensor) -> bool:
    """Return whether loops are used: with Numba, on a CPU with one thread, as in the workers of a bank."""
    return (
        x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and torch.get_num_threads() == 1
        and _installed()
    )


def prepare(name: str, *arguments: Any, module: str = "loops") -> Callable[..., None]:
    """Bind a function of :mod:`sopool.ops.numba.loops` to contiguous tensors and numbers.

    The returned function takes the leading arguments that are still missing, such as the model. ``module`` names
    another module of loops in this package.
    """
    loop = getattr(_loops(module), name)
    views = [one.numpy() if isinstance(one, Tensor) else one for one in arguments]
    return lambda *first: loop(*first, *views)


def segment_gram(x: Tensor, y: Tensor, ptr: Tensor) -> Tensor:
    """Return X_g^T Y_g of every segment: by loops for small segments, by a matrix product for each large one."""
    out = x.new_empty(ptr.numel() - 1, x.shape[1], y.shape[1])
    prepare("gram", x.contiguous(), y.contiguous(), ptr, LONGEST, out)()
    for g, first, last in _large(ptr):
        torch.mm(x[first:last].t(), y[first:last], out=out[g])
    return out


def segment_apply(y: Tensor, s: Tensor, ptr: Tensor, symmetrize: bool) -> Tensor:
    """Return S_g y_i, or (S_g + S_g^T) y_i: by loops for small segments, by a matrix product for each large one."""
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
    """Import a module of loops when it is first needed, since importing Numba takes a second."""
    return importlib.import_module(f"sopool.ops.numba.{module}")
