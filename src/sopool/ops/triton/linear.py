"""Kernels for linear layers of several models: the rows of model m meet its own weights.

Which rows are whose is read on the device. A program takes some rows of one model; rows past the last model's, which
only fill up a fixed shape, come out as zeros.
"""

import triton
import triton.language as tl

from sopool.ops.triton.products import multiply


@triton.jit
def find_tile(ptr, tile, models, rows, BLOCK: tl.constexpr, ROOM: tl.constexpr):
    """The model of a tile of ``BLOCK`` rows, its first row and where its model ends; ``models`` for rows past the last.

    Every model has whole tiles of its own, so the number of a tile is looked up in the sums of their counts.
    """
    each = tl.arange(0, ROOM)
    first = tl.load(ptr + each, mask=each < models, other=0)
    last = tl.load(ptr + each + 1, mask=each < models, other=0)
    tiles = (last - first + BLOCK - 1) // BLOCK
    ends = tl.cumsum(tiles, 0)
    model = tl.sum((ends <= tile).to(tl.int32), 0)
    mine = each == model
    begin = tl.sum(tl.where(mine, first + (tile - ends + tiles) * BLOCK, 0), 0)
    end = tl.sum(tl.where(mine, last, 0), 0)
    if model >= models:
        model = models
        begin = tl.load(ptr + models) + (tile - tl.sum(tiles, 0)) * BLOCK
        end = rows.to(tl.int64)
    return model, begin, end


@triton.jit
def linear_kernel(
    x,
    weight,
    scale,
    shift,
    mean,
    variance,
    out,
    ptr,
    rows,
    models,
    f,
    h,
    x_row,
    weight_model,
    weight_f,
    weight_h,
    scale_model,
    mean_model,
    BLOCK: tl.constexpr,
    F: tl.constexpr,
    H: tl.constexpr,
    ROOM: tl.constexpr,
    NORM: tl.constexpr,
    EPS: tl.constexpr,
    EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """out = X_m W_m, or with ``NORM`` relu(batch_norm(X_m W_m)) by given mean and variance."""
    model, begin, end = find_tile(ptr, tl.program_id(0), models, rows, BLOCK, ROOM)
    row = begin + tl.arange(0, BLOCK)
    column = tl.program_id(1) * H + tl.arange(0, H)
    inside = (row < end)[:, None]
    total = tl.zeros([BLOCK, H], out.dtype.element_ty)
    if model < models:
        for start in range(0, f, F):
            feature = start + tl.arange(0, F)
            known = feature < f
            part = tl.load(x + row[:, None] * x_row + feature[None, :], mask=inside & known[None, :], other=0.0)
            factor = tl.load(
                weight + model * weight_model + feature[:, None] * weight_f + column[None, :] * weight_h,
                mask=known[:, None] & (column < h)[None, :],
                other=0.0,
            )
            total = multiply(part, factor, total, EXACT, PRECISION)
        if NORM:
            at = column + model * scale_model
            stat = column + model * mean_model
            slope = tl.load(scale + at, mask=column < h) / tl.sqrt(tl.load(variance + stat, mask=column < h) + EPS)
            offset = tl.load(shift + at, mask=column < h) - tl.load(mean + stat, mask=column < h) * slope
            total = tl.maximum(total * slope[None, :] + offset[None, :], 0.0)
    tl.store(out + row[:, None] * h + column[None, :], total, mask=inside & (column < h)[None, :])


@triton.jit
def weight_gradient_kernel(
    x,
    gradient,
    out,
    ptr,
    f,
    h,
    x_row,
    gradient_row,
    ROWS: tl.constexpr,
    F: tl.constexpr,
    H: tl.constexpr,
    EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """out[m] = X_m^T G_m, one program for each tile of it, the rows summed in their order."""
    model = tl.program_id(0)
    feature = tl.program_id(1) * F + tl.arange(0, F)
    column = tl.program_id(2) * H + tl.arange(0, H)
    begin, end = tl.load(ptr + model), tl.load(ptr + model + 1)
    total = tl.zeros([F, H], out.dtype.element_ty)
    for start in range(begin, end, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = row < end
        left = tl.load(
            x + row[None, :] * x_row + feature[:, None], mask=inside[None, :] & (feature < f)[:, None], other=0.0
        )
        right = tl.load(
            gradient + row[:, None] * gradient_row + column[None, :],
            mask=inside[:, None] & (column < h)[None, :],
            other=0.0,
        )
        total = multiply(left, right, total, EXACT, PRECISION)
    at = (model * f + feature)[:, None] * h + column[None, :]
    tl.store(out + at, total, mask=(feature < f)[:, None] & (column < h)[None, :])
