"""Layers of several models on a CPU: one model after the other, while its rows are in the cache."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sopool.ops._autograd import once_differentiable
from sopool.ops.many_models.model_rows import EPS, Rows
from sopool.ops.numba import dispatch as compiled


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, sizes: list[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.sizes = sizes
        out = x.new_empty(x.shape[0], weight.shape[2])
        for own, w, o in zip(*_models(x, sizes, weight, out), strict=True):
            torch.mm(own, w, out=o)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, weight = ctx.saved_tensors
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        d_weight = torch.empty_like(weight)
        _linear_backward(x, weight, gradient, ctx.sizes, dx, d_weight)
        return dx, d_weight, None


class _NormReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, running: tuple[Tensor, Tensor], rows: Rows
    ) -> Tensor:
        z = x.new_empty(x.shape[0], weight.shape[2])
        y = torch.empty_like(z)
        (mean, variance, inverse) = scale.new_empty(3, *scale.shape)
        finish = _normalise(z, scale, shift, rows, mean, variance, inverse, y)
        for m, (own, w, o) in enumerate(zip(*_models(x, rows.sizes, weight, z), strict=True)):
            torch.mm(own, w, out=o)
            finish(m)
        rows.update(running, mean, variance)
        ctx.save_for_backward(x, weight, scale, z, y, inverse)
        ctx.rows = rows
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale, centred, y, inverse = ctx.saved_tensors
        rows: Rows = ctx.rows
        dz = torch.empty_like(y)
        (d_scale, d_shift) = scale.new_empty(2, *scale.shape)
        begin = _normalise_backward(gradient, centred, y, scale, inverse, rows, dz, d_scale, d_shift)
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        d_weight = torch.empty_like(weight)
        _linear_backward(x, weight, dz, rows.sizes, dx, d_weight, begin)
        return dx, d_weight, d_scale, d_shift, None, None


def _normalise(
    z: Tensor, scale: Tensor, shift: Tensor, rows: Rows, mean: Tensor, variance: Tensor, inverse: Tensor, y: Tensor
) -> Callable[[int], None]:
    """Return a function that, for a given model, computes its statistics and ``y``, and centers ``z`` in place."""
    if compiled.serves_alone(z):
        pieces = (scale.detach().contiguous(), shift.detach().contiguous())
        return compiled.prepare("norm_relu", z, rows.ptr, *pieces, EPS, mean, variance, inverse, y)
    zs = z.split_with_sizes(rows.sizes)
    ys = y.split_with_sizes(rows.sizes)

    def finish(m: int) -> None:
        share = 1 / max(1, rows.sizes[m])
        torch.sum(zs[m], 0, out=mean[m]).mul_(share)
        torch.sum(torch.square(zs[m].sub_(mean[m]), out=ys[m]), 0, out=variance[m]).mul_(share)
        torch.add(variance[m], EPS, out=inverse[m]).rsqrt_()
        torch.addcmul(shift[m], zs[m], scale[m] * inverse[m], out=ys[m]).relu_()

    return finish


def _normalise_backward(
    gradient: Tensor,
    centred: Tensor,
    y: Tensor,
    scale: Tensor,
    inverse: Tensor,
    rows: Rows,
    dz: Tensor,
    d_scale: Tensor,
    d_shift: Tensor,
) -> Callable[[int], None]:
    """Return a function that, for a given model, computes ``dz`` and the gradients of scale and shift.

    dz = multiplier (g - mean(g) - z^ mean(g z^)) with z^ = centred / deviation, which is affine in ``centred`` and g.
    """
    if compiled.serves_alone(y):
        given = (gradient.contiguous(), centred, y.detach(), rows.ptr, scale.detach().contiguous(), inverse)
        return compiled.prepare("norm_relu_backward", *given, dz, d_scale, d_shift)
    parts = list(zip(*(tensor.split_with_sizes(rows.sizes) for tensor in (gradient, centred, y, dz)), strict=True))

    def begin(m: int) -> None:
        own, c, ys, out = parts[m]
        g = torch.ops.aten.threshold_backward(own, ys, 0)
        torch.sum(g, 0, out=d_shift[m])
        torch.sum(torch.mul(g, c, out=out), 0, out=d_scale[m]).mul_(inverse[m])
        multiplier = scale[m] * inverse[m]
        share = multiplier / -max(1, rows.sizes[m])
        torch.addcmul(share * d_shift[m], c, share * inverse[m] * d_scale[m], out=out).addcmul_(g, multiplier)

    return begin


def _linear_backward(
    x: Tensor,
    weight: Tensor,
    gradient: Tensor,
    sizes: list[int],
    dx: Tensor | None,
    d_weight: Tensor,
    begin: Callable[[int], None] = lambda _: None,
) -> None:
    """Compute the gradients of ``x`` and the weights by model; ``begin`` prepares the model's part of ``gradient``."""
    d_rows = (None,) * len(sizes) if dx is None else dx.split_with_sizes(sizes)
    parts = zip(*_models(x, sizes, weight, gradient), d_weight.unbind(), d_rows, strict=True)
    for m, (own, w, g, dw, d_own) in enumerate(parts):
        begin(m)
        torch.mm(own.t(), g, out=dw)
        if d_own is not None:
            torch.mm(g, w.t(), out=d_own)


def _models(x: Tensor, sizes: list[int], weight: Tensor, out: Tensor) -> tuple[tuple[Tensor, ...], ...]:
    """Return the rows, the weights and the output rows of each model."""
    return x.split_with_sizes(sizes), weight.unbind(), out.split_with_sizes(sizes)


linear: Callable[[Tensor, Tensor, list[int]], Tensor] = _Linear.apply
norm_relu: Callable[..., Tensor] = _NormReLU.apply


def norm_relu_eval(x: Tensor, weight: Tensor, bias: Tensor, rows: Rows) -> Tensor:
    """Return relu(X_m W_m + b_m), without a gradient."""
    out = x.new_empty(x.shape[0], weight.shape[2])
    for own, w, o, b in zip(*_models(x, rows.sizes, weight, out), bias.unbind(), strict=True):
        torch.addmm(b, own, w, out=o).relu_()
    return out
