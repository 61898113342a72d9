"""What all launches share."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops import backends
from sopool.ops.triton.windows import Cut, add_pieces_kernel

# Assertions are checked in kernels (debug=True); that integers do not overflow need not be.
OPTIONS = {"sanitize_overflow": False, "enable_fp_fusion": True}


def launch(kernel: Any, grid: tuple[int, ...], device: torch.device, *arguments: Any, **options: Any) -> None:
    """Start ``kernel`` on the device of its tensors, whichever is the current one."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            kernel[grid](*arguments, **options, **OPTIONS)
    else:
        kernel[grid](*arguments, **options)


def lay_out(x: Tensor) -> Tensor:
    """Rows may lie anywhere, but the values of each side by side: kernels read several at a time."""
    return x if x.stride(1) == 1 or x.shape[1] == 1 else x.contiguous()


def width(count: int, most: int) -> int:
    """The power of two that holds so many, at least what a matrix unit takes, at most ``most``."""
    return min(most, max(16, int(triton.next_power_of_2(count))))


def how(x: Tensor) -> str:
    """How products of this type are made: an ``input_precision`` of ``tl.dot``, or without its help.

    ``exact``: double precision, which matrix units do not take. ``widen``: bfloat16 in Triton's interpreter, which
    cannot multiply it.
    """
    if x.dtype == torch.float64:
        return "exact"
    return "widen" if x.dtype == torch.bfloat16 and backends.interprets() else backends.chosen().precision


def wide(x: Tensor) -> torch.dtype:
    """The type in which sums are kept."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def programs(device: torch.device, each: int) -> int:
    """So many programs for each multiprocessor."""
    if device.type != "cuda":
        return 2
    return each * torch.cuda.get_device_properties(device).multi_processor_count


class Pieces:
    """Memory for the results of cut graphs, ``size`` values each."""

    def __init__(self, x: Tensor, ptr: Tensor, size: int, cut: Cut) -> None:
        self.windows = cut.windows(x.shape[0], ptr.numel() - 1)
        self.values = x.new_empty(2 * self.windows * size, dtype=wide(x))
        self.graphs = ptr.new_empty(self.windows, dtype=torch.int32)
        self._ptr, self._size, self._cut = ptr, size, cut

    def add_into(self, out: Tensor) -> None:
        """Write the sums of cut graphs into their places of ``out`` [G, size]."""
        block = min(1024, int(triton.next_power_of_2(self._size)))
        grid = (self.windows, int(triton.cdiv(self._size, block)))
        launch(
            add_pieces_kernel, grid, out.device, self.values, self.graphs, self._ptr, out, self._size,
            WINDOW=self._cut.window, LONGEST=self._cut.longest, PIECES=8, SIZE=block, num_warps=4,
        )  # fmt: skip


@triton.jit
def append(values: tl.tensor, value: tl.tensor) -> tl.tensor:
    """A tuple and one value more."""
    one = (value,)
    return values + one
