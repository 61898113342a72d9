"""The gradients of P = X W, reading x and dP once."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.launching import how, launch, lay_out, programs, wide, width


class Config(NamedTuple):
    """How the backward work is cut: see :func:`projection_backward_kernel`."""

    block: int
    channels: int
    rank: int
    num_warps: int = 4
    num_stages: int = 3
    maxnreg: int | None = None
    each: int = 3


def choose(x: Tensor, rank: int) -> Config:
    """By widths and type alone."""
    if x.dtype == torch.float64:
        return Config(16, 8, 8)
    return Config(32, width(x.shape[1], 32), width(rank, 64))


def projection_backward(
    x: Tensor,
    weight: Tensor,
    d_mapped: Tensor,
    ptr: Tensor,
    order: Tensor | None = None,
    with_x: bool = True,
    with_weight: bool = True,
    into: Tensor | None = None,
    config: Config | None = None,
) -> tuple[Tensor, Tensor]:
    """The gradients of P = X W: dP W^T (added to ``into`` if given) and X^T dP, where rows of no graph count nothing.

    [N, f], [f, r], [N, r] -> [N, f], [f, r]; empty what is not asked for. ``d_mapped`` is in segment order, contiguous,
    and zero for rows of no graph.
    """
    f, rank = weight.shape
    c = config or choose(x, rank)
    x = lay_out(x)
    tiles = int(triton.cdiv(f, c.channels)), int(triton.cdiv(rank, c.rank))
    each = tiles[0] * tiles[1]
    groups = max(1, min(int(triton.cdiv(x.shape[0], c.block)), programs(x.device, c.each) // each))
    dx = x.new_empty(x.shape if with_x else 0) if into is None else into
    parts = x.new_empty(groups if with_weight else 0, f, rank, dtype=wide(x))
    launch(
        projection_backward_kernel, (groups * each,), x.device, x, weight, d_mapped, ptr, order, dx, parts,
        x.shape[0], ptr.numel() - 1, groups, f, rank, x.stride(0), *weight.stride(),
        BLOCK=c.block, CHANNELS=c.channels, RANK=c.rank, TILES=tiles[0], RANKS=tiles[1], WITH_X=with_x,
        WITH_WEIGHT=with_weight, ADD=into is not None, HOW=how(x), num_warps=c.num_warps, num_stages=c.num_stages,
        maxnreg=c.maxnreg,
    )  # fmt: skip
    return dx, parts.sum(0).to(weight.dtype) if with_weight else x.new_empty(0)


@triton.jit
def product(left: tl.tensor, right: tl.tensor, total: tl.tensor, HOW: tl.constexpr) -> tl.tensor:
    """total + left right, made as :func:`how` says: [m, k], [k, n] -> [m, n]."""
    if HOW == "exact":
        total += tl.sum(left[:, :, None] * right[None, :, :], 1)
    elif HOW == "widen":
        total = tl.dot(left.to(tl.float32), right.to(tl.float32), total)
    else:
        total = tl.dot(left, right, total, input_precision=HOW)
    return total


@triton.jit
def add_some_ranks(
    total: tl.tensor,
    d_mapped: tl.tensor,
    weight: tl.tensor,
    place: tl.tensor,
    channels: tl.tensor,
    column: tl.tensor,
    num_rows: tl.tensor,
    f: tl.tensor,
    rank: tl.tensor,
    w_row: tl.tensor,
    w_column: tl.tensor,
    HOW: tl.constexpr,
) -> tl.tensor:
    """total + dP W^T over some columns of both."""
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
    f: tl.tensor,
    rank: tl.tensor,
    x_row: tl.tensor,
    w_row: tl.tensor,
    w_column: tl.tensor,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    RANK: tl.constexpr,
    TILES: tl.constexpr,
    RANKS: tl.constexpr,
    WITH_X: tl.constexpr,
    WITH_WEIGHT: tl.constexpr,
    ADD: tl.constexpr,
    HOW: tl.constexpr,
) -> None:
    """Every ``groups``-th block of rows, ``CHANNELS`` columns of dX and of W: neighbours in the grid take the others.

    The last rows come first: their dP was written last and may still be in the cache.
    """
    program = tl.program_id(0)
    tile, group = program % (TILES * RANKS), program // (TILES * RANKS)
    channels = tile % TILES * CHANNELS + tl.arange(0, CHANNELS)
    column = tile // TILES * RANK + tl.arange(0, RANK)
    known = tl.load(ptr + num_graphs)
    kind = tl.float64 if HOW == "exact" else tl.float32
    d_weight = tl.zeros((CHANNELS, RANK), kind)
    if RANKS == 1:
        turned = tl.load(
            weight + channels[None, :] * w_row + column[:, None] * w_column,
            mask=(channels < f)[None, :] & (column < rank)[:, None],
            other=0,
        )
    blocks = tl.cdiv(num_rows, BLOCK)
    for number in range(group, blocks, groups):
        place = (blocks - 1 - number).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        row = place if order is None else tl.load(order + place, mask=place < num_rows, other=0)
        inside = (place < num_rows)[:, None] & (channels < f)[None, :]
        slopes = tl.load(
            d_mapped + place[:, None] * rank + column[None, :],
            mask=(place < num_rows)[:, None] & (column < rank)[None, :],
            other=0,
        )
        if WITH_WEIGHT:
            rows = tl.load(
                x + row[:, None] * x_row + channels[None, :], mask=inside & (place < known)[:, None], other=0
            )
            d_weight = product(tl.trans(rows), slopes, d_weight, HOW)
        if WITH_X and tile < TILES:
            total = tl.zeros((BLOCK, CHANNELS), kind)
            if RANKS == 1:
                total = product(slopes, turned, total, HOW)
            else:
                for some in range(0, rank, RANK):
                    total = add_some_ranks(
                        total, d_mapped, weight, place, channels, some + tl.arange(0, RANK), num_rows, f, rank, w_row,
                        w_column, HOW,
                    )  # fmt: skip
            target = dx + row[:, None] * f + channels[None, :]
            if ADD:
                total += tl.load(target, mask=inside, other=0)
            tl.store(target, total.to(dx.dtype.element_ty), mask=inside)
    if WITH_WEIGHT:
        at = group.to(tl.int64) * f * rank + channels[:, None] * rank + column[None, :]
        tl.store(parts + at, d_weight, mask=(channels < f)[:, None] & (column < rank)[None, :])
