"""Layers of several models at once: the rows of model m meet its own weights.

This is the primitive with models for segments: a linear layer is ``segment_apply``, its weights' gradient
``segment_gram``. But models are few and their rows many, and how many is known on the host. So on a CPU each is worked
on where it lies, one after the other, while its rows are in the cache; elsewhere the rows are laid out in a block
[M, most, f], and one batched product serves all. A model's result does not depend on which others there are.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sopool.ops import compiled

EPS = 1e-5
MOMENTUM = 0.1


class Rows:
    """Where the rows of each model lie: ``ptr[m]:ptr[m + 1]``."""

    def __init__(self, ptr: Tensor) -> None:
        self.ptr = ptr.contiguous()
        self.sizes: list[int] = ptr.diff().tolist()
        self._by_type: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}

    def share(self, like: Tensor) -> Tensor:
        """1 / the number of rows, 1 where there are none [M, 1]."""
        return self._numbers(like.dtype)[0]

    def update(self, running: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> None:
        """Move running statistics on as ``torch.nn.BatchNorm1d`` does; a model without rows keeps its own."""
        _, unbias, momentum = self._numbers(mean.dtype)
        running[0].lerp_(mean, momentum)
        running[1].lerp_(variance * unbias, momentum)

    def _numbers(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """1 / n, n / (n - 1) and the momentum [M, 1] each: the same for all layers, so made once."""
        if dtype not in self._by_type:
            counts = self.ptr.diff().unsqueeze(1).to(dtype)
            several = counts.clamp(min=1)
            unbias = several / (several - 1).clamp(min=1)
            self._by_type[dtype] = (1 / several, unbias, MOMENTUM * counts.clamp(max=1))
        return self._by_type[dtype]

    @cached_property
    def places(self) -> Tensor:
        """Where each row goes in a block [M, most, f], counted through models and rows [N]."""
        model = torch.arange(len(self.sizes), device=self.ptr.device)
        first = max(self.sizes) * model - self.ptr[:-1]
        first = first.repeat_interleave(self.ptr.diff(), output_size=sum(self.sizes))
        return first + torch.arange(sum(self.sizes), device=self.ptr.device)

    @cached_property
    def filled(self) -> Tensor:
        """Which places of the block hold a row [M, most, 1], bool."""
        places = torch.arange(max(self.sizes), device=self.ptr.device)
        return (places < self.ptr.diff().unsqueeze(1)).unsqueeze(2)

    def block(self, x: Tensor) -> Tensor:
        """The rows in a block, zeros where there are none: [N, f] -> [M, most, f]."""
        block = x.new_zeros(len(self.sizes) * max(self.sizes), x.shape[1])
        return block.index_copy(0, self.places, x).view(len(self.sizes), -1, x.shape[1])

    def unblock(self, block: Tensor) -> Tensor:
        """The rows of a block: [M, most, f] -> [N, f]."""
        return block.flatten(0, 1).index_select(0, self.places)


def grouped_linear(x: Tensor, weight: Tensor, rows: Rows) -> Tensor:
    """X_m W_m: [N, f], [M, f, h] -> [N, h]."""
    if on_cpu(x):
        return _linear(x, weight, rows.sizes)
    return rows.unblock(torch.bmm(rows.block(x), weight))


def grouped_norm_relu(
    x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, running: tuple[Tensor, Tensor], rows: Rows
) -> Tensor:
    """relu(batch_norm(X_m W_m)) with each model's own statistics, and its ``running`` mean and variance [M, h] updated.

    [N, f], [M, f, h], [M, h], [M, h] -> [N, h]
    """
    if on_cpu(x):
        return _norm_relu(x, weight, scale, shift, running, rows)
    return _block_norm_relu(x, weight, scale, shift, running, rows)


def grouped_norm_relu_eval(
    x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, running: tuple[Tensor, Tensor], rows: Rows
) -> Tensor:
    """The same with the running statistics, which make the batch norm a part of the linear map."""
    factor = scale * (running[1] + EPS).rsqrt()
    weight, bias = weight * factor.unsqueeze(1), shift - running[0] * factor
    if not on_cpu(x) or torch.is_grad_enabled():
        return rows.unblock(torch.baddbmm(bias.unsqueeze(1), rows.block(x), weight).relu())
    out = x.new_empty(x.shape[0], weight.shape[2])
    for own, w, o, b in zip(*_models(x, rows.sizes, weight, out), bias.unbind(), strict=True):
        torch.addmm(b, own, w, out=o).relu_()
    return out


def on_cpu(x: Tensor) -> bool:
    """Whether models are worked on one after the other."""
    return x.device.type == "cpu"


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
    """For a CPU: product and norm of one model after the other, while its rows are in the cache."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, running: tuple[Tensor, Tensor], rows: Rows
    ) -> Tensor:
        z = x.new_empty(x.shape[0], weight.shape[2])
        y, (mean, variance, inverse) = torch.empty_like(z), scale.new_empty(3, *scale.shape)
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
        dz, (d_scale, d_shift) = torch.empty_like(y), scale.new_empty(2, *scale.shape)
        begin = _normalise_backward(gradient, centred, y, scale, inverse, rows, dz, d_scale, d_shift)
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        d_weight = torch.empty_like(weight)
        _linear_backward(x, weight, dz, rows.sizes, dx, d_weight, begin)
        return dx, d_weight, d_scale, d_shift, None, None


def _normalise(
    z: Tensor, scale: Tensor, shift: Tensor, rows: Rows, mean: Tensor, variance: Tensor, inverse: Tensor, y: Tensor
) -> Callable[[int], None]:
    """For one model after the other: its statistics, y, and z centred."""
    if compiled.serves(z):
        pieces = (scale.detach().contiguous(), shift.detach().contiguous())
        return compiled.prepare("norm_relu", z, rows.ptr, *pieces, EPS, mean, variance, inverse, y)
    zs, ys = z.split_with_sizes(rows.sizes), y.split_with_sizes(rows.sizes)

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
    """For one model after the other: dz, and the gradients of scale and shift.

    dz = slope (g - mean(g) - z^ mean(g z^)) with z^ = centred / deviation: for each model affine in centred and g.
    """
    if compiled.serves(y):
        given = (gradient.contiguous(), centred, y.detach(), rows.ptr, scale.detach().contiguous(), inverse)
        return compiled.prepare("norm_relu_backward", *given, dz, d_scale, d_shift)
    parts = list(zip(*(tensor.split_with_sizes(rows.sizes) for tensor in (gradient, centred, y, dz)), strict=True))

    def begin(m: int) -> None:
        own, c, ys, out = parts[m]
        g = torch.ops.aten.threshold_backward(own, ys, 0)
        torch.sum(g, 0, out=d_shift[m])
        torch.sum(torch.mul(g, c, out=out), 0, out=d_scale[m]).mul_(inverse[m])
        slope = scale[m] * inverse[m]
        share = slope / -max(1, rows.sizes[m])
        torch.addcmul(share * d_shift[m], c, share * inverse[m] * d_scale[m], out=out).addcmul_(g, slope)

    return begin


class _BlockNormReLU(torch.autograd.Function):
    """The same in a block [M, most, h]. Where it holds no row, what stands there meets zeros or is left behind."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, running: tuple[Tensor, Tensor], rows: Rows
    ) -> Tensor:
        block, share = rows.block(x), rows.share(x)
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
        slope = scale * inverse
        share = slope * -rows.share(g)
        constant, factor = (share * d_shift).unsqueeze(1), (share * inverse).mul_(d_scale).unsqueeze(1)
        dz = torch.addcmul(constant, centred, factor).addcmul_(g, slope.unsqueeze(1))
        d_weight = torch.bmm(block.transpose(1, 2), dz)
        dx = rows.unblock(torch.bmm(dz, weight.transpose(1, 2))) if ctx.needs_input_grad[0] else None
        return dx, d_weight, d_scale, d_shift, None, None


_linear: Callable[..., Tensor] = _Linear.apply
_norm_relu: Callable[..., Tensor] = _NormReLU.apply
_block_norm_relu: Callable[..., Tensor] = _BlockNormReLU.apply


def _linear_backward(
    x: Tensor,
    weight: Tensor,
    gradient: Tensor,
    sizes: list[int],
    dx: Tensor | None,
    d_weight: Tensor,
    begin: Callable[[int], None] = lambda _: None,
) -> None:
    """The gradients of x and of the weights, model by model; ``begin`` makes a model's part of ``gradient`` ready."""
    d_rows = (None,) * len(sizes) if dx is None else dx.split_with_sizes(sizes)
    parts = zip(*_models(x, sizes, weight, gradient), d_weight.unbind(), d_rows, strict=True)
    for m, (own, w, g, dw, d_own) in enumerate(parts):
        begin(m)
        torch.mm(own.t(), g, out=dw)
        if d_own is not None:
            torch.mm(g, w.t(), out=d_own)


def _models(x: Tensor, sizes: list[int], weight: Tensor, out: Tensor) -> tuple[tuple[Tensor, ...], ...]:
    """Each model's rows, its weights, and its rows of what comes out."""
    return x.split_with_sizes(sizes), weight.unbind(), out.split_with_sizes(sizes)


def grouped_scores(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """X_m W_m^T + b_m for equally many rows each: [M, g, f], [M, h, f], [M, h] -> [M, g, h], for a small h."""
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
