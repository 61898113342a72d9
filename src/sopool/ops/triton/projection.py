"""Kernels for the gradients of P = X W."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.launching import append, how, launch, lay_out, programs, wide, width
from sopool.ops.triton.products import product


class Config(NamedTuple):
    """The block sizes of :func:`projection_backward_kernel`."""

    block: int
    channels: int
    tiles: int
    rank: int
    num_warps: int = 4
    num_stages: int = 2
    maxnreg: int | None = None
    each: int = 3


def choose(x: Tensor, rank: int, for_x: bool) -> Config:
    """Return the block sizes, which depend on widths and dtype only."""
    if x.dtype == torch.float64:
        return Config(16, 8, 1, 8)
    wide_rank = width(rank, 64)
    channels = width(x.shape[1], 32 if for_x else 64)
    # As many channels per program as registers allow, evenly distributed, so that dP is read only a few times.
    tiles = int(triton.cdiv(x.shape[1], channels))
    most = (5 if for_x else 3) if wide_rank <= 32 else 1
    tiles = int(triton.cdiv(tiles, triton.cdiv(tiles, most)))
    if for_x:
        return Config(64, channels, tiles, wide_rank)
    return Config(64, channels, tiles, wide_rank, num_stages=1, maxnreg=168)


def projection_backward(
    x: Tensor,
    weight: Tensor,
    d_mapped: Tensor,
    ptr: Tensor,
    order: Tensor | None = None,
    with_x: bool = True,
    with_weight: bool = True,
    into: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of P = X W: dP W^T ``[N, F]`` and X^T dP ``[F, R]``, each empty if it is not requested.

    dP W^T is added to ``into`` if that is given. ``d_mapped`` ``[N, R]`` is dP: contiguous, in segment order, and zero
    for spare rows, which do not contribute. A single kernel for both gradients would save one pass over dP, but needs
    too many registers.
    """
    x = lay_out(x)
    dx = x.new_empty(x.shape if with_x else 0) if into is None else into
    if with_x:
        _launch(x, weight, d_mapped, ptr, order, dx, None, into is not None, choose(x, weight.shape[1], True))
    if not with_weight:
        return dx, x.new_empty(0)
    c = choose(x, weight.shape[1], False)
    parts = x.new_empty(_groups(x, weight, c), *weight.shape, dtype=wide(x))
    _launch(x, weight, d_mapped, ptr, order, None, parts, False, c)
    return dx, parts.sum(0).to(weight.dtype)


def _groups(x: Tensor, weight: Tensor, c: Config) -> int:
    """Return the number of programs that share the rows."""
    each = _tiles(weight, c)
    return max(1, min(int(triton.cdiv(x.shape[0], c.block)), programs(x.device, c.each) // (each[0] * each[1])))


def _tiles(weight: Tensor, c: Config) -> tuple[int, int]:
    f, rank = weight.shape
    return int(triton.cdiv(f, c.channels * c.tiles)), int(triton.cdiv(rank, c.rank))


def _launch(
    x: Tensor,
    weight: Tensor,
    d_mapped: Tensor,
    ptr: Tensor,
    order: Tensor | None,
    dx: Tensor | None,
    parts: Tensor | None,
    add: bool,
    c: Config,
) -> None:
    (tiles, ranks), groups = _tiles(weight, c), _groups(x, weight, c)
    launch(
        projection_backward_kernel, (groups * tiles * ranks,), x.device, x, weight, d_mapped, ptr, order, dx, parts,
        x.shape[0], ptr.numel() - 1, groups, *weight.shape, x.stride(0), *weight.stride(),
        BLOCK=c.block, CHANNELS=c.channels, TILES=c.tiles, RANK=c.rank, PROGRAMS=tiles, RANKS=ranks, ADD=add,
        HOW=how(x), num_warps=c.num_warps, num_stages=c.num_stages, maxnreg=c.maxnreg,
    )  # fmt: skip


@triton.jit
def add_some_ranks(
    total: tl.tensor,
    d_mapped: tl.tensor,
    weight: tl.tensor,
    place: tl.tensor,
    channels: tl.tensor,
    column: tl.tensor,
    num_rows: tl.tensor,
    f: tl.constexpr,
    rank: tl.constexpr,
    w_row: tl.tensor,
    w_column: tl.tensor,
    HOW: tl.constexpr,
) -> tl.tensor:
    """Return total + dP W^T over some columns of both."""
    slopes = tl.load(
        d_mapped + place[:, None] * rank + column[None, :],
        mask=(place < num_rows)[:, None] & (column < rank)[None, :],
        other=0,
    )
    turned = tl.load(
        weight + channels[None, :] * w_row + column[:, None] * w_column,
        mask=(channels < f)[None, :] & (column < rank)[:, None],
        other=0,
    )
    return product(slopes, turned, total, HOW)


@triton.jit(do_not_specialize=["num_rows", "num_graphs", "groups"])
def projection_backward_kernel(
    x: tl.tensor,
    weight: tl.tensor,
    d_mapped: tl.tensor,
    ptr: tl.tensor,
    order: tl.tensor,
    dx: tl.tensor,
    parts: tl.tensor,
    num_rows: tl.tensor,
    num_graphs: tl.tensor,
    groups: tl.tensor,
    f: tl.constexpr,
    rank: tl.constexpr,
    x_row: tl.tensor,
    w_row: tl.tensor,
    w_column: tl.tensor,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    TILES: tl.constexpr,
    RANK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    RANKS: tl.constexpr,
    ADD: tl.constexpr,
    HOW: tl.constexpr,
) -> None:
    """Process every ``groups``-th block of rows, ``TILES`` times ``CHANNELS`` columns of dX and rows of dW.

    ``PROGRAMS`` adjacent programs of the grid process the other channels, for each of ``RANKS`` parts of dW's columns.
    The last rows are processed first, because their dP was written last and may still be in the cache.
    """
    program = tl.program_id(0)
    tile, group = program % (PROGRAMS * RANKS), program // (PROGRAMS * RANKS)
    channels = tile % PROGRAMS * (TILES * CHANNELS) + tl.arange(0, CHANNELS)
    column = tile // PROGRAMS * RANK + tl.arange(0, RANK)
    known = tl.load(ptr + num_graphs)
    kind = tl.float64 if HOW == "exact" else tl.float32
    sums, kept = (), ()
    for some in tl.static_range(TILES):
        sums = append(sums, tl.zeros((CHANNELS, RANK), kind))
        if dx is not None and RANKS == 1:
            at = channels + some * CHANNELS
            kept = append(
                kept,
                tl.load(
                    weight + at[:, None] * w_row + column[None, :] * w_column,
                    mask=(at < f)[:, None] & (column < rank)[None, :],
                    other=0,
                ),
            )
    blocks = tl.cdiv(num_rows, BLOCK)
    for number in range(group, blocks, groups):
        place = (blocks - 1 - number).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        row = place if order is None else tl.load(order + place, mask=place < num_rows, other=0)
        slopes = tl.load(
            d_mapped + place[:, None] * rank + column[None, :],
            mask=(place < num_rows)[:, None] & (column < rank)[None, :],
            other=0,
        )
        if parts is not None:
            more = ()
            for some in tl.static_range(TILES):
                at = channels + some * CHANNELS
                rows = tl.load(
                    x + row[:, None] * x_row + at[None, :], mask=(place < known)[:, None] & (at < f)[None, :], other=0
                )
                more = append(more, product(tl.trans(rows), slopes, sums[some], HOW))
            sums = more
        if dx is not None and tile < PROGRAMS:
            for some in tl.static_range(TILES):
                at = channels + some * CHANNELS
                total = tl.zeros((BLOCK, CHANNELS), kind)
                if RANKS == 1:
                    total = product(slopes, tl.trans(kept[some]), total, HOW)
                else:
                    for start in range(0, rank, RANK):
                        total = add_some_ranks(
                            total, d_mapped, weight, place, at, start + tl.arange(0, RANK), num_rows, f, rank,
                            w_row, w_column, HOW,
                        )  # fmt: skip
                inside = (place < num_rows)[:, None] & (at < f)[None, :]
                target = dx + row[:, None] * f + at[None, :]
                if ADD:
                    total += tl.load(target, mask=inside, other=0)
                tl.store(target, total.to(dx.dtype.element_ty), mask=inside)
    if parts is not None:
        for some in tl.static_range(TILES):
            at = channels + some * CHANNELS
            target = parts + group.to(tl.int64) * f * rank + at[:, None] * rank + column[None, :]
            tl.store(target, sums[some], mask=(at < f)[:, None] & (column < rank)[None, :])
