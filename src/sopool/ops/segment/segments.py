"""Segments: consecutive rows that belong together. Segment ``g`` has the rows ``ptr[g]:ptr[g + 1]``.

All operators work with ``ptr``. This module converts an ``index`` to ``ptr`` and checks the input. Shapes and types are
checked in Python. *Values* are checked inside operators, so that compiled graphs keep the checks: on a CPU they raise
an error, on CUDA they are asynchronous device assertions. They neither break a graph nor wait for the device.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from sopool.ops import backends
from sopool.ops.segment import standard


class Segments(NamedTuple):
    """Boundaries ``ptr`` ``[G + 1]`` and a permutation ``order`` ``[N]`` that sorts the rows (None if sorted)."""

    ptr: Tensor
    order: Tensor | None = None

    def sort(self, rows: Tensor) -> Tensor:
        """Bring rows ``[N, ...]`` into segment order."""
        return rows if self.order is None else rows.index_select(0, self.order)

    def unsort(self, rows: Tensor) -> Tensor:
        """Bring rows ``[N, ...]`` from segment order back into their original order."""
        if self.order is None:
            return rows
        places = torch.arange(rows.shape[0], device=rows.device)
        return rows.index_select(0, torch.empty_like(self.order).index_copy_(0, self.order, places))

    def repeat(self, copies: int, num_rows: int) -> "Segments":
        """Return the segments of ``copies`` concatenated batches of ``num_rows`` rows each, without spare rows."""
        shift = num_rows * torch.arange(copies, device=self.ptr.device).unsqueeze(1)
        last = self.ptr[-1:] + (copies - 1) * num_rows
        ptr = torch.cat([(self.ptr[:-1] + shift).flatten(), last])
        return Segments(ptr, None if self.order is None else (self.order + shift).flatten())


def find_segments(
    num_rows: int,
    device: torch.device,
    ptr: Tensor | None = None,
    index: Tensor | None = None,
    dim_size: int | None = None,
    order: Tensor | None = None,
) -> Segments:
    """Return the segments of ``num_rows`` rows, given as ``ptr``, with or without ``order``, or as ``index``.

    If both are given, ``ptr`` is used, since it needs no sorting. On a CPU, a sorted index costs one comparison. Under
    ``torch.compile`` and on CUDA it is always sorted, because a test would break the graph or wait for the device.
    """
    if ptr is not None:
        _check_positions("ptr", ptr, device)
        if ptr.numel() == 0:
            raise ValueError("ptr is empty: it needs one entry more than there are segments, so [0] for no segments.")
        if dim_size is not None and dim_size != ptr.numel() - 1:
            raise ValueError(
                f"dim_size={dim_size}, but ptr has {ptr.numel()} entries, which means {ptr.numel() - 1} segments: "
                "omit dim_size or correct it."
            )
        return Segments(ptr.long().contiguous(), None if order is None else order.long().contiguous())
    if index is None:
        raise ValueError("Neither ptr nor index is given: pass ptr=data.ptr or index=data.batch.")
    index = check_index(index, num_rows, device, dim_size)
    if standard.exporting():
        return Segments(*standard.sort_index(index, dim_size))
    if is_traced():  # no tests in a trace: the next batch may have another order and size
        return Segments(*_sort_index(index, dim_size))
    readable = index.device.type == "cpu" and not torch._C._are_functorch_transforms_active()
    if readable and _is_sorted(index):
        return Segments(_ptr_of_sorted(index, dim_size))
    dim_size = count_segments(index) if dim_size is None else dim_size
    return Segments(*_sort_index(index, dim_size))


def owners(ptr: Tensor, num_rows: int) -> Tensor:
    """Return the segment of each sorted row ``[N]``, G for spare rows, with operators that support every transform."""
    if standard.exporting():
        return standard.owners(ptr, num_rows)
    return torch.searchsorted(ptr, torch.arange(num_rows, device=ptr.device), right=True) - 1


def is_traced() -> bool:
    """Return whether a compiler or ``torch.jit.trace`` is recording a program that will run on other batches."""
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def check_ptr_values(ptr: Tensor, x: Tensor) -> None:
    """Raise an error unless ``ptr`` starts at 0, never decreases and ends at the number of rows of ``x``.

    For the Triton kernels it may end earlier; the rows past its end are then spare and belong to no segment.
    """
    num_rows = x.shape[0]
    if ptr.device.type == "cpu":
        bounds = ptr.numpy()  # NumPy is faster for small arrays
        down = bounds[1:] < bounds[:-1]
        if bounds[0] != 0:
            raise ValueError(f"ptr starts at {bounds[0]}: it must start at 0.")
        if np.logical_or.reduce(down):
            at = int(down.argmax())
            raise ValueError(
                f"ptr goes down from {bounds[at]} to {bounds[at + 1]} at position {at + 1}: it must never decrease."
            )
        if bounds[-1] > num_rows or (bounds[-1] < num_rows and not backends.serves(x)):
            raise ValueError(
                f"ptr ends at {bounds[-1]}, but there are {num_rows} rows: it must end at the number of rows. "
                "Does it come from another batch?"
            )
    elif ptr.device.type == "cuda":
        end = ptr[-1] <= num_rows if backends.serves(x) else ptr[-1] == num_rows
        right = (ptr[0] == 0) & (ptr.diff() >= 0).all() & end
        torch._assert_async(right, "ptr must start at 0, never decrease and end at the number of rows.")


def check_sizes(ptr: Tensor, x: Tensor, order: Tensor | None, y: Tensor | None = None, s: Tensor | None = None) -> None:
    """Raise an error unless the numbers of rows, of entries of ``order`` and of matrices in ``s`` agree.

    The public functions check this as well, but their checks may be constants of a trace that runs on another batch.
    """
    if order is None and y is None and s is None:
        return
    rows = x.shape[0]
    segments = ptr.numel() - 1
    for name, size, want in (("y", y, rows), ("order", order, rows), ("s", s, segments)):
        if size is not None and size.shape[0] != want:
            raise ValueError(
                f"{name} has {size.shape[0]} entries for {rows} rows in {segments} segments: it needs {want}. "
                "Was this traced with a batch of another size?"
            )


def check_edges(edge_index: Tensor, batch: Tensor, what: str = "edge") -> None:
    """Raise an error unless each edge ``[2, E]`` joins two nodes of one graph of ``batch`` ``[N]``.

    ``what`` says what they are: edges, or pairs of nodes in ``pair_index``.
    """
    if torch.compiler.is_compiling() or edge_index.numel() == 0:
        return  # a compiled gather checks its own bounds
    nodes = batch.numel()
    name = what.capitalize()
    low, high = torch.aminmax(edge_index)
    if edge_index.device.type == "cpu":
        if int(low) < 0 or int(high) >= nodes:
            at = int(((edge_index < 0) | (edge_index >= nodes)).any(0).nonzero()[0])
            raise ValueError(f"{name} {at} is {edge_index[:, at].tolist()}, but there are only nodes 0 to {nodes - 1}.")
        across = batch[edge_index[0]] != batch[edge_index[1]]
        if bool(across.any()):
            at = int(across.nonzero()[0])
            raise ValueError(
                f"{name} {at} is {edge_index[:, at].tolist()} and joins graphs {batch[edge_index[:, at]].tolist()}: "
                f"{what}s must stay within a graph. Do {what}_index and batch come from the same batch?"
            )
    elif edge_index.device.type == "cuda":
        torch._assert_async(
            (low >= 0) & (high < nodes), f"{what}_index must lie between 0 and the number of nodes - 1."
        )
        within = (batch[edge_index[0]] == batch[edge_index[1]]).all()
        torch._assert_async(within, f"every {what} must stay within one graph.")


def _check_positions(name: str, positions: Tensor, device: torch.device) -> None:
    usual = type(positions) is Tensor and positions.dtype is torch.long
    if usual and positions.dim() == 1 and positions.device == device:
        return
    if not isinstance(positions, Tensor):
        raise TypeError(f"{name} is a {type(positions).__name__}: pass a 1-dimensional tensor of integers.")
    if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
        raise TypeError(f"{name} has dtype {positions.dtype}: pass integers, for example {name}.long().")
    if positions.dim() != 1:
        raise ValueError(f"{name} has shape {list(positions.shape)}: it must have one dimension.")
    if positions.device != device:
        raise ValueError(
            f"{name} is on {positions.device}, but the rows are on {device}: move one, for example {name}.to(x.device)."
        )


def check_index(index: Tensor, num_rows: int, device: torch.device, dim_size: int | None) -> Tensor:
    """Check all but the values of ``index``, and return it as integers of 64 bits."""
    _check_positions("index", index, device)
    if index.numel() != num_rows:
        raise ValueError(f"index has {index.numel()} entries for {num_rows} rows: it needs one entry per row.")
    if dim_size is not None and dim_size < 0:
        raise ValueError(f"dim_size={dim_size} is negative: pass the number of segments.")
    return index.long()


def check_index_values(index: Tensor, size: int) -> None:
    """Raise an error unless the entries of ``index`` are segments from 0 to ``size - 1``."""
    if index.numel() == 0:
        return
    low, high = torch.aminmax(index)
    if index.device.type == "cpu":
        if int(low) < 0:
            at = int((index < 0).nonzero()[0])
            raise ValueError(f"index[{at}] is {int(index[at])}: it must not be negative.")
        if int(high) >= size:
            at = int((index >= size).nonzero()[0])
            raise ValueError(
                f"Encountered invalid 'dim_size' (got '{size}' but expected >= '{int(high) + 1}'): index[{at}] is "
                f"{int(index[at])}, but there are only {size} segments (dim_size={size}). "
                f"Pass a dim_size of at least {int(high) + 1}."
            )
    elif index.device.type == "cuda":
        torch._assert_async((low >= 0) & (high < size), "index must lie between 0 and dim_size - 1.")


def count_segments(index: Tensor) -> int:
    """Return the largest entry of ``index`` plus one."""
    return int(index.max()) + 1 if index.numel() else 0


def _is_sorted(index: Tensor) -> bool:
    entries = index.numpy()
    return not np.logical_or.reduce(entries[1:] < entries[:-1])


def _ptr_of_sorted(index: Tensor, size: int | None) -> Tensor:
    """Return the ``ptr`` of a sorted index, of which only the first and the last entry need a check."""
    entries = index.numpy()
    if not len(entries):
        return index.new_zeros(1 + (size or 0))
    last = int(entries[-1])
    size = last + 1 if size is None else size
    if entries[0] < 0 or last >= size:
        check_index_values(index, size)
    ptr: Tensor = index2ptr(index, size)
    return ptr


@torch.library.custom_op(
    "sopool::sort_index", mutates_args=(), schema="(Tensor index, SymInt? size) -> (Tensor, Tensor)"
)
def _sort_index(index: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Return the ``ptr`` of an index and the stable permutation that sorts it; ``size`` None: the largest entry + 1."""
    size = count_segments(index) if size is None else size
    check_index_values(index, size)
    if index.device.type == "cpu" and _is_sorted(index):
        return index2ptr(index, size), torch.arange(index.numel())
    in_order, order = index.sort(stable=True)
    return index2ptr(in_order, size), order


@_sort_index.register_fake
def _(index: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    entries = torch.library.get_ctx().new_dynamic_size(min=1) if size is None else size + 1
    return index.new_empty(entries), torch.empty_like(index)
