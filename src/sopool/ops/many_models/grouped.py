"""Layers of several models at once, where the rows of each model are multiplied by its own weights.

This is the segment primitive with models as segments: a linear layer is ``segment_apply``, and the gradient of its
weights is ``segment_gram``. Models are few, however, have many rows, and a batch norm and a ReLU follow. There are
three implementations: on a CPU one model after the other, on CUDA kernels that find the rows of each model on the
device, and elsewhere a padded block with a model dimension. The result of a model does not depend on the other models.
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
from sopool.ops.segment.standard import exporting


def grouped_linear(x: Tensor, weight: Tensor, rows: Rows) -> Tensor:
    """Return X_m W_m for each model: ``[N, F]``, ``[M, F, H]`` to ``[N, H]``."""
    if exporting():
        return x @ _only(weight)
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
    """Return relu(batch_norm(X_m W_m)) with the batch statistics of each model, and update its ``running`` statistics.

    ``x`` is ``[N, F]``, ``weight`` ``[M, F, H]``, ``scale``, ``shift`` and both ``running`` statistics ``[M, H]``, and
    the result ``[N, H]``. Kernels write to ``out``, if it is given.
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
    """Return relu(batch_norm(X_m W_m)) with the running statistics, which are folded into the linear map."""
    if backends.serves(x) and not torch.is_grad_enabled() and not transformed():
        from sopool.ops.triton import grouped as kernels

        return kernels.norm_relu_eval(x, weight, scale, shift, running, rows.ptr, out)
    factor = scale * (running[1] + EPS).rsqrt()
    weight = weight * factor.unsqueeze(1)
    bias = shift - running[0] * factor
    if exporting():
        return torch.addmm(_only(bias), x, _only(weight)).relu()
    by_model = on_cpu(x) and not torch.is_grad_enabled() and not transformed()
    layer = grouped_loops.norm_relu_eval if by_model else grouped_block.norm_relu_eval
    return layer(x, weight, bias, rows)


def _only(stacked: Tensor) -> Tensor:
    """Return the tensor of the only model, whose rows need not be counted while a program is exported."""
    if len(stacked) > 1:
        raise ValueError(
            f"A stack of {len(stacked)} models cannot be exported: export its models one by one, see "
            "sopool.models.member_of."
        )
    return stacked[0]


def on_cpu(x: Tensor) -> bool:
    """Return whether models are processed one after the other."""
    return x.device.type == "cpu"


def grouped_scores(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return X_m W_m^T + b_m: ``[M, G, F]``, ``[M, H, F]``, ``[M, H]`` to ``[M, G, H]``, for a small H."""
    if transformed():
        return torch.baddbmm(bias.unsqueeze(1), x, weight.mT)
    return _scores(x, weight, bias)


class _Scores(torch.autograd.Function):
    """A linear layer whose weight gradient, for few classes, is twenty times as fast as that of autograd."""

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
