"""The decision whether compiled loops are used, and calls of them with tensors.

A loop over graphs is cut into parts of several graphs each. How depends on the graphs only, and each part is computed
by one thread, so the number of threads changes no result. Parts run in several threads if there is work enough. These
are ordinary threads of Python that end with the call: the loops hold no lock, and unlike the thread pools of Numba they
neither interfere with those of PyTorch nor forbid a process to fork.
"""

import importlib
import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

LONGEST = 256
"""The largest number of rows for which products are loops. Only a graph's own size counts, not the batch."""
WIDEST = 64 * 64
SERVED = (torch.float32, torch.float64, torch.int64)
PART = 1 << 24
"""The work in one part of a loop, in multiplications. It takes about a millisecond."""
PARTS = 4
"""The number of parts for each thread. After an operator, PyTorch's threads occupy their cores for some milliseconds,
waiting for more work; this delays other threads."""


def serves(x: Tensor) -> bool:
    """Return whether loops over graphs are used: with Numba, on a CPU, for numbers in one of ``SERVED``."""
    return x.device.type == "cpu" and x.dtype in SERVED and _installed()


def serves_alone(x: Tensor) -> bool:
    """Return whether loops for one thread are used: only if PyTorch has no more, as in the workers of a bank."""
    return serves(x) and torch.get_num_threads() == 1


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
    p = x.shape[1]
    q = y.shape[1]
    out = x.new_empty(ptr.numel() - 1, p, q)
    bounds = ptr.numpy()
    _run("gram", _cut(bounds, p * q), _view(x), _view(y), bounds, LONGEST, out.numpy())
    for g, first, last in _large(bounds):
        torch.mm(x[first:last].t(), y[first:last], out=out[g])
    return out


def segment_apply(y: Tensor, s: Tensor, ptr: Tensor, symmetrize: bool) -> Tensor:
    """Return S_g y_i, or (S_g + S_g^T) y_i: by loops for small segments, by a matrix product for each large one."""
    p, q = s.shape[1:]
    out = y.new_empty(y.shape[0], p)
    bounds = ptr.numpy()
    _run("apply", _cut(bounds, p * q), _view(y), _view(s), bounds, symmetrize, LONGEST, out.numpy())
    for g, first, last in _large(bounds):
        factor = s[g].t() + s[g] if symmetrize else s[g].t()
        torch.mm(y[first:last], factor, out=out[first:last])
    return out


def segment_attend(
    x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor, order: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return X_g^T (X_g query + bias) ``[G, F, 1]`` and the scores ``[N, 1]`` in segment order."""
    rows, channels = x.shape
    pooled = x.new_empty(ptr.numel() - 1, channels, 1)
    score = x.new_empty(rows, 1)
    bounds = ptr.numpy()
    views = _view(x), _vector(query), 0.0 if bias is None else bias.item(), bounds, *_order(order, rows)
    _run("attend", _cut(bounds, 8 * channels), *views, pooled.numpy()[:, :, 0], score.numpy()[:, 0])
    return pooled, score


def segment_attend_backward(
    x: Tensor,
    query: Tensor,
    score: Tensor,
    d_pooled: Tensor,
    d_score: Tensor | None,
    ptr: Tensor,
    order: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of ``x``, ``query`` and the scores; scores and their gradient are in segment order."""
    rows, channels = x.shape
    bounds = ptr.numpy()
    cuts = _cut(bounds, 16 * channels)
    dx = x.new_empty(x.shape)
    d_query = query.new_zeros(len(cuts) - 1, channels)
    total = torch.zeros_like(score) if d_score is None else d_score.clone(memory_format=torch.contiguous_format)
    views = _view(x), _vector(query), _vector(score), _view(d_pooled)[:, :, 0], bounds, *_order(order, rows)
    _run("attend_backward", cuts, *views, dx.numpy(), d_query.numpy(), total.numpy()[:, 0])
    if len(cuts) > 2:
        d_query = d_query.sum(0, keepdim=True)
    return dx, d_query.t_(), total  # in place: an operator must not return a view


def attend_rows(x: Tensor, query: Tensor, bias: Tensor | None, index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return X_g^T (X_g query + bias) ``[G, F]`` of rows in any order, and the scores ``[N]``, in one thread."""
    pooled = x.new_empty(size, x.shape[1])
    score = x.new_empty(x.shape[0])
    views = _view(x), _vector(query), 0.0 if bias is None else bias.item(), _view(index)
    if not _loops("loops").attend_rows(*views, pooled.numpy(), score.numpy()):
        raise IndexError(f"index contains values outside of 0 to {size - 1}.")
    return pooled, score


def attend_rows_backward(
    x: Tensor, query: Tensor, bias: Tensor | None, index: Tensor, score: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the gradients of ``x``, ``query`` and ``bias``, given the scores and the gradient ``[G, F]``."""
    dx = x.new_empty(x.shape)
    d_query = query.new_empty(query.shape)
    views = _view(x), _vector(query), _view(index), score.numpy(), _view(gradient)
    total = _loops("loops").attend_rows_backward(*views, dx.numpy(), d_query.numpy()[:, 0])
    return dx, d_query, None if bias is None else bias.new_tensor([total])


def _run(name: str, cuts: list[int], *arguments: Any) -> None:
    """Run a loop on all parts, which are the graphs between two cuts."""
    loop = getattr(_loops("loops"), name)
    if len(cuts) == 2:
        loop(0, *cuts, *arguments)
        return
    parts = iter(list(enumerate(pairwise(cuts))))
    threads = min(torch.get_num_threads(), (len(cuts) - 1) // PARTS)

    def run() -> None:
        for part, (start, end) in parts:  # a thread that is free takes the next part
            loop(part, start, end, *arguments)

    if threads <= 1:
        run()
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(run) for _ in range(threads - 1)]
        run()
        for other in others:
            other.result()  # raises the error of a thread


def _cut(bounds: np.ndarray, per_row: int) -> list[int]:
    """Return the first graph of each part, and the number of graphs; parts have about the same number of rows."""
    graphs = len(bounds) - 1
    rows = int(bounds[-1])
    parts = 1 + rows * per_row // PART
    if parts == 1:
        return [0, graphs]
    return [0, *np.searchsorted(bounds, rows * np.arange(1, parts) // parts).tolist(), graphs]


def _view(x: Tensor) -> np.ndarray:
    view: np.ndarray = x.detach().contiguous().numpy()
    return view


def _vector(x: Tensor) -> np.ndarray:
    """Return the values of a matrix with one column."""
    return _view(x).reshape(-1)


def _order(order: Tensor | None, rows: int) -> tuple[bool, np.ndarray]:
    """Return whether rows are read in another order, and this order."""
    if order is None:
        return False, _NO_ORDER
    places = order.numpy()
    if rows and not 0 <= places.min() <= places.max() < rows:  # loops do not check their memory accesses
        raise IndexError(f"order contains values from {places.min()} to {places.max()} for {rows} rows.")
    return True, places


_NO_ORDER = np.empty(0, np.int64)


def _large(bounds: np.ndarray) -> list[tuple[int, int, int]]:
    sizes = bounds[1:] - bounds[:-1]
    if np.maximum.reduce(sizes, initial=0) <= LONGEST:
        return []
    return [(g, int(bounds[g]), int(bounds[g + 1])) for g in (sizes > LONGEST).nonzero()[0].tolist()]


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


@cache
def _loops(module: str) -> Any:
    """Import a module of loops when it is first needed, since importing Numba takes a second."""
    return importlib.import_module(f"sopool.ops.numba.{module}")
