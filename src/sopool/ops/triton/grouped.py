"""The layers of :mod:`sopool.ops.grouped` by kernels: nothing waits for the device, shapes follow from the inputs'."""

from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from sopool.ops import backends
from sopool.ops.rows import EPS, MOMENTUM
from sopool.ops.triton.linear import linear_kernel, weight_gradient_kernel
from sopool.ops.triton.norm import norm_relu_backward_kernel, norm_relu_kernel


MOST_PROGRAMS = 1024
EACH = 2
"""Tiles of rows for each program, if there are enough: fewer would not pay for reading the weights."""
MOST_TILES = 6
"""Tiles of weights that fit beside the rows into a multiprocessor's memory."""


def norm_relu_eval(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    shift: Tensor,
    running: tuple[Tensor, Tensor],
    ptr: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """relu(batch_norm(X_m W_m)) with the running statistics, without a gradient; into ``out`` if it is given."""
    return _product(x, weight, ptr, (scale, shift, *running), out)


def _product(
    x: Tensor, weight: Tensor, ptr: Tensor, norm: tuple[Tensor, ...] | None = None, out: Tensor | None = None
) -> Tensor:
    """X_m W_m, with ``norm`` (scale, shift, mean, variance) [M, h] relu(batch_norm(X_m W_m)): [N, h]."""
    x, models, (f, h) = _rows(x), weight.shape[0], weight.shape[1:]
    out = x.new_empty(x.shape[0], h) if out is None else out
    exact = x.dtype == torch.float64
    block, narrow, width = (16, 16, 16) if exact else (64, 32, 32)
    scale, shift, mean, variance = norm if norm else (weight,) * 4
    tiles = triton.cdiv(f, narrow)
    sharing = triton.cdiv(x.shape[0], models * block * EACH)
    grid = (models + 1, max(1, min(sharing, MOST_PROGRAMS // models)), triton.cdiv(h, width))
    linear_kernel[grid](
        x, weight, scale, shift, mean, variance, out, ptr, x.shape[0], f, h, x.stride(0), out.stride(0),
        *weight.stride(), scale.stride(0), mean.stride(0), BLOCK=block, F=narrow, TILES=min(tiles, MOST_TILES),
        MORE=tiles > MOST_TILES, H=width, NORM=norm is not None, EPS=EPS, EXACT=exact, PRECISION=backends.chosen().precision, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out


def _weight_gradient(x: Tensor, gradient: Tensor, ptr: Tensor) -> Tensor:
    """X_m^T G_m: [N, f], [N, h] -> [M, f, h]."""
    x, gradient, models = _rows(x), _rows(gradient), ptr.numel() - 1
    f, h = x.shape[1], gradient.shape[1]
    out = x.new_empty(models, f, h)
    exact = x.dtype == torch.float64
    high = 16 if exact else 32
    grid = (models, triton.cdiv(f, 16), triton.cdiv(h, high))
    weight_gradient_kernel[grid](
        x, gradient, out, ptr, f, h, x.stride(0), gradient.stride(0),
        ROWS=16 if exact else 128, F=16, H=high, EXACT=exact, PRECISION=backends.chosen().precision, num_warps=4,
    )  # fmt: skip
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, ptr: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, ptr)
        return _product(x, weight, ptr)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, weight, ptr = ctx.saved_tensors
        dx = _product(gradient, weight.mT, ptr) if ctx.needs_input_grad[0] else None
        return dx, _weight_gradient(x, gradient, ptr), None


class _NormReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        scale: Tensor,
        shift: Tensor,
        running: tuple[Tensor, Tensor],
        ptr: Tensor,
        place: list[Tensor | None],
    ) -> Tensor:
        z = _product(x, weight, ptr)
        y = torch.empty_like(z) if place[0] is None else place[0]
        mean, inverse = z.new_empty(2, *scale.shape)
        _launch_by_model(
            norm_relu_kernel, ptr, z.shape, z, scale, shift, *running, y, mean, inverse, ptr, *z.shape,
            y.stride(0), scale.stride(0), running[0].stride(0), EPS=EPS, MOMENTUM=MOMENTUM,
        )  # fmt: skip
        ctx.save_for_backward(x, weight, scale, shift, z, mean, inverse, ptr)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale, shift, z, mean, inverse, ptr = ctx.saved_tensors
        gradient, dz = _rows(gradient), torch.empty_like(z)
        d_scale, d_shift = z.new_empty(2, *scale.shape)
        _launch_by_model(
            norm_relu_backward_kernel, ptr, z.shape, gradient, z, scale, shift, mean, inverse, dz, d_scale, d_shift,
            ptr, *z.shape, gradient.stride(0), scale.stride(0),
        )  # fmt: skip
        dx = _product(dz, weight.mT, ptr) if ctx.needs_input_grad[0] else None
        return dx, _weight_gradient(x, dz, ptr), d_scale, d_shift, None, None, None


linear: Callable[[Tensor, Tensor, Tensor], Tensor] = _Linear.apply
norm_relu: Callable[..., Tensor] = _NormReLU.apply


def _launch_by_model(kernel: Any, ptr: Tensor, shape: torch.Size, *arguments: Any, **constants: float) -> None:
    """A program for some columns of each model, and one more for rows that belong to none."""
    width = min(_width(shape[1]), 16)
    grid = (ptr.numel(), triton.cdiv(shape[1], width))
    kernel[grid](*arguments, ROWS=256, H=width, num_warps=8, **constants)


def _rows(x: Tensor) -> Tensor:
    """Rows may lie apart, their values not."""
    return x if x.stride(1) == 1 else x.contiguous()


def _width(count: int) -> int:
    """The power of two that holds so many, at least what a matrix unit takes."""
    return max(16, 1 << (count - 1).bit_length())
