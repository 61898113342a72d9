"""Kernels for linear layers of several models, where the rows of each model are multiplied by its own weights.

The rows of each model are looked up on the device and divided among several programs. Additional programs past the last
model set spare rows to zero, which only pad the batch to a fixed shape.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.many_models.model_rows import EPS
from sopool.ops.triton.launching import how, launch, lay_out
from sopool.ops.triton.products import product, relu

MOST_PROGRAMS = 1024
EACH = 2
"""Tiles of rows per program, if there are enough rows; with fewer, loading the weights would dominate."""
MOST_TILES = 6
"""Tiles of weights that fit into the shared memory of a multiprocessor together with the rows."""


def multiply_rows(
    x: Tensor, weight: Tensor, ptr: Tensor, norm: tuple[Tensor, ...] | None = None, out: Tensor | None = None
) -> Tensor:
    """Return X_m W_m, or relu(batch_norm(X_m W_m)) with ``norm``, in ``out`` if it is given.

    ``x`` is ``[N, F]``, ``weight`` ``[M, F, H]`` and the result ``[N, H]``, zero for rows past ``ptr[-1]``. ``norm`` is
    (scale, shift, mean, variance), ``[M, H]`` each.
    """
    x, models, (f, h) = lay_out(x), weight.shape[0], weight.shape[1:]
    out = x.new_empty(x.shape[0], h) if out is None else out
    block, narrow, width = (16, 16, 16) if x.dtype == torch.float64 else (64, 32, 32)
    scale, shift, mean, variance = norm if norm else (weight,) * 4
    tiles = triton.cdiv(f, narrow)
    sharing = triton.cdiv(x.shape[0], models * block * EACH)
    grid = (models + 1, max(1, min(sharing, MOST_PROGRAMS // models)), triton.cdiv(h, width))
    launch(
        linear_kernel, grid, x.device, x, weight, scale, shift, mean, variance, out, ptr, x.shape[0], f, h,
        x.stride(0), out.stride(0), *weight.stride(), scale.stride(0), mean.stride(0), BLOCK=block, F=narrow,
        TILES=min(tiles, MOST_TILES), MORE=tiles > MOST_TILES, H=width, NORM=norm is not None, EPS=EPS, HOW=how(x),
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return out


def weight_gradient(x: Tensor, gradient: Tensor, ptr: Tensor) -> Tensor:
    """Return X_m^T G_m: ``[N, F]``, ``[N, H]`` to ``[M, F, H]``."""
    x = lay_out(x)
    gradient = lay_out(gradient)
    models = ptr.numel() - 1
    f, h = x.shape[1], gradient.shape[1]
    out = x.new_empty(models, f, h)
    rows, high = (16, 16) if x.dtype == torch.float64 else (128, 32)
    launch(
        weight_gradient_kernel, (models, triton.cdiv(f, 16), triton.cdiv(h, high)), x.device, x, gradient, out, ptr,
        f, h, x.stride(0), gradient.stride(0), ROWS=rows, F=16, H=high, HOW=how(x), num_warps=4,
    )  # fmt: skip
    return out


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
    f,
    h,
    x_row,
    out_row,
    weight_model,
    weight_f,
    weight_h,
    scale_model,
    mean_model,
    BLOCK: tl.constexpr,
    F: tl.constexpr,
    TILES: tl.constexpr,
    MORE: tl.constexpr,
    H: tl.constexpr,
    NORM: tl.constexpr,
    EPS: tl.constexpr,
    HOW: tl.constexpr,
) -> None:
    """Compute X_m W_m, or with ``NORM`` relu(batch_norm(X_m W_m)) for a given mean and variance.

    The first ``TILES`` times ``F`` rows of W are loaded once and stay in fast memory, the others are loaded repeatedly.
    For spare rows f, scale and shift are zero, and so is the result.
    """
    model = tl.program_id(0)
    last = tl.num_programs(0) - 1
    column = tl.program_id(2) * H + tl.arange(0, H)
    known = column < h
    # The pooling kernels assert that ptr is valid; until then, memory out of bounds must not be accessed.
    begin = tl.maximum(tl.load(ptr + model), 0)
    end = tl.minimum(tl.load(ptr + model + 1, mask=model < last, other=rows), rows)
    if NORM:
        there = column < tl.where(model < last, h, 0)
        at, stat = column + model * scale_model, column + model * mean_model
        deviation = tl.sqrt(tl.load(variance + stat, mask=there, other=1.0) + EPS)
        slope = tl.load(scale + at, mask=there, other=0.0) / deviation
        offset = tl.load(shift + at, mask=there, other=0.0) - tl.load(mean + stat, mask=there, other=0.0) * slope
    weight += model * weight_model
    f = tl.where(model < last, f, 0)  # ignore the values of spare rows
    turned = ()
    for tile in tl.static_range(TILES):
        turned = turned + (_turned(weight, tile * F, column, f, h, weight_f, weight_h, F),)
    for start in range(begin + tl.program_id(1) * BLOCK, end, BLOCK * tl.num_programs(1)):
        row = start + tl.arange(0, BLOCK)
        inside = (row < end)[:, None]
        total = tl.zeros([BLOCK, H], tl.float64 if HOW == "exact" else tl.float32)
        for tile in tl.static_range(TILES):
            part = _some_columns(x, row, inside, tile * F, f, x_row, F)
            total = product(part, turned[tile].T, total, HOW)
        if MORE:  # a nested loop, which Triton does not prefetch
            for begin_f in range(TILES * F, f, F):
                part = _some_columns(x, row, inside, begin_f, f, x_row, F)
                factor = _turned(weight, begin_f, column, f, h, weight_f, weight_h, F)
                total = product(part, factor.T, total, HOW)
        if NORM:
            total = relu(total * slope[None, :] + offset[None, :])
        target = out + row[:, None] * out_row + column[None, :]
        tl.store(target, total.to(out.dtype.element_ty), mask=inside & known[None, :])


@triton.jit
def _turned(weight, begin, column, f, h, weight_f, weight_h, F: tl.constexpr):
    """Load some rows of W, transposed to the layout that matrix units need, ``[H, F]``."""
    feature = begin + tl.arange(0, F)
    at = feature[None, :] * weight_f + column[:, None] * weight_h
    return tl.load(weight + at, mask=(feature < f)[None, :] & (column < h)[:, None], other=0.0)


@triton.jit
def _some_columns(x, row, inside, begin, f, x_row, F: tl.constexpr):
    feature = begin + tl.arange(0, F)
    return tl.load(x + row[:, None] * x_row + feature[None, :], mask=inside & (feature < f)[None, :], other=0.0)


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
    HOW: tl.constexpr,
) -> None:
    """Compute one tile of X_m^T G_m, with the rows added in order."""
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
        total = product(left, right, total, HOW)
    at = (model * f + feature)[:, None] * h + column[None, :]
    tl.store(out + at, total, mask=(feature < f)[:, None] & (column < h)[None, :])
