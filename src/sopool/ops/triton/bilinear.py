"""(X_g W)^T (X_g W) or X_g^T (X_g W + b) of every graph, reading x once."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.gram import gram_of_pieces, store_pieces
from sopool.ops.triton.launching import Pieces, append, how, launch, lay_out, programs, width
from sopool.ops.triton.projection import product
from sopool.ops.triton.windows import Cut, end_window, find_pieces, first_graph, note_cut


class Config(NamedTuple):
    """How the forward work is cut: see :func:`bilinear_kernel`."""

    window: int
    longest: int
    block: int
    channels: int
    graphs: int
    rows: int
    rank: int
    num_warps: int = 4
    num_stages: int = 1
    maxnreg: int | None = None
    each: int = 3
    gram_stages: int = 1


MOST_KEPT = 6144
"""Weights up to which they are kept at hand for all rows, twice: what was rounded off to multiply goes beside."""


def choose(x: Tensor, rank: int) -> Config:
    """By widths and type alone: the same for a graph in any batch."""
    if x.dtype == torch.float64:
        return Config(256, 256, 16, 8, 4, 16, 8)
    wide_rank = width(rank, 64)
    longest = max(256, int(triton.next_power_of_2(4 * rank)))
    few = wide_rank <= 32
    return Config(longest, longest, 64, width(x.shape[1], 32), 4 if few else 1, 16, wide_rank)


def segment_bilinear(
    x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None = None, config: Config | None = None
) -> tuple[Tensor, Tensor]:
    """P_g^T P_g and P = X W, this in segment order: [N, f], [f, r] -> [G, r, r], [N, r]."""
    return _launch(x, weight, None, ptr, order, True, config)


def segment_attend(
    x: Tensor,
    query: Tensor,
    bias: Tensor | None,
    ptr: Tensor,
    order: Tensor | None = None,
    config: Config | None = None,
) -> tuple[Tensor, Tensor]:
    """X_g^T P_g and the scores P = X query + bias, these in segment order: [N, f], [f, k] -> [G, f, k], [N, k]."""
    return _launch(x, query, bias, ptr, order, False, config)


def _launch(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    ptr: Tensor,
    order: Tensor | None,
    mapped_twice: bool,
    config: Config | None,
) -> tuple[Tensor, Tensor]:
    (f, rank), num_graphs = weight.shape, ptr.numel() - 1
    height = rank if mapped_twice else f
    c = config or choose(x, rank)
    x = lay_out(x)
    out, mapped = x.new_empty(num_graphs, height, rank), x.new_empty(x.shape[0], rank)
    pieces = Pieces(x, ptr, height * rank, Cut(c.window, c.longest))
    tiles, ranks = int(triton.cdiv(f, c.channels)), int(triton.cdiv(rank, c.rank))
    launch(
        bilinear_kernel, (min(pieces.windows, programs(x.device, c.each)),), x.device, x, weight, bias, ptr, order,
        mapped, out, pieces.values, pieces.graphs, x.shape[0], num_graphs, pieces.windows, f, rank, height, x.stride(0),
        *weight.stride(), WINDOW=c.window, LONGEST=c.longest, BLOCK=c.block, CHANNELS=c.channels, TILES=tiles,
        KEEP=ranks == 1 and tiles * c.channels * c.rank <= MOST_KEPT, GRAPHS=c.graphs, ROWS=c.rows, RANK=c.rank,
        RANKS=ranks, HEIGHTS=int(triton.cdiv(height, c.rank)), TWICE=mapped_twice, HOW=how(x), STAGES=c.num_stages,
        GRAM_STAGES=c.gram_stages, num_warps=c.num_warps, num_stages=c.num_stages, maxnreg=c.maxnreg,
    )  # fmt: skip
    pieces.add_into(out)
    return out, mapped


@triton.jit
def load_weights(
    weight: tl.tensor,
    channels: tl.tensor,
    column: tl.tensor,
    f: tl.tensor,
    rank: tl.tensor,
    w_row: tl.tensor,
    w_column: tl.tensor,
) -> tl.tensor:
    """Some rows and columns of W, turned: the matrix unit wants what is summed over side by side."""
    return tl.load(
        weight + (channels * w_row)[None, :] + (column * w_column)[:, None],
        mask=(channels < f)[None, :] & (column < rank)[:, None],
        other=0,
    )


@triton.jit
def keep_weights(
    weight: tl.tensor,
    column: tl.tensor,
    f: tl.tensor,
    rank: tl.tensor,
    w_row: tl.tensor,
    w_column: tl.tensor,
    CHANNELS: tl.constexpr,
    TILES: tl.constexpr,
) -> tl.tensor:
    """Some columns of W, turned, ``CHANNELS`` of its rows in each of ``TILES`` tensors."""
    kept = ()
    for tile in tl.static_range(TILES):
        channels = tile * CHANNELS + tl.arange(0, CHANNELS)
        kept = append(kept, load_weights(weight, channels, column, f, rank, w_row, w_column))
    return kept


@triton.jit
def project_rows(
    x: tl.tensor,
    weight: tl.tensor,
    kept: tl.tensor,
    bias: tl.tensor,
    order: tl.tensor,
    mapped: tl.tensor,
    begin: tl.tensor,
    end: tl.tensor,
    column: tl.tensor,
    f: tl.tensor,
    rank: tl.tensor,
    x_row: tl.tensor,
    w_row: tl.tensor,
    w_column: tl.tensor,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    TILES: tl.constexpr,
    KEEP: tl.constexpr,
    HOW: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """Some columns of P = X W + b for the rows from begin to end, ``BLOCK`` at a time.

    With all weights at hand (``KEEP``) all channels of the rows are read at once, so that the reads overlap.
    """
    x += begin * x_row
    mapped += begin * rank
    size = (end - begin).to(tl.int32)
    for done in tl.range(0, size, BLOCK, num_stages=STAGES):
        place = done + tl.arange(0, BLOCK)
        inside = place < size
        if order is None:
            source = x + place * x_row
        else:
            source = x + (tl.load(order + begin + place, mask=inside, other=0) - begin) * x_row
        total = tl.zeros((BLOCK, column.shape[0]), tl.float64 if HOW == "exact" else tl.float32)
        if KEEP:
            rows = ()
            for tile in tl.static_range(TILES):
                channels = tile * CHANNELS + tl.arange(0, CHANNELS)
                rows = append(rows, load_tile(source, channels, inside, f))
            for tile in tl.static_range(TILES):
                total = product(rows[tile], tl.trans(kept[tile]), total, HOW)
        else:
            for channel in range(0, f, CHANNELS):
                channels = channel + tl.arange(0, CHANNELS)
                some = load_tile(source, channels, inside, f)
                weights = load_weights(weight, channels, column, f, rank, w_row, w_column)
                total = product(some, tl.trans(weights), total, HOW)
        if bias is not None:
            total += tl.load(bias + column, mask=column < rank, other=0)[None, :]
        tl.store(
            mapped + (place * rank)[:, None] + column[None, :],
            total.to(mapped.dtype.element_ty),
            mask=inside[:, None] & (column < rank)[None, :],
        )


@triton.jit
def load_tile(source: tl.tensor, channels: tl.tensor, inside: tl.tensor, f: tl.tensor) -> tl.tensor:
    """Some channels of the rows at ``source``, zero outside."""
    return tl.load(source[:, None] + channels[None, :], mask=inside[:, None] & (channels < f)[None, :], other=0)


@triton.jit(debug=True, do_not_specialize=["num_rows", "num_graphs", "windows"])
def bilinear_kernel(
    x: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    ptr: tl.tensor,
    order: tl.tensor,
    mapped: tl.tensor,
    out: tl.tensor,
    parts: tl.tensor,
    cut: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    windows: tl.tensor,
    f: tl.tensor,
    rank: tl.tensor,
    height: tl.tensor,
    x_row: tl.tensor,
    w_row: tl.tensor,
    w_column: tl.tensor,
    WINDOW: tl.constexpr,
    LONGEST: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    TILES: tl.constexpr,
    KEEP: tl.constexpr,
    GRAPHS: tl.constexpr,
    ROWS: tl.constexpr,
    RANK: tl.constexpr,
    RANKS: tl.constexpr,
    HEIGHTS: tl.constexpr,
    TWICE: tl.constexpr,
    HOW: tl.constexpr,
    STAGES: tl.constexpr,
    GRAM_STAGES: tl.constexpr,
) -> None:
    """Windows of graphs one after the other, an equal share of them for each program.

    Of each first P of all rows, then the products of each graph, its rows still in the cache: P^T P if ``TWICE``, else
    X^T P.
    """
    share = windows.to(tl.int64)
    begin_window = (tl.program_id(0) * share // tl.num_programs(0)).to(tl.int32)
    end_windows = ((tl.program_id(0) + 1) * share // tl.num_programs(0)).to(tl.int32)
    first = first_graph(ptr, num_graphs, begin_window.to(tl.int64) * WINDOW)
    kept = ()
    if KEEP:
        kept = keep_weights(weight, tl.arange(0, RANK), f, rank, w_row, w_column, CHANNELS, TILES)
    for turn in range(begin_window, end_windows):
        window = turn + 0 * begin_window  # a tensor in the interpreter too
        behind = end_window(ptr, num_rows, num_graphs, window, first, WINDOW)
        note_cut(ptr, cut, num_graphs, window, first, behind, LONGEST)
        after = tl.minimum(behind, num_graphs)
        begin, end = bounds(ptr, num_rows, num_graphs, window, first, after, WINDOW, LONGEST)
        for tile in range(0, RANKS):
            project_rows(
                x, weight, kept, bias, order, mapped, begin, end, tile * RANK + tl.arange(0, RANK), f, rank, x_row,
                w_row, w_column, BLOCK, CHANNELS, TILES, KEEP, HOW, STAGES,
            )  # fmt: skip
        tl.debug_barrier()
        for done in range(0, after - first + 1, GRAPHS):
            item = done + tl.arange(0, GRAPHS)
            graphs, begins, ends, is_cut = find_pieces(
                ptr, num_rows, num_graphs, window, first, after, item, WINDOW, LONGEST
            )
            slot = 2 * window + (item > 0).to(tl.int32)
            for tile in range(0, HEIGHTS * RANKS):
                column_p = tile // RANKS * RANK + tl.arange(0, RANK)
                column_q = tile % RANKS * RANK + tl.arange(0, RANK)
                if TWICE:
                    total = gram_of_pieces(
                        mapped, mapped, None, None, begins, ends, column_p, column_q, rank, rank, rank, rank,
                        GRAPHS, ROWS, RANK, RANK, RANKS == 1, HOW,
                    )  # fmt: skip
                else:
                    total = gram_of_pieces(
                        x, mapped, order, None, begins, ends, column_p, column_q, f, rank, x_row, rank,
                        GRAPHS, ROWS, RANK, RANK, False, HOW,
                    )  # fmt: skip
                store_pieces(out, parts, total, graphs, is_cut, slot, column_p, column_q, height, rank)
        first = behind


@triton.jit
def bounds(
    ptr: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    window: tl.tensor,
    first: tl.tensor,
    after: tl.tensor,
    WINDOW: tl.constexpr,
    LONGEST: tl.constexpr,
) -> tl.tensor:
    """The rows of a window. They lie side by side: the piece of an earlier graph, whole graphs, then a first piece."""
    graph, begin, end, _ = find_pieces(ptr, num_rows, num_graphs, window, first, after, first * 0, WINDOW, LONGEST)
    if after > first:
        _, _, stop, _ = find_pieces(ptr, num_rows, num_graphs, window, first, after, after - first, WINDOW, LONGEST)
        begin = begin if graph >= 0 else tl.load(ptr + first)
        end = stop
    return begin, end
