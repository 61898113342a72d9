"""Operators in terms of PyTorch's standard ones, for programs that run without this package.

While ``torch.export`` or ``torch.onnx.export`` records a program, :func:`exporting` is true, and the operators of this
package are replaced: those on pairs of rows by the form for transforms (:mod:`sopool.ops._autograd`), the others by the
functions of this module. They use only what ONNX can express, read no values and accept spare rows. Values such as a
decreasing ``ptr`` are not checked.
"""

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)
"""Return whether a program is being exported; before PyTorch 2.7, exported programs need this package."""


def total(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Return the sums of the rows with each index: ``[N, ...]``, ``[N]`` to ``[size, ...]``."""
    return add_rows(values.new_zeros(size, *values.shape[1:]), index, values)


def add_rows(sums: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Return ``sums`` ``[size, ...]`` with the rows of ``values`` ``[N, ...]`` added at each index ``[N]``."""
    if not exporting():
        return sums.index_add(0, index, values)
    # In ONNX, index_add becomes ScatterND, whose threads overwrite each other's sums in ONNX Runtime 1.31.
    return sums.scatter_add(0, index.view(-1, *[1] * (values.dim() - 1)).expand_as(values), values)


def gram(x: Tensor, y: Tensor, ptr: Tensor) -> Tensor:
    """Return X_g^T Y_g of every segment of sorted rows; segments are padded to the longest one."""
    sizes = ptr.diff().unsqueeze(1)
    most = length(F.pad(sizes, (0, 0, 1, 0), value=2).max())
    torch._check(most >= 2)  # the compiler treats sizes of 1 differently
    places = torch.arange(most, device=ptr.device)
    at = torch.where(places < sizes, ptr[:-1].unsqueeze(1) + places, x.shape[0])  # an additional row of zeros
    left, right = (F.pad(rows, (0, 0, 0, 1))[at] for rows in (x, y))
    return left.mT @ right


def owners(ptr: Tensor, num_rows: int) -> Tensor:
    """Return the segment of each sorted row ``[N]``, G for spare rows."""
    return count(ptr[1:], num_rows + 1).cumsum(0)[:-1]


def amax(x: Tensor, ptr: Tensor) -> Tensor:
    """Return the largest value of each column in every segment ``[G, F]``, zero for an empty segment."""
    rows = owners(ptr, x.shape[0]).unsqueeze(1).expand(-1, x.shape[1])
    lowest = x.new_full((ptr.shape[0], x.shape[1]), float("-inf"))  # the last row collects the spare rows
    largest = lowest.scatter_reduce(0, rows, x, "amax")[:-1]
    return largest.masked_fill(ptr.diff().eq(0).unsqueeze(1), 0)


def count(index: Tensor, size: int) -> Tensor:
    """Return how often each number from 0 to ``size - 1`` occurs."""
    return total(torch.ones_like(index), index, size)


def rising(numbers: Tensor) -> Tensor:
    """Return the stable permutation that sorts integers, which may be negative."""
    places = torch.arange(numbers.shape[0], device=numbers.device)
    return (numbers * numbers.shape[0] + places).argsort()


def falling(values: Tensor) -> Tensor:
    """Return the stable permutation that sorts values from the largest to the smallest; ONNX has no stable sort."""
    in_order, order = values.sort(descending=True)
    run = (in_order != F.pad(in_order, (1, 0))[:-1]).cumsum(0)  # equal values have equal numbers
    return order.index_select(0, (run * values.shape[0] + order).argsort())


def positions(counts: Tensor) -> Tensor:
    """Return where each of several consecutive parts starts, and the end of the last one."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def length(number: Tensor) -> int:
    """Return a number that the program computes as the size of tensors; ``int`` would read its value now."""
    size = cast(int, number.item())
    torch._check(size >= 0)
    return size


def sort_index(index: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Return the ``ptr`` of an index and the stable permutation that sorts it; ``size`` None: the largest entry + 1."""
    if size is None:
        size = length(torch.cat([index, index.new_full((1,), -1)]).max() + 1)
    return positions(count(index, size)), rising(index)
