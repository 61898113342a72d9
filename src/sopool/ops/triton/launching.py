"""Helpers for all kernel launches."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops import backends
from sopool.ops.triton.windows import Cut, add_pieces_kernel

# Kernels check assertions (debug=True), but not integer overflow.
OPTIONS = {"sanitize_overflow": False, "enable_fp_fusion": True}


def launch(kernel: Any, grid: tuple[int, ...], device: torch.device, *arguments: Any, **options: Any) -> None:
    """Launch ``kernel`` on the device of its tensors, which need not be the current device."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            kernel[grid](*arguments, **options, **OPTIONS)
    else:
        kernel[grid](*arguments, **options)


def lay_out(x: Tensor) -> Tensor:
    """Return x with contiguous values in each row, since kernels load several at a time; rows may have any stride."""
    return x if x.stride(1) == 1 or x.shape[1] == 1 else x.contiguous()


def width(count: int, most: int) -> int:
    """Return the next power of two from ``count`` on, at least 16, which matrix units need, and at most ``most``."""
    return min(most, max(16, int(triton.next_power_of_2(count))))


def how(x: Tensor) -> str:
    """Return how products of this dtype are computed: an ``input_precision`` of ``tl.dot``, or ``exact`` or ``widen``.

    ``exact`` is for float64, which matrix units do not support. ``widen`` is for bfloat16 in Triton's interpreter,
    which cannot multiply it.
    """
    if x.dtype == torch.float64:
        return "exact"
    return "widen" if x.dtype == torch.bfloat16 and backends.interprets() else backends.chosen().precision


def wide(x: Tensor) -> torch.dtype:
    """Return the dtype in which sums are accumulated."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def programs(device: torch.device, each: int) -> int:
    """Return the total number of programs for ``each`` programs per multiprocessor."""
    if device.type != "cuda":
        return 2
    return each * torch.cuda.get_device_properties(device).multi_processor_count


class Pieces:
    """Memory for the partial results of graphs that are cut into pieces, ``size`` values each."""

    def __init__(self, x: Tensor, ptr: Tensor, size: int, cut: Cut) -> None:
        self.windows = cut.windows(x.shape[0], ptr.numel() - 1)
        self.values = x.new_empty(2 * self.windows * size, dtype=wide(x))
        self.graphs = ptr.new_empty(self.windows, dtype=torch.int32)
        self._ptr, self._size, self._cut = ptr, size, cut

    def add_into(self, out: Tensor) -> None:
        """Add up the pieces of each cut graph in ``out`` ``[G, size]``."""
        block = min(1024, int(triton.next_power_of_2(self._size)))
        grid = (self.windows, int(triton.cdiv(self._size, block)))
        launch(
            add_pieces_kernel, grid, out.device, self.values, self.graphs, self._ptr, out, self._size,
            WINDOW=self._cut.window, LONGEST=self._cut.longest, PIECES=8, SIZE=block, num_warps=4,
        )  # fmt: skip


@triton.jit
def append(values: tl.tensor, value: tl.tensor) -> tl.tensor:
    """Return a tuple with one more value."""
    one = (value,)
    return values + one
