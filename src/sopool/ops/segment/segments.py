"""Segments: rows that belong together lie side by side, ``ptr[g]:ptr[g + 1]`` are the rows of segment ``g``.

Everything inside the package speaks ``ptr``. This is the door where an index becomes one, and where bad input is
refused. Checks of shapes and types run wherever Python runs. Checks of *values* live inside operators, so that
compiled graphs keep them: on a CPU they raise a full message, on CUDA they are asynchronous device assertions, and
nowhere do they break a graph or wait for the device.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from sopool.ops import backends


class Segments(NamedTuple):
    """``ptr`` [G + 1] and, where the rows do not lie in segment order yet, the ``order`` [N] that puts them there."""

    ptr: Tensor
    order: Tensor | None = None

    def sort(self, rows: Tensor) -> Tensor:
        """Bring rows [N, ...] into segment order."""
        return rows if self.order is None else rows.index_select(0, self.order)

    def unsort(self, rows: Tensor) -> Tensor:
        """Bring rows [N, ...] from segment order back to where they came from."""
        if self.order is None:
            return rows
        places = torch.arange(rows.shape[0], device=rows.device)
        return rows.index_select(0, torch.empty_like(self.order).index_copy_(0, self.order, places))

    def repeat(self, copies: int, num_rows: int) -> "Segments":
        """Those of ``copies`` such batches laid end to end, each of ``num_rows`` rows and none of them spare."""
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
    """The segments of ``num_rows`` rows given as ``ptr``, with an ``order`` or none, or as an ``index`` in any order.

    Where both are given, ``ptr`` counts: it is the one that needs no search. An index that is already sorted costs
    one comparison on a CPU; under ``torch.compile`` and on CUDA, where looking would break the graph or wait for
    the device, it is sorted regardless.
    """
    if ptr is not None:
        _check_positions("ptr", ptr, device)
        if ptr.numel() == 0:
            raise ValueError("ptr is empty, but needs num_segments + 1 entries. For no segments at all pass ptr=[0].")
        if dim_size is not None and dim_size != ptr.numel() - 1:
            raise ValueError(
                f"dim_size={dim_size}, but ptr has {ptr.numel()} entries and so {ptr.numel() - 1} segments."
            )
        return Segments(ptr.long().contiguous(), None if order is None else order.long().contiguous())
    if index is None:
        raise ValueError("Neither ptr nor index is given: pass ptr=data.ptr or index=data.batch.")
    _check_positions("index", index, device)
    if index.numel() != num_rows:
        raise ValueError(f"index has {index.numel()} entries for {num_rows} rows: it needs one per row.")
    if dim_size is not None and dim_size < 0:
        raise ValueError(f"dim_size={dim_size} is negative: it is the number of segments.")
    index = index.long()
    if is_traced():  # a trace keeps no questions: the next batch may be in another order, of another size
        return Segments(*_sort_index(index, dim_size))
    dim_size = _count(index) if dim_size is None else dim_size
    if index.device.type == "cpu":
        _check_index_values(index, dim_size)
        if _is_sorted(index):
            return Segments(index2ptr(index, dim_size))
    return Segments(*_sort_index(index, dim_size))


def owners(ptr: Tensor, num_rows: int) -> Tensor:
    """The segment of each row in segment order, G for those of none [N]; in operators that every transform knows."""
    return torch.searchsorted(ptr, torch.arange(num_rows, device=ptr.device), right=True) - 1


def is_traced() -> bool:
    """Whether a program is recorded that other batches will run through: by a compiler, or ``torch.jit.trace``."""
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def check_ptr_values(ptr: Tensor, x: Tensor) -> None:
    """Raise unless ``ptr`` starts at 0, never goes down and ends at the number of rows of ``x``; for the operators.

    Where kernels serve it may end earlier: then the rows past its end are spare, and belong to no segment.
    """
    num_rows = x.shape[0]
    spare = backends.serves(x)
    if ptr.device.type == "cpu":
        bounds = ptr.numpy()  # a small array is looked at faster by numpy
        down = bounds[1:] < bounds[:-1]
        if bounds[0] != 0:
            raise ValueError(f"ptr starts at {bounds[0]}: it must start at 0.")
        if down.any():
            at = int(down.argmax())
            raise ValueError(
                f"ptr goes down from {bounds[at]} to {bounds[at + 1]} at position {at + 1}: "
                "segments follow one another, so it may never decrease."
            )
        if bounds[-1] > num_rows or (bounds[-1] < num_rows and not spare):
            raise ValueError(
                f"ptr ends at {bounds[-1]}, but there are {num_rows} rows: it must end at the number of rows. "
                "Does it come from another batch?"
            )
    elif ptr.device.type == "cuda":
        end = ptr[-1] <= num_rows if spare else ptr[-1] == num_rows
        right = (ptr[0] == 0) & (ptr.diff() >= 0).all() & end
        torch._assert_async(right, "ptr must start at 0, never decrease and end at the number of rows.")


def check_sizes(ptr: Tensor, x: Tensor, order: Tensor | None, y: Tensor | None = None, s: Tensor | None = None) -> None:
    """Raise unless rows, their ``order`` and one matrix for each segment fit together; for the operators.

    Functions ask for that as well, but what they found may be a constant in a trace that another batch is run through.
    """
    rows = x.shape[0]
    segments = ptr.numel() - 1
    for name, size, want in (("y", y, rows), ("order", order, rows), ("s", s, segments)):
        if size is not None and size.shape[0] != want:
            raise ValueError(
                f"{name} has {size.shape[0]} entries for {rows} rows in {segments} segments: it needs {want}. "
                "Was this traced with a batch of another size?"
            )


def check_edges(edge_index: Tensor, batch: Tensor) -> None:
    """Raise unless every edge [2, E] joins two existing nodes of one graph, given the graph of each node [N]."""
    if torch.compiler.is_compiling() or edge_index.numel() == 0:
        return  # a compiled gather asserts its own bounds
    nodes = batch.numel()
    low, high = torch.aminmax(edge_index)
    if edge_index.device.type == "cpu":
        if int(low) < 0 or int(high) >= nodes:
            at = int(((edge_index < 0) | (edge_index >= nodes)).any(0).nonzero()[0])
            raise ValueError(f"Edge {at} is {edge_index[:, at].tolist()}, but there are only nodes 0 to {nodes - 1}.")
        across = batch[edge_index[0]] != batch[edge_index[1]]
        if bool(across.any()):
            at = int(across.nonzero()[0])
            raise ValueError(
                f"Edge {at} is {edge_index[:, at].tolist()} and joins graphs {batch[edge_index[:, at]].tolist()}: "
                "edges must stay within a graph. Do edge_index and batch come from the same batch?"
            )
    elif edge_index.device.type == "cuda":
        torch._assert_async((low >= 0) & (high < nodes), "edge_index must lie between 0 and the number of nodes - 1.")
        within = (batch[edge_index[0]] == batch[edge_index[1]]).all()
        torch._assert_async(within, "every edge must stay within one graph.")


def _check_positions(name: str, positions: Tensor, device: torch.device) -> None:
    if not isinstance(positions, Tensor):
        raise TypeError(f"{name} is a {type(positions).__name__}: pass a 1-dimensional tensor of integers.")
    if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
        raise TypeError(f"{name} has dtype {positions.dtype}: pass integers, for example {name}.long().")
    if positions.dim() != 1:
        raise ValueError(f"{name} has shape {list(positions.shape)}: it must have one dimension.")
    if positions.device != device:
        raise ValueError(
            f"{name} is on {positions.device}, the rows are on {device}: move one, for example {name}.to(x.device)."
        )


def _check_index_values(index: Tensor, size: int) -> None:
    if index.numel() == 0:
        return
    low, high = torch.aminmax(index)
    if index.device.type == "cpu":
        if int(low) < 0:
            at = int((index < 0).nonzero()[0])
            raise ValueError(f"index[{at}] is {int(index[at])}: segments are numbered from 0.")
        if int(high) >= size:
            at = int((index >= size).nonzero()[0])
            raise ValueError(
                f"index[{at}] is {int(index[at])}, but there are only {size} segments (dim_size={size}): "
                f"pass a dim_size of at least {int(high) + 1}."
            )
    elif index.device.type == "cuda":
        torch._assert_async((low >= 0) & (high < size), "index must lie between 0 and dim_size - 1.")


def _count(index: Tensor) -> int:
    return int(index.max()) + 1 if index.numel() else 0


def _is_sorted(index: Tensor) -> bool:
    return bool((index[1:] >= index[:-1]).all())


@torch.library.custom_op(
    "sopool::sort_index", mutates_args=(), schema="(Tensor index, SymInt? size) -> (Tensor, Tensor)"
)
def _sort_index(index: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """The ``ptr`` of an index in any order, and the stable order that sorts it; without a size, of all it names."""
    size = _count(index) if size is None else size
    _check_index_values(index, size)
    if index.device.type == "cpu" and _is_sorted(index):
        return index2ptr(index, size), torch.arange(index.numel())
    in_order, order = index.sort(stable=True)
    return index2ptr(in_order, size), order


@_sort_index.register_fake
def _(index: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    entries = torch.library.get_ctx().new_dynamic_size(min=1) if size is None else size + 1
    return index.new_empty(entries), torch.empty_like(index)
