"""Kernels for the layers of :mod:`sopool.ops.many_models.grouped`.

Nothing waits for the device, and output shapes depend on input shapes only.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import Tensor

from sopool.ops._autograd import once_differentiable
from sopool.ops.many_models.model_rows import EPS, MOMENTUM
from sopool.ops.triton.launching import launch, lay_out, width
from sopool.ops.triton.linear import multiply_rows, weight_gradient
from sopool.ops.triton.norm import norm_relu_backward_kernel, norm_relu_kernel


def norm_relu_eval(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    shift: Tensor,
    running: tuple[Tensor, Tensor],
    ptr: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """Return relu(batch_norm(X_m W_m)) with the running statistics, without a gradient; in ``out`` if it is given."""
    return multiply_rows(x, weight, ptr, (scale, shift, *running), out)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, ptr: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, ptr)
        return multiply_rows(x, weight, ptr)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, weight, ptr = ctx.saved_tensors
        dx = multiply_rows(gradient, weight.mT, ptr) if ctx.needs_input_grad[0] else None
        return dx, weight_gradient(x, gradient, ptr), None


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
        z = multiply_rows(x, weight, ptr)
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
        gradient = lay_out(gradient)
        dz = torch.empty_like(z)
        d_scale, d_shift = z.new_empty(2, *scale.shape)
        _launch_by_model(
            norm_relu_backward_kernel, ptr, z.shape, gradient, z, scale, shift, mean, inverse, dz, d_scale, d_shift,
            ptr, *z.shape, gradient.stride(0), scale.stride(0),
        )  # fmt: skip
        dx = multiply_rows(dz, weight.mT, ptr) if ctx.needs_input_grad[0] else None
        return dx, weight_gradient(x, dz, ptr), d_scale, d_shift, None, None, None


linear: Callable[[Tensor, Tensor, Tensor], Tensor] = _Linear.apply
norm_relu: Callable[..., Tensor] = _NormReLU.apply


def _launch_by_model(kernel: Any, ptr: Tensor, shape: torch.Size, *arguments: Any, **constants: float) -> None:
    """Launch a program for some columns of each model, and an additional one for spare rows."""
    columns = width(shape[1], 16)
    grid = (ptr.numel(), triton.cdiv(shape[1], columns))
    launch(kernel, grid, ptr.device, *arguments, ROWS=256, H=columns, num_warps=8, **constants)
