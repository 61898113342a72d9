"""Kernels for X_g^T (X_g query + bias) of every graph in one pass over x, and for its gradients in another.

They serve a single query; several queries use matrix products. Rows are kept in registers as several tensors of a few
columns each, since the next power of two of all columns would often be too many. All columns are needed at once,
because the scores are sums over all columns and the result of each graph is as wide as its rows.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton import bilinear
from sopool.ops.triton.apply import segment_apply
from sopool.ops.triton.launching import Pieces, append, launch, lay_out, programs, wide
from sopool.ops.triton.projection import projection_backward
from sopool.ops.triton.windows import Cut, find_pieces, find_window, note_cut

WIDEST = 1024
"""The largest number of channels for which a few rows fit into the registers."""


class Config(NamedTuple):
    """The block sizes of :func:`attend_kernel`."""

    window: int
    longest: int
    rows: int
    channels: int
    num_warps: int = 1
    num_stages: int = 1
    each: int = 12


def choose(x: Tensor) -> Config:
    """Return the block sizes, which depend on width and dtype only, so they are the same for a graph in any batch."""
    f = x.shape[1]
    channels = next(c for c in (32, 64, 128) if triton.cdiv(f, c) <= 8)
    num_warps = 1 if f <= 256 else 4
    # As many programs as registers allow to run at once: one more would run after all the others.
    return Config(128, 256, 8 if f <= 512 else 4, channels, num_warps, each=12 // num_warps)


def _serves(x: Tensor, query: Tensor) -> bool:
    """Return whether these kernels can be used: for one query, and rows that are not too wide."""
    return query.shape[1] == 1 and x.shape[1] <= WIDEST


def segment_attend(
    x: Tensor,
    query: Tensor,
    bias: Tensor | None,
    ptr: Tensor,
    order: Tensor | None = None,
    config: Config | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the pooled values ``[G, F, K]`` and the scores ``[N, K]`` in segment order."""
    if not _serves(x, query):
        return bilinear.segment_attend(x, query, bias, ptr, order)
    c = config or choose(x)
    x = lay_out(x)
    f = x.shape[1]
    num_graphs = ptr.numel() - 1
    out = x.new_empty(num_graphs, f, 1)
    score = x.new_empty(x.shape[0], 1)
    pieces = Pieces(x, ptr, f, Cut(c.window, c.longest))
    launch(
        attend_kernel, (pieces.windows,), x.device, x, query, bias, ptr, order, out, score, pieces.values,
        pieces.graphs, x.shape[0], num_graphs, f, x.stride(0), query.stride(0), WINDOW=c.window, LONGEST=c.longest,
        ROWS=c.rows, CHANNELS=c.channels, TILES=int(triton.cdiv(f, c.channels)), EXACT=x.dtype == torch.float64,
        STAGES=c.num_stages, num_warps=c.num_warps,
    )  # fmt: skip
    pieces.add_into(out)
    return out, score


def segment_attend_backward(
    x: Tensor,
    query: Tensor,
    score: Tensor,
    d_pooled: Tensor,
    d_score: Tensor | None,
    ptr: Tensor,
    order: Tensor | None = None,
    with_query: bool = True,
    with_bias: bool = True,
    config: Config | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, query and bias, the last two empty if not requested.

    dX_g = score_g d_pooled_g^T + s_g query^T with s_g = d_score_g + X_g d_pooled_g.
    """
    if not _serves(x, query):
        gradient = segment_apply(x, d_pooled.transpose(1, 2), ptr, y_order=order)
        gradient = gradient if d_score is None else gradient.add_(d_score)
        dx = segment_apply(score, d_pooled, ptr, out_order=order)
        _, d_query = projection_backward(x, query, gradient, ptr, order, with_weight=with_query, into=dx)
        return dx, d_query, gradient.sum(0) if with_bias else x.new_empty(0)
    c = config or choose(x)
    x = lay_out(x)
    f = x.shape[1]
    num_graphs = ptr.numel() - 1
    windows = Cut(c.window, c.longest).windows(x.shape[0], num_graphs)
    count = min(windows, programs(x.device, c.each))
    dx = x.new_empty(x.shape)
    parts = x.new_empty(count, f + 1, dtype=wide(x))
    launch(
        attend_backward_kernel, (count,), x.device, x, query, score, d_pooled, d_score, ptr, order, dx, parts,
        x.shape[0], num_graphs, windows, f, x.stride(0), query.stride(0), *d_pooled.stride()[:2],
        WINDOW=c.window, LONGEST=c.longest, ROWS=c.rows, CHANNELS=c.channels, TILES=int(triton.cdiv(f, c.channels)),
        EXACT=x.dtype == torch.float64, STAGES=c.num_stages, num_warps=c.num_warps,
    )  # fmt: skip
    d_query = parts[:, :f].sum(0).to(x.dtype).unsqueeze(1) if with_query else x.new_empty(0)
    return dx, d_query, parts[:, f:].sum(0).to(x.dtype) if with_bias else x.new_empty(0)


@triton.jit
def zeros(ROWS: tl.constexpr, CHANNELS: tl.constexpr, TILES: tl.constexpr, EXACT: tl.constexpr) -> tl.tensor:
    """Return ``TILES`` zero tensors ``[ROWS, CHANNELS]`` to accumulate sums in."""
    sums = ()
    for _ in tl.static_range(TILES):
        sums = append(sums, tl.zeros((ROWS, CHANNELS), tl.float64 if EXACT else tl.float32))
    return sums


@triton.jit
def load_vector(
    vector: tl.tensor, stride: tl.tensor, f: tl.tensor, CHANNELS: tl.constexpr, TILES: tl.constexpr
) -> tl.tensor:
    """Load the f entries of a vector as ``TILES`` tensors of ``CHANNELS`` entries each."""
    pieces = ()
    for tile in tl.static_range(TILES):
        channel = tile * CHANNELS + tl.arange(0, CHANNELS)
        piece = tl.load(vector + channel * stride, mask=channel < f, other=0)
        pieces = append(pieces, piece.to(tl.float64 if piece.dtype == tl.float64 else tl.float32))
    return pieces


@triton.jit
def load_rows(
    source: tl.tensor, inside: tl.tensor, f: tl.constexpr, CHANNELS: tl.constexpr, TILES: tl.constexpr
) -> tl.tensor:
    """Load the rows at ``source`` as ``TILES`` tensors of ``CHANNELS`` columns each."""
    pieces = ()
    for tile in tl.static_range(TILES):
        channel = tile * CHANNELS + tl.arange(0, CHANNELS)
        piece = tl.load(source[:, None] + channel[None, :], mask=inside[:, None] & (channel < f)[None, :], other=0)
        pieces = append(pieces, piece.to(tl.float64 if piece.dtype == tl.float64 else tl.float32))
    return pieces


@triton.jit
def dot_rows(rows: tl.tensor, vector: tl.tensor, TILES: tl.constexpr) -> tl.tensor:
    """Return the dot product of each row and a vector."""
    total = rows[0] * vector[0][None, :]
    for tile in tl.static_range(1, TILES):
        total += rows[tile] * vector[tile][None, :]
    return tl.sum(total, 1)


@triton.jit(debug=True, do_not_specialize=["num_rows", "num_graphs"])
def attend_kernel(
    x: tl.tensor,
    query: tl.tensor,
    bias: tl.tensor,
    ptr: tl.tensor,
    order: tl.tensor,
    out: tl.tensor,
    score: tl.tensor,
    parts: tl.tensor,
    cut: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    f: tl.constexpr,
    x_row: tl.tensor,
    q_row: tl.tensor,
    WINDOW: tl.constexpr,
    LONGEST: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
    TILES: tl.constexpr,
    EXACT: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """Process the graphs of a window one after the other, ``ROWS`` rows at a time."""
    window = tl.program_id(0)
    kind = tl.float64 if EXACT else tl.float32
    first, after = find_window(ptr, num_rows, num_graphs, window, WINDOW)
    note_cut(ptr, cut, num_graphs, window, first, after, LONGEST)
    after = tl.minimum(after, num_graphs)
    queries = load_vector(query, q_row, f, CHANNELS, TILES)
    constant = tl.full((), 0, kind) if bias is None else tl.load(bias).to(kind)
    for number in range(0, after - first + 1):
        item = number + 0 * first  # + 0 makes it a tensor in the interpreter, too
        graph, begin, end, is_cut = find_pieces(ptr, num_rows, num_graphs, window, first, after, item, WINDOW, LONGEST)
        sums = zeros(ROWS, CHANNELS, TILES, EXACT)
        size = (end - begin).to(tl.int32)
        for done in tl.range(0, size, ROWS, num_stages=STAGES):
            place = done + tl.arange(0, ROWS)
            inside = place < size
            if order is None:
                source = x + begin * x_row + place * x_row
            else:
                source = x + tl.load(order + begin + place, mask=inside, other=0) * x_row
            rows = load_rows(source, inside, f, CHANNELS, TILES)
            scores = dot_rows(rows, queries, TILES) + constant
            tl.store(score + begin + place, scores.to(score.dtype.element_ty), mask=inside)
            more = ()
            for tile in tl.static_range(TILES):
                more = append(more, sums[tile] + scores[:, None] * rows[tile])
            sums = more
        if graph >= 0:
            for tile in tl.static_range(TILES):
                channel = tile * CHANNELS + tl.arange(0, CHANNELS)
                total = tl.sum(sums[tile], 0)
                if is_cut:
                    slot = (2 * window + (item > 0).to(tl.int32)).to(tl.int64)
                    tl.store(parts + slot * f + channel, total, mask=channel < f)
                else:
                    at = out + graph.to(tl.int64) * f + channel
                    tl.store(at, total.to(out.dtype.element_ty), mask=channel < f)


@triton.jit(debug=True, do_not_specialize=["num_rows", "num_graphs", "windows"])
def attend_backward_kernel(
    x: tl.tensor,
    query: tl.tensor,
    score: tl.tensor,
    d_pooled: tl.tensor,
    d_score: tl.tensor,
    ptr: tl.tensor,
    order: tl.tensor,
    dx: tl.tensor,
    parts: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    windows: tl.tensor,
    f: tl.constexpr,
    x_row: tl.tensor,
    q_row: tl.tensor,
    d_graph: tl.tensor,
    d_row: tl.tensor,
    WINDOW: tl.constexpr,
    LONGEST: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
    TILES: tl.constexpr,
    EXACT: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """Process every n-th window, for n programs; ``parts`` ``[programs, f + 1]`` has terms of d_query and d_bias."""
    program = tl.program_id(0)
    kind = tl.float64 if EXACT else tl.float32
    queries = load_vector(query, q_row, f, CHANNELS, TILES)
    sums = zeros(ROWS, CHANNELS, TILES, EXACT)
    bias = tl.zeros((ROWS,), kind)
    for turn in range(program, windows, tl.num_programs(0)):
        window = turn + 0 * program  # + 0 makes it a tensor in the interpreter, too
        first, after = find_window(ptr, num_rows, num_graphs, window, WINDOW)
        for number in range(0, after - first + 1):
            graph, begin, end, _ = find_pieces(
                ptr, num_rows, num_graphs, window, first, after, number + 0 * first, WINDOW, LONGEST
            )
            known = (graph >= 0) & (graph < num_graphs)
            slopes = load_vector(
                d_pooled + tl.where(known, graph, 0).to(tl.int64) * d_graph,
                d_row, tl.where(known, f, 0), CHANNELS, TILES,
            )  # fmt: skip
            size = (end - begin).to(tl.int32)
            counted = tl.where(known, size, 0)
            for done in tl.range(0, size, ROWS, num_stages=STAGES):
                place = done + tl.arange(0, ROWS)
                inside = place < size
                row = begin + place if order is None else tl.load(order + begin + place, mask=inside, other=0)
                rows = load_rows(x + row * x_row, place < counted, f, CHANNELS, TILES)
                scores = tl.load(score + begin + place, mask=place < counted, other=0).to(kind)
                slope = dot_rows(rows, slopes, TILES)
                if d_score is not None:
                    slope += tl.load(d_score + begin + place, mask=place < counted, other=0).to(kind)
                bias += slope
                more = ()
                for tile in tl.static_range(TILES):
                    channel = tile * CHANNELS + tl.arange(0, CHANNELS)
                    both = scores[:, None] * slopes[tile][None, :] + slope[:, None] * queries[tile][None, :]
                    tl.store(
                        dx + (row * f)[:, None] + channel[None, :],
                        both.to(dx.dtype.element_ty),
                        mask=inside[:, None] & (channel < f)[None, :],
                    )
                    more = append(more, sums[tile] + slope[:, None] * rows[tile])
                sums = more
    at = parts + program.to(tl.int64) * (f + 1)
    for tile in tl.static_range(TILES):
        channel = tile * CHANNELS + tl.arange(0, CHANNELS)
        tl.store(at + channel, tl.sum(sums[tile], 0), mask=channel < f)
    tl.store(at + f, tl.sum(bias, 0))
