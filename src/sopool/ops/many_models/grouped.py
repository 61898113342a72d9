"""Layers of several models at once: the rows of model m meet its own weights.

This is the primitive with models for segments: a linear layer is ``segment_apply``, its weights' gradient
``segment_gram``. But models are few and their rows many, and a norm and a relu follow. So there are three ways: on a
CPU one model after the other; on CUDA kernels that find each model's rows on the device; elsewhere a block with a model
axis. A model's result does not depend on which others there are.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import once_differentiable, transformed
from sopool.ops.many_models import blocks as grouped_block
from sopool.ops.many_models import loops as grouped_loops
from sopool.ops.many_models.model_rows import EPS, Rows


def grouped_linear(x: Tensor, weight: Tensor, rows: Rows) -> Tensor:
    """X_m W_m: [N, f], [M, f, h] -> [N, h]."""
    if transformed():
        return grouped_block.linear(x, weight, rows)
    if backends.serves(x):
        from sopool.ops.triton import grouped as kernels

        return kernels.linear(x, weight, rows.ptr)
    if on_cpu(x):
        return grouped_loops.linear(x, weight, rows.sizes)
    return grouped_block.linear(x, weight, rows)


def grouped_norm_relu(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    shift: Tensor,
    running: tuple[Tensor, Tensor],
    rows: Rows,
    out: Tensor | None = None,
) -> Tensor:
    """relu(batch_norm(X_m W_m)) with each model's own statistics, and its ``running`` mean and variance [M, h] updated.

    [N, f], [M, f, h], [M, h], [M, h] -> [N, h]; kernels write to ``out``, if it is given.
    """
    if backends.serves(x):
        from sopool.ops.triton import grouped as kernels

        return kernels.norm_relu(x, weight, scale, shift, running, rows.ptr, [out])
    layer = grouped_loops.norm_relu if on_cpu(x) else grouped_block.norm_relu
    return layer(x, weight, scale, shift, running, rows)


def grouped_norm_relu_eval(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    shift: Tensor,
    running: tuple[Tensor, Tensor],
    rows: Rows,
    out: Tensor | None = None,
) -> Tensor:
    """The same with the running statistics, which make the batch norm a part of the linear map."""
    if backends.serves(x) and not torch.is_grad_enabled() and not transformed():
        from sopool.ops.triton import grouped as kernels

        return kernels.norm_relu_eval(x, weight, scale, shift, running, rows.ptr, out)
    factor = scale * (running[1] + EPS).rsqrt()
    weight = weight * factor.unsqueeze(1)
    bias = shift - running[0] * factor
    by_model = on_cpu(x) and not torch.is_grad_enabled() and not transformed()
    layer = grouped_loops.norm_relu_eval if by_model else grouped_block.norm_relu_eval
    return layer(x, weight, bias, rows)


def on_cpu(x: Tensor) -> bool:
    """Whether models are worked on one after the other."""
    return x.device.type == "cpu"


def grouped_scores(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """X_m W_m^T + b_m for equally many rows each: [M, g, f], [M, h, f], [M, h] -> [M, g, h], for a small h."""
    if transformed():
        return torch.baddbmm(bias.unsqueeze(1), x, weight.mT)
    return _scores(x, weight, bias)


class _Scores(torch.autograd.Function):
    """With few classes autograd's own product for the weights' gradient takes twenty times as long as this one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        dx = torch.bmm(gradient, weight) if ctx.needs_input_grad[0] else None
        return dx, torch.bmm(gradient.transpose(1, 2), x), gradient.sum(1)


_scores: Callable[..., Tensor] = _Scores.apply
