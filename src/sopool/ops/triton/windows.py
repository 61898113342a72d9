"""Division of the work among programs, without the sizes of graphs on the host.

All graphs are placed on a line, each as long as its number of rows, plus ``COST`` for writing its result. Windows
divide this line into equal parts, and a program processes the graphs that start in its window. A graph of more than
``LONGEST`` rows (which is at least a window) is cut into pieces of that length, each processed by the window in which
it starts. So the work is balanced for any sizes, and the positions of the cuts do not depend on the other graphs.

A window has at most two cut graphs: one that started before it, whose piece comes first, and one that starts in it,
which comes last. Spare rows past the last graph, which pad the batch to a fixed shape, count as one more graph.
"""

from typing import NamedTuple

import triton
import triton.language as tl

COST = tl.constexpr(8)
PROBES = tl.constexpr(256)


class Cut(NamedTuple):
    """The length of a window, and that of the longest graph that is not cut."""

    window: int
    longest: int

    def windows(self, num_rows: int, num_graphs: int) -> int:
        """Return the number of windows."""
        return int(triton.cdiv(num_rows + COST.value * (num_graphs + 1), self.window))


@triton.jit
def first_graph(ptr: tl.tensor, num_graphs: tl.tensor, place: tl.tensor) -> tl.tensor:
    """Return the first graph that starts at ``place`` or later, by a search with ``PROBES`` probes per step."""
    low = tl.full((), 0, tl.int32)
    high = low + num_graphs + 1
    while low < high:
        step = (high - low + PROBES - 1) // PROBES
        probe = low + (tl.arange(0, PROBES) + 1) * step - 1
        start = tl.load(ptr + probe, mask=probe < high, other=0)
        before = (probe < high) & (start + COST * probe.to(tl.int64) < place)
        low += tl.sum(before.to(tl.int32), 0) * step
        high = tl.minimum(high, low + step - 1)
    return low


@triton.jit
def find_window(
    ptr: tl.tensor, num_rows: tl.tensor, num_graphs: tl.tensor, window: tl.tensor, WINDOW: tl.constexpr
) -> tl.tensor:
    """Return the first graph that starts in a window, and the first graph after it; assert that ``ptr`` is valid."""
    first = first_graph(ptr, num_graphs, window.to(tl.int64) * WINDOW)
    return first, end_window(ptr, num_rows, num_graphs, window, first, WINDOW)


@triton.jit
def end_window(
    ptr: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    window: tl.tensor,
    first: tl.tensor,
    WINDOW: tl.constexpr,
) -> tl.tensor:
    """Return the first graph after a window, given the first graph in it; assert that ``ptr`` is valid."""
    MOST: tl.constexpr = triton.next_power_of_2(triton.cdiv(WINDOW, COST))
    graph = first + tl.arange(0, MOST)
    start = tl.load(ptr + graph, mask=graph <= num_graphs, other=0)
    here = (graph <= num_graphs) & (start + COST * graph.to(tl.int64) < (window + 1).to(tl.int64) * WINDOW)
    # There are enough windows to check all of ptr if each window checks MOST adjacent pairs.
    look = window * MOST + tl.arange(0, MOST)
    one = tl.load(ptr + look, mask=look <= num_graphs, other=0)
    next_one = tl.load(ptr + look + 1, mask=look < num_graphs, other=num_rows)
    right = (one <= next_one) & (one >= 0) & ((look > 0) | (one == 0))
    tl.device_assert(right, "ptr must start at 0, never decrease and end at the number of rows or before.")
    return first + tl.sum(here.to(tl.int32), 0)


@triton.jit
def find_pieces(
    ptr: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    window: tl.tensor,
    first: tl.tensor,
    after: tl.tensor,
    item: tl.tensor,
    WINDOW: tl.constexpr,
    LONGEST: tl.constexpr,
) -> tl.tensor:
    """Return the graph of each item of a window, the begin and the end of its rows, and whether they are only a piece.

    Item 0 is the piece of a graph that started earlier; the others are the graphs from ``first`` on. An item that does
    not exist has graph -1 and no rows.
    """
    graph = first - 1 + item
    known = (graph >= 0) & (graph < after)
    start = tl.load(ptr + graph, mask=known, other=0)
    stop = tl.load(ptr + graph + 1, mask=known & (graph < num_graphs), other=num_rows)
    place = window.to(tl.int64) * WINDOW
    ahead = tl.maximum(place - start - COST * graph.to(tl.int64), 0)
    begin = start + tl.where(item == 0, (ahead + LONGEST - 1) // LONGEST * LONGEST, 0)
    starts_here = (begin < stop) & (begin + COST * graph.to(tl.int64) < place + WINDOW)
    exists = known & ((item > 0) | starts_here)
    end = tl.minimum(begin + LONGEST, stop)
    is_cut = exists & (stop - start > LONGEST)
    return tl.where(exists, graph, -1), tl.where(exists, begin, 0), tl.where(exists, end, 0), is_cut


@triton.jit
def note_cut(
    ptr: tl.tensor,
    cut: tl.tensor,
    num_graphs: tl.tensor,
    window: tl.tensor,
    first: tl.tensor,
    after: tl.tensor,
    LONGEST: tl.constexpr,
) -> tl.tensor:
    """Store the cut graph that starts in a window, -1 if there is none, for :func:`add_pieces_kernel`."""
    last = after - 1
    known = (after > first) & (last < num_graphs)
    start = tl.load(ptr + last, mask=known, other=0)
    stop = tl.load(ptr + last + 1, mask=known, other=0)
    tl.store(cut + window, tl.where(stop - start > LONGEST, last, -1))


@triton.jit
def add_pieces_kernel(
    parts: tl.tensor,
    cut: tl.tensor,
    ptr: tl.tensor,
    out: tl.tensor,
    size: tl.tensor,
    WINDOW: tl.constexpr,
    LONGEST: tl.constexpr,
    PIECES: tl.constexpr,
    SIZE: tl.constexpr,
) -> None:
    """Add up, in order, the pieces of the graph that starts in a window, if it was cut.

    ``parts`` ``[windows, 2, size]`` has those of the first and the last cut graph of each window; ``out`` is ``[G,
    size]``.
    """
    graph = tl.load(cut + tl.program_id(0)).to(tl.int64)
    column = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    if graph >= 0:
        start, stop = tl.load(ptr + graph), tl.load(ptr + graph + 1)
        pieces = (stop - start + LONGEST - 1) // LONGEST
        total = tl.zeros((PIECES, SIZE), parts.dtype.element_ty)
        for done in range(0, pieces, PIECES):
            piece = done + tl.arange(0, PIECES)
            window = (start + COST * graph + piece * LONGEST) // WINDOW
            slot = 2 * window + (piece == 0).to(tl.int64)
            inside = (piece < pieces)[:, None] & (column < size)[None, :]
            total += tl.load(parts + slot[:, None] * size + column[None, :], mask=inside, other=0)
        tl.store(out + graph * size + column, tl.sum(total, 0), mask=column < size)
