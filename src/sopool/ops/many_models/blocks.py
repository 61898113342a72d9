"""Layers of several models on any device: rows are padded to ``[M, most, F]`` for one batched product.

The layout of the block requires the number of rows of each model on the host.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sopool.ops._autograd import once_differentiable
from sopool.ops.many_models.model_rows import EPS, Rows


def linear(x: Tensor, weight: Tensor, rows: Rows) -> Tensor:
    """Return X_m W_m."""
    return rows.unblock(torch.bmm(rows.block(x), weight))


def norm_relu_eval(x: Tensor, weight: Tensor, bias: Tensor, rows: Rows) -> Tensor:
    """Return relu(X_m W_m + b_m)."""
    return rows.unblock(torch.baddbmm(bias.unsqueeze(1), rows.block(x), weight).relu())


class _NormReLU(torch.autograd.Function):
    """Linear map, batch norm and ReLU; positions without a row are multiplied by zero or dropped."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, running: tuple[Tensor, Tensor], rows: Rows
    ) -> Tensor:
        block = rows.block(x)
        share = rows.share(x)
        z = torch.bmm(block, weight)
        mean = z.sum(1).mul_(share)
        z.sub_(mean.unsqueeze(1)).mul_(rows.filled)
        variance = z.square().sum(1).mul_(share)
        inverse = (variance + EPS).rsqrt_()
        y = torch.addcmul(shift.unsqueeze(1), z, (scale * inverse).unsqueeze(1)).relu_()
        rows.update(running, mean, variance)
        ctx.save_for_backward(block, weight, scale, z, y, inverse)
        ctx.rows = rows
        return rows.unblock(y)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        block, weight, scale, centred, y, inverse = ctx.saved_tensors
        rows: Rows = ctx.rows
        g = torch.ops.aten.threshold_backward(rows.block(gradient), y, 0)
        d_shift = g.sum(1)
        d_scale = (g * centred).sum(1).mul_(inverse)
        multiplier = scale * inverse
        share = multiplier * -rows.share(g)
        constant = (share * d_shift).unsqueeze(1)
        factor = (share * inverse).mul_(d_scale).unsqueeze(1)
        dz = torch.addcmul(constant, centred, factor).addcmul_(g, multiplier.unsqueeze(1))
        d_weight = torch.bmm(block.transpose(1, 2), dz)
        dx = rows.unblock(torch.bmm(dz, weight.transpose(1, 2))) if ctx.needs_input_grad[0] else None
        return dx, d_weight, d_scale, d_shift, None, None


norm_relu: Callable[..., Tensor] = _NormReLU.apply
