"""Kernels for X_g^T Y_g of every graph."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.launching import Pieces, how, launch, lay_out, width
from sopool.ops.triton.windows import Cut, find_pieces, find_window, note_cut


class Config(NamedTuple):
    """The block sizes of :func:`gram_kernel`."""

    window: int
    longest: int
    graphs: int
    rows: int
    p: int
    q: int
    num_warps: int = 4


def choose(x: Tensor, q: int) -> Config:
    """Return the block sizes, which depend on widths and dtype only, so they are the same for a graph in any batch."""
    p = x.shape[1]
    if x.dtype == torch.float64:
        return Config(256, 256, 4, 16, width(p, 8), width(q, 8))
    wide_p, wide_q = (width(n, 64 if n % 64 > 32 or n % 64 == 0 else 32) for n in (p, q))
    # The partial results of cut graphs must stay small compared to x, so larger results have longer pieces.
    longest = max(256, int(triton.next_power_of_2(8 * p * q // (p + q))))
    # One warp computes a small result: it need not synchronize, and many programs hide each other's latency.
    return Config(longest, longest, 1, 32, wide_p, wide_q, 1 if wide_p * wide_q <= 1024 else 4)


def segment_gram(
    x: Tensor,
    y: Tensor,
    ptr: Tensor,
    order: Tensor | None = None,
    config: Config | None = None,
    center: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return X_g^T Y_g of every graph: ``[N, P]``, ``[N, Q]`` to ``[G, P, Q]``.

    With ``order``, graph g has the rows ``order[ptr[g]:ptr[g + 1]]``. ``center`` ``[G, P]``, contiguous, is subtracted
    from the rows of each graph first; this requires that y is x. ``dtype`` is that of the result, by default that of x.
    """
    p, q, num_graphs = x.shape[1], y.shape[1], ptr.numel() - 1
    c = config or choose(x, q)
    same = x is y
    x = lay_out(x)
    y = x if same else lay_out(y)
    out = x.new_empty(num_graphs, p, q, dtype=dtype or x.dtype)
    pieces = Pieces(x, ptr, p * q, Cut(c.window, c.longest))
    grid = (pieces.windows, int(triton.cdiv(p, c.p) * triton.cdiv(q, c.q)))
    launch(
        gram_kernel, grid, x.device, x, y, center, ptr, order, out, pieces.values, pieces.graphs, x.shape[0],
        num_graphs, p, q, x.stride(0), y.stride(0), WINDOW=c.window, LONGEST=c.longest, GRAPHS=c.graphs, ROWS=c.rows,
        P=c.p, Q=c.q, SAME=same and grid[1] == 1, HOW=how(x), num_warps=c.num_warps,
    )  # fmt: skip
    pieces.add_into(out)
    return out


@triton.jit
def multiply_batch(left: tl.tensor, right: tl.tensor, total: tl.tensor, HOW: tl.constexpr) -> tl.tensor:
    """Return total + left right with precision ``HOW``: ``[b, m, k]``, ``[b, k, n]`` to ``[b, m, n]``."""
    if HOW == "exact":
        total += tl.sum(left[:, :, :, None] * right[:, None, :, :], 2)
    elif HOW == "widen":
        total = tl.dot(left.to(tl.float32), right.to(tl.float32), total)
    else:
        total = tl.dot(left, right, total, input_precision=HOW)
    return total


@triton.jit
def locate(
    x: tl.tensor, order: tl.tensor, x_row: tl.tensor, begin: tl.tensor, place: tl.tensor, inside: tl.tensor
) -> tl.tensor:
    """Return the addresses of rows begin + place of some graphs: ``[GRAPHS]``, ``[ROWS]`` to ``[GRAPHS, ROWS]``."""
    if order is None:  # small offsets from one address need fewer registers
        at = (x + begin * x_row)[:, None] + (place * x_row)[None, :]
    else:
        at = x + tl.load(order + begin[:, None] + place[None, :], mask=inside, other=0) * x_row
    return at


@triton.jit
def load_center(center: tl.tensor, graph: tl.tensor, column: tl.tensor, width: tl.tensor) -> tl.tensor:
    """Load some columns of the centers of some graphs, zero for graph -1: ``[graphs, 1, columns]``."""
    at = center + graph.to(tl.int64)[:, None] * width + column[None, :]
    values = tl.load(at, mask=(graph >= 0)[:, None] & (column < width)[None, :], other=0)
    return tl.expand_dims(values, 1)


@triton.jit
def take_off(rows: tl.tensor, center: tl.tensor, inside: tl.tensor) -> tl.tensor:
    """Subtract the center of its graph from each row, in the precision of the center; zero where there is no row."""
    return tl.where(inside[:, :, None], rows.to(center.dtype) - center, 0).to(rows.dtype)


@triton.jit
def gram_of_pieces(
    x: tl.tensor,
    y: tl.tensor,
    x_order: tl.tensor,
    y_order: tl.tensor,
    begin: tl.tensor,
    end: tl.tensor,
    column_p: tl.tensor,
    column_q: tl.tensor,
    p: tl.tensor,
    q: tl.tensor,
    x_row: tl.tensor,
    y_row: tl.tensor,
    GRAPHS: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    SAME: tl.constexpr,
    HOW: tl.constexpr,
    center: tl.tensor = None,
    graph: tl.tensor = None,
) -> tl.tensor:
    """Return X^T Y of the rows from begin to end ``[GRAPHS]`` for some columns of each: ``[GRAPHS, P, Q]``.

    ``center`` ``[G, p]`` of each ``graph`` ``[GRAPHS]``, if given, is subtracted from all rows.
    """
    if center is not None:
        left_center = load_center(center, graph, column_p, p)
        right_center = load_center(center, graph, column_q, q)
    total = tl.zeros((GRAPHS, P, Q), tl.float64 if HOW == "exact" else tl.float32)
    size = (end - begin).to(tl.int32)
    for done in range(0, tl.max(size, 0), ROWS):
        place = done + tl.arange(0, ROWS)
        inside = place[None, :] < size[:, None]
        left = locate(x, x_order, x_row, begin, place, inside)
        lefts = tl.load(
            left[:, :, None] + column_p[None, None, :],
            mask=inside[:, :, None] & (column_p < p)[None, None, :],
            other=0,
        )
        if center is not None:
            lefts = take_off(lefts, left_center, inside)
        if SAME:
            rights = lefts
        else:
            right = locate(y, y_order, y_row, begin, place, inside)
            rights = tl.load(
                right[:, :, None] + column_q[None, None, :],
                mask=inside[:, :, None] & (column_q < q)[None, None, :],
                other=0,
            )
            if center is not None:
                rights = take_off(rights, right_center, inside)
        total = multiply_batch(tl.trans(lefts, (0, 2, 1)), rights, total, HOW)
    return total


@triton.jit
def store_pieces(
    out: tl.tensor,
    parts: tl.tensor,
    total: tl.tensor,
    graph: tl.tensor,
    is_cut: tl.tensor,
    slot: tl.tensor,
    column_p: tl.tensor,
    column_q: tl.tensor,
    p: tl.tensor,
    q: tl.tensor,
) -> None:
    """Store the results of whole graphs in ``out`` ``[G, p, q]``, and those of pieces in their slot of ``parts``."""
    place = column_p[None, :, None].to(tl.int64) * q + column_q[None, None, :]
    inside = (column_p < p)[None, :, None] & (column_q < q)[None, None, :]
    whole = (graph >= 0) & ~is_cut
    at = graph.to(tl.int64) * p * q
    tl.store(out + at[:, None, None] + place, total.to(out.dtype.element_ty), mask=whole[:, None, None] & inside)
    if tl.max(is_cut.to(tl.int32), 0) > 0:
        at = slot.to(tl.int64) * p * q
        tl.store(parts + at[:, None, None] + place, total, mask=is_cut[:, None, None] & inside)


@triton.jit(debug=True, do_not_specialize=["num_rows", "num_graphs"])
def gram_kernel(
    x: tl.tensor,
    y: tl.tensor,
    center: tl.tensor,
    ptr: tl.tensor,
    order: tl.tensor,
    out: tl.tensor,
    parts: tl.tensor,
    cut: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    p: tl.tensor,
    q: tl.tensor,
    x_row: tl.tensor,
    y_row: tl.tensor,
    WINDOW: tl.constexpr,
    LONGEST: tl.constexpr,
    GRAPHS: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    SAME: tl.constexpr,
    HOW: tl.constexpr,
) -> None:
    """Process a window of graphs, ``GRAPHS`` graphs, ``ROWS`` rows of each and ``P`` by ``Q`` results at a time."""
    window, tile = tl.program_id(0), tl.program_id(1)
    tiles = tl.cdiv(q, Q)
    column_p = tile // tiles * P + tl.arange(0, P)
    column_q = tile % tiles * Q + tl.arange(0, Q)
    first, after = find_window(ptr, num_rows, num_graphs, window, WINDOW)
    if tile == 0:
        note_cut(ptr, cut, num_graphs, window, first, after, LONGEST)
    after = tl.minimum(after, num_graphs)
    for done in range(0, after - first + 1, GRAPHS):
        item = done + tl.arange(0, GRAPHS)
        graph, begin, end, is_cut = find_pieces(ptr, num_rows, num_graphs, window, first, after, item, WINDOW, LONGEST)
        total = gram_of_pieces(
            x, y, order, order, begin, end, column_p, column_q, p, q, x_row, y_row,
            GRAPHS, ROWS, P, Q, SAME, HOW, center, graph,
        )  # fmt: skip
        slot = 2 * window + (item > 0).to(tl.int32)
        store_pieces(out, parts, total, graph, is_cut, slot, column_p, column_q, p, q)
