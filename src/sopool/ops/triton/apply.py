"""Kernels for S_g y_i of every row i of every graph g."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.gram import load_center, locate, multiply_batch, take_off
from sopool.ops.triton.launching import how, launch, lay_out, width
from sopool.ops.triton.windows import Cut, find_pieces, find_window


class Config(NamedTuple):
    """The block sizes of :func:`apply_kernel`."""

    window: int
    graphs: int
    rows: int
    p: int
    q: int
    num_warps: int = 4


def choose(y: Tensor, p: int) -> Config:
    """Return the block sizes, which depend on the widths and the dtype only."""
    if y.dtype == torch.float64:
        return Config(256, 4, 16, width(p, 8), width(y.shape[1], 8))
    wide_p = width(p, 64 if p % 64 > 32 or p % 64 == 0 else 32)
    wide_q = width(y.shape[1], 32)
    return Config(256, 1, 32, wide_p, wide_q, 1 if wide_p * wide_q <= 1024 else 4)


def segment_apply(
    y: Tensor,
    s: Tensor,
    ptr: Tensor,
    symmetrize: bool = False,
    y_order: Tensor | None = None,
    out_order: Tensor | None = None,
    config: Config | None = None,
    center: Tensor | None = None,
) -> Tensor:
    """Return S_g y_i, or (S_g + S_g^T) y_i, zero for spare rows: ``[N, Q]``, ``[G, P, Q]`` to ``[N, P]``.

    ``y_order`` and ``out_order`` sort the rows of y and of the result by segment, if they are not sorted. ``center``
    ``[G, Q]``, contiguous, is subtracted from the rows of each graph first.
    """
    p, num_graphs = s.shape[1], ptr.numel() - 1
    c = config or choose(y, p)
    y = lay_out(y)
    out = y.new_empty(y.shape[0], p)
    grid = (Cut(c.window, c.window).windows(y.shape[0], num_graphs), int(triton.cdiv(p, c.p)))
    launch(
        apply_kernel, grid, y.device, y, s, center, ptr, y_order, out_order, out, y.shape[0], num_graphs, p, y.shape[1],
        y.stride(0), *s.stride(), WINDOW=c.window, GRAPHS=c.graphs, ROWS=c.rows, P=c.p, Q=c.q, WHOLE=y.shape[1] <= c.q,
        SYMMETRIZE=symmetrize,
        HOW=how(y), num_warps=c.num_warps,
    )  # fmt: skip
    return out


@triton.jit
def load_turned(
    s: tl.tensor,
    graph: tl.tensor,
    column_p: tl.tensor,
    column_q: tl.tensor,
    p: tl.tensor,
    q: tl.tensor,
    s_graph: tl.tensor,
    s_row: tl.tensor,
    s_column: tl.tensor,
    SUM: tl.constexpr,
) -> tl.tensor:
    """Load S^T, or S^T + S, of some graphs, zero for graph -1: ``[graphs, Q, P]``."""
    at = (s + graph.to(tl.int64) * s_graph)[:, None, None]
    inside = (graph >= 0)[:, None, None] & (column_q < q)[None, :, None] & (column_p < p)[None, None, :]
    turned = tl.load(
        at + (column_q * s_column)[None, :, None] + (column_p * s_row)[None, None, :], mask=inside, other=0
    )
    if SUM:
        turned += tl.load(
            at + (column_q * s_row)[None, :, None] + (column_p * s_column)[None, None, :], mask=inside, other=0
        )
    return turned


@triton.jit(debug=True, do_not_specialize=["num_rows", "num_graphs"])
def apply_kernel(
    y: tl.tensor,
    s: tl.tensor,
    center: tl.tensor,
    ptr: tl.tensor,
    y_order: tl.tensor,
    out_order: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    p: tl.tensor,
    q: tl.tensor,
    y_row: tl.tensor,
    s_graph: tl.tensor,
    s_row: tl.tensor,
    s_column: tl.tensor,
    WINDOW: tl.constexpr,
    GRAPHS: tl.constexpr,
    ROWS: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    WHOLE: tl.constexpr,
    SYMMETRIZE: tl.constexpr,
    HOW: tl.constexpr,
) -> None:
    """Process a window of graphs, ``GRAPHS`` graphs, ``ROWS`` rows of each and ``P`` results per row at a time.

    With ``WHOLE``, all of q fits into ``Q``, so S is read once for all rows.
    """
    window = tl.program_id(0)
    column_p = tl.program_id(1) * P + tl.arange(0, P)
    column_q = tl.arange(0, Q)
    # The sum of two half-precision matrices would be rounded, so multiply by each of them separately.
    TWICE: tl.constexpr = SYMMETRIZE and s.dtype.element_ty.primitive_bitwidth == 16
    SUM: tl.constexpr = SYMMETRIZE and not TWICE
    first, after = find_window(ptr, num_rows, num_graphs, window, WINDOW)
    for item in range(0, after - first + 1, GRAPHS):
        graph, begin, end, _ = find_pieces(
            ptr, num_rows, num_graphs, window, first, after, item + tl.arange(0, GRAPHS), WINDOW, WINDOW
        )
        graph = tl.where(graph < num_graphs, graph, -1)
        if WHOLE:
            turned = load_turned(s, graph, column_p, column_q, p, q, s_graph, s_row, s_column, SUM)
            if TWICE:
                plain = load_turned(s, graph, column_p, column_q, p, q, s_graph, s_column, s_row, False)
            if center is not None:
                middle = load_center(center, graph, column_q, q)
        size = (end - begin).to(tl.int32)
        for done in range(0, tl.max(size, 0), ROWS):
            place = done + tl.arange(0, ROWS)
            inside = place[None, :] < size[:, None]
            source = locate(y, y_order, y_row, begin, place, inside)
            target = locate(out, out_order, p, begin, place, inside)
            known = inside & (graph >= 0)[:, None]
            total = tl.zeros((GRAPHS, ROWS, P), tl.float64 if HOW == "exact" else tl.float32)
            if WHOLE:
                rows = tl.load(
                    source[:, :, None] + column_q[None, None, :],
                    mask=known[:, :, None] & (column_q < q)[None, None, :],
                    other=0,
                )
                if center is not None:
                    rows = take_off(rows, middle, known)
                total = multiply_batch(rows, turned, total, HOW)
                if TWICE:
                    total = multiply_batch(rows, plain, total, HOW)
            else:
                for begin_q in range(0, q, Q):
                    some_q = begin_q + column_q
                    rows = tl.load(
                        source[:, :, None] + some_q[None, None, :],
                        mask=known[:, :, None] & (some_q < q)[None, None, :],
                        other=0,
                    )
                    if center is not None:
                        rows = take_off(rows, load_center(center, graph, some_q, q), known)
                    part = load_turned(s, graph, column_p, some_q, p, q, s_graph, s_row, s_column, SUM)
                    total = multiply_batch(rows, part, total, HOW)
                    if TWICE:
                        part = load_turned(s, graph, column_p, some_q, p, q, s_graph, s_column, s_row, False)
                        total = multiply_batch(rows, part, total, HOW)
            tl.store(
                target[:, :, None] + column_p[None, None, :],
                total.to(out.dtype.element_ty),
                mask=inside[:, :, None] & (column_p < p)[None, None, :],
            )
