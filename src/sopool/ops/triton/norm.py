"""Kernels for relu(batch_norm(z)) of several models: a program processes some columns of all rows of one model."""

import triton
import triton.language as tl

from sopool.ops.triton.products import relu


@triton.jit
def norm_relu_kernel(
    z,
    scale,
    shift,
    running_mean,
    running_variance,
    y,
    mean,
    inverse,
    ptr,
    rows,
    h,
    y_row,
    scale_model,
    running_model,
    EPS: tl.constexpr,
    MOMENTUM: tl.constexpr,
    ROWS: tl.constexpr,
    H: tl.constexpr,
) -> None:
    """Compute y = relu(batch_norm(z)), the mean and 1 / deviation, and update the running statistics.

    The program past the last model sets spare rows to zero.
    """
    model = tl.program_id(0)
    last = tl.num_programs(0) - 1
    column = tl.program_id(1) * H + tl.arange(0, H)
    known = column < h
    begin = tl.load(ptr + model)
    if model == last:
        _clear(y, begin, rows, column, known, y_row, ROWS)
    else:
        end = tl.load(ptr + model + 1)
        count = tl.maximum(end - begin, 1).to(y.dtype.element_ty)
        total = tl.zeros([ROWS, H], y.dtype.element_ty)
        for start in range(begin, end, ROWS):
            row = start + tl.arange(0, ROWS)
            total += tl.load(
                z + row[:, None] * h + column[None, :], mask=(row < end)[:, None] & known[None, :], other=0.0
            )
        average = tl.sum(total, 0) / count
        squares = tl.zeros([ROWS, H], y.dtype.element_ty)
        for start in range(begin, end, ROWS):
            row = start + tl.arange(0, ROWS)
            inside = (row < end)[:, None] & known[None, :]
            value = tl.load(z + row[:, None] * h + column[None, :], mask=inside, other=0.0)
            centred = tl.where(inside, value - average[None, :], 0.0)
            squares += centred * centred
        variance = tl.sum(squares, 0) / count
        rate = 1.0 / tl.sqrt(variance + EPS)
        slope = rate * tl.load(scale + model * scale_model + column, mask=known, other=0.0)
        offset = tl.load(shift + model * scale_model + column, mask=known, other=0.0)
        for start in range(begin, end, ROWS):
            row = start + tl.arange(0, ROWS)
            inside = (row < end)[:, None] & known[None, :]
            value = tl.load(z + row[:, None] * h + column[None, :], mask=inside, other=0.0) - average[None, :]
            value = relu(value * slope[None, :] + offset[None, :])
            tl.store(y + row[:, None] * y_row + column[None, :], value, mask=inside)
        tl.store(mean + model * h + column, average, mask=known)
        tl.store(inverse + model * h + column, rate, mask=known)
        if end > begin:
            at = model * running_model + column
            old = tl.load(running_mean + at, mask=known, other=0.0)
            tl.store(running_mean + at, old + MOMENTUM * (average - old), mask=known)
            old = tl.load(running_variance + at, mask=known, other=0.0)
            unbiased = variance * (count / tl.maximum(count - 1, 1))
            tl.store(running_variance + at, old + MOMENTUM * (unbiased - old), mask=known)


@triton.jit
def norm_relu_backward_kernel(
    gradient,
    z,
    scale,
    shift,
    mean,
    inverse,
    dz,
    d_scale,
    d_shift,
    ptr,
    rows,
    h,
    gradient_row,
    scale_model,
    ROWS: tl.constexpr,
    H: tl.constexpr,
) -> None:
    """Compute dz = scale / deviation (g - mean(g) - z^ mean(g z^)), z^ = (z - mean) / deviation, g = 0 where y is 0."""
    model = tl.program_id(0)
    last = tl.num_programs(0) - 1
    column = tl.program_id(1) * H + tl.arange(0, H)
    known = column < h
    begin = tl.load(ptr + model)
    if model == last:
        _clear(dz, begin, rows, column, known, h, ROWS)
    else:
        end = tl.load(ptr + model + 1)
        count = tl.maximum(end - begin, 1).to(dz.dtype.element_ty)
        average = tl.load(mean + model * h + column, mask=known, other=0.0)
        rate = tl.load(inverse + model * h + column, mask=known, other=0.0)
        slope = rate * tl.load(scale + model * scale_model + column, mask=known, other=0.0)
        offset = tl.load(shift + model * scale_model + column, mask=known, other=0.0)
        plain = tl.zeros([ROWS, H], dz.dtype.element_ty)
        weighted = tl.zeros([ROWS, H], dz.dtype.element_ty)
        for start in range(begin, end, ROWS):
            row = start + tl.arange(0, ROWS)
            inside = (row < end)[:, None] & known[None, :]
            centred = tl.load(z + row[:, None] * h + column[None, :], mask=inside, other=0.0) - average[None, :]
            g = tl.load(gradient + row[:, None] * gradient_row + column[None, :], mask=inside, other=0.0)
            g = tl.where(inside & (centred * slope[None, :] + offset[None, :] > 0), g, 0.0)
            plain += g
            weighted += g * centred
        total, product = tl.sum(plain, 0), tl.sum(weighted, 0)
        tl.store(d_shift + model * h + column, total, mask=known)
        tl.store(d_scale + model * h + column, product * rate, mask=known)
        constant, factor = total / count, product * rate * rate / count
        for start in range(begin, end, ROWS):
            row = start + tl.arange(0, ROWS)
            inside = (row < end)[:, None] & known[None, :]
            at = row[:, None] * h + column[None, :]
            centred = tl.load(z + at, mask=inside, other=0.0) - average[None, :]
            g = tl.load(gradient + row[:, None] * gradient_row + column[None, :], mask=inside, other=0.0)
            g = tl.where(centred * slope[None, :] + offset[None, :] > 0, g, 0.0)
            tl.store(dz + at, slope[None, :] * (g - constant[None, :] - centred * factor[None, :]), mask=inside)


@triton.jit
def _clear(out, begin, rows, column, known, out_row, ROWS: tl.constexpr) -> None:
    """Set spare rows to zero."""
    for start in range(begin, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        tl.store(out + row[:, None] * out_row + column[None, :], 0.0, mask=(row < rows)[:, None] & known[None, :])
