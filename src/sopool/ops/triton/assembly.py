"""Kernels that assemble batches of graphs: one program for each graph, which also clears a part of unused capacity."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.launching import launch


class Assembled(NamedTuple):
    """A batch of graphs. Rows past ``ptr[-1]`` are spare: they have node 0, code -1 and an empty list."""

    ptr: Tensor
    """The row at which each graph starts ``[G + 1]``."""
    nodes: Tensor
    """The number of each row's node in the whole data set ``[N]``."""
    codes: Tensor
    """The codes of the rows ``[N, C]``, int32; -1 for none."""
    starts: Tensor
    """The position in ``members`` at which the list of each row starts ``[N + 1]``."""
    members: Tensor
    """The entries of all lists, as row numbers ``[L]``."""
    labels: Tensor | None
    """The labels of the edges to the list entries ``[L]``, offset for each model; -1 for none."""


def assemble(
    graphs: Tensor,
    node_ptr: Tensor,
    list_ptr: Tensor,
    list_starts: Tensor,
    members: Tensor,
    labels: Tensor | None,
    codes: Tensor,
    capacity: tuple[int, int],
    substitutes: Tensor | None = None,
    kinds: int = 0,
) -> Assembled:
    """Assemble the ``graphs`` ``[M, G]`` of M models into ``capacity`` = (rows, list entries), which must suffice.

    Graph i has the nodes ``node_ptr[i]:node_ptr[i + 1]``. Its lists, whose entries are numbered from 0 within the
    graph, start at ``list_ptr[i]`` in ``members``, and that of node j at ``list_starts[j]``. The ``codes`` ``[N, C]``
    of the nodes are replaced by ``substitutes[model, code]`` (``substitutes`` is ``[M, width]``). Label l of model m
    becomes ``m * kinds + l``.
    """
    rows, listed = capacity
    chosen = graphs.flatten()
    count = chosen.numel()
    sizes = chosen.new_empty(2, count)
    launch(
        sizes_kernel, (int(triton.cdiv(count, 256)),), chosen.device, chosen, node_ptr, list_ptr, sizes, count, SOME=256
    )
    ends = sizes.cumsum(1)
    out = Assembled(
        chosen.new_empty(count + 1),
        chosen.new_empty(rows),
        codes.new_empty(rows, codes.shape[1]),
        chosen.new_empty(rows + 1),
        chosen.new_empty(listed),
        None if labels is None else chosen.new_empty(listed),
    )
    launch(
        assemble_kernel, (count,), chosen.device, chosen, ends, node_ptr, list_ptr, list_starts, members, labels,
        codes, substitutes, *out, count, rows, listed, 0 if substitutes is None else substitutes.stride(0),
        graphs.shape[1], kinds,
        CODES=codes.shape[1], SOME=128, MANY=512, num_warps=4,
    )  # fmt: skip
    return out


def one_hot(codes: Tensor, width: int) -> Tensor:
    """Return rows ``[N, width]``, float32, that are 1 in the columns in ``codes`` ``[N, C]`` and 0 elsewhere."""
    out = torch.empty(codes.shape[0], width, device=codes.device)
    columns = min(64, int(triton.next_power_of_2(max(1, width))))
    rows = 2048 // columns
    grid = (int(triton.cdiv(codes.shape[0], rows)), int(triton.cdiv(width, columns)))
    launch(
        one_hot_kernel, grid, codes.device, codes, out, codes.shape[0], width,
        CODES=codes.shape[1], ROWS=rows, COLUMNS=columns, num_warps=4,
    )  # fmt: skip
    return out


@triton.jit
def sizes_kernel(chosen, node_ptr, list_ptr, sizes, count, SOME: tl.constexpr) -> None:
    """Write the numbers of nodes and of list entries of some graphs."""
    place = tl.program_id(0) * SOME + tl.arange(0, SOME)
    here = place < count
    graph = tl.load(chosen + place, mask=here, other=0)
    tl.store(sizes + place, tl.load(node_ptr + graph + 1) - tl.load(node_ptr + graph), mask=here)
    tl.store(sizes + count + place, tl.load(list_ptr + graph + 1) - tl.load(list_ptr + graph), mask=here)


@triton.jit
def assemble_kernel(
    chosen, ends, node_ptr, list_ptr, list_starts, all_members, all_labels, all_codes, substitutes,
    ptr, nodes, codes, starts, members, labels, count, rows, listed, width, together, kinds,
    CODES: tl.constexpr, SOME: tl.constexpr, MANY: tl.constexpr,
) -> None:  # fmt: skip
    """Assemble one graph, ``SOME`` nodes and ``MANY`` list entries at a time."""
    place = tl.program_id(0).to(tl.int64)
    graph = tl.load(chosen + place)
    node, size = _span(node_ptr, graph)
    listing, length = _span(list_ptr, graph)
    row = tl.load(ends + place) - size
    start = tl.load(ends + count + place) - length
    tl.store(ptr + place, row)
    for done in range(0, size, SOME):
        step = done + tl.arange(0, SOME)
        here = (step < size) & (row + step < rows)
        tl.store(nodes + row + step, node + step, mask=here)
        own = tl.load(list_starts + node + step, mask=here, other=0)
        tl.store(starts + row + step, start + own - listing, mask=here)
        for part in tl.static_range(CODES):
            code = tl.load(all_codes + (node + step) * CODES + part, mask=here, other=0)
            if substitutes is not None:
                code = tl.load(substitutes + place // together * width + code, mask=here, other=0)
            tl.store(codes + (row + step) * CODES + part, code.to(tl.int32), mask=here)
    for done in range(0, length, MANY):
        step = done + tl.arange(0, MANY)
        here = (step < length) & (start + step < listed)
        member = tl.load(all_members + listing + step, mask=here, other=0)
        tl.store(members + start + step, member + row, mask=here)
        if all_labels is not None:
            label = tl.load(all_labels + listing + step, mask=here, other=-1)
            counted = tl.where(label < 0, -1, label + place // together * kinds)
            tl.store(labels + start + step, counted, mask=here)
    # Each program clears a part of the unused capacity.
    last_row, last_member = tl.load(ends + count - 1), tl.load(ends + 2 * count - 1)
    if place == 0:
        tl.store(ptr + count, last_row)
    for done in range(last_row + place * SOME, rows + 1, count * SOME):
        step = done + tl.arange(0, SOME)
        tl.store(starts + step, last_member, mask=step <= rows)
        tl.store(nodes + step, 0, mask=step < rows)
        for part in tl.static_range(CODES):
            tl.store(codes + step * CODES + part, -1, mask=step < rows)
    for done in range(last_member + place * MANY, listed, count * MANY):
        step = done + tl.arange(0, MANY)
        tl.store(members + step, 0, mask=step < listed)
        if all_labels is not None:
            tl.store(labels + step, -1, mask=step < listed)


@triton.jit
def _span(ptr, segment):
    """Return the start and the length of a segment."""
    start = tl.load(ptr + segment)
    return start, tl.load(ptr + segment + 1) - start


@triton.jit
def one_hot_kernel(codes, out, count, width, CODES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr) -> None:
    """Write one block of the result."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.zeros([ROWS, COLUMNS], tl.float32)
    for part in tl.static_range(CODES):
        code = tl.load(codes + row * CODES + part, mask=row < count, other=-1)
        value = tl.where(code[:, None] == column[None, :], 1.0, value)
    there = (row < count)[:, None] & (column < width)[None, :]
    tl.store(out + row[:, None] * width + column[None, :], value, mask=there)
