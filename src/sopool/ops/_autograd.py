"""What operators owe to ``torch.func`` and to forward mode.

An operator of ``torch.library`` has a gradient, and nothing else: forward mode would go past it in silence, as if it
were constant, and ``torch.func.grad`` refuses it. So where such a transform is at work, the primitive
(:mod:`sopool.ops.segment.gram`) takes the way of an ``autograd.Function`` that knows all derivatives, and the other
operators are written out in terms of it.

Under ``vmap`` the samples of an operator over rows are laid end to end, as graphs are anyway; those of one that looks
at each column by itself lie side by side.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd import forward_ad

from sopool.ops.segment.segments import Segments


def transformed() -> bool:
    """Whether forward mode, or a transform of ``torch.func`` that takes derivatives or batches, is at work."""
    # The second, which looks like the first, is what compiled code remembers: that no forward mode was at work.
    return _at_work() or forward_ad._current_level >= 0


def _look() -> bool:
    innermost = _functorch.peek_interpreter_stack()
    by_function = innermost is not None and innermost.key() != _functorch.TransformType.Functionalize
    return by_function or forward_ad._current_level >= 0


# The compiler follows transforms inside what it compiles, so to it this is a constant.
_at_work: Callable[[], bool] = torch.compiler.assume_constant_result(_look)


def samples_of(count: int, dims: tuple[int | None, ...], *values: Tensor | None) -> list[Any]:
    """What ``vmap`` gives, with an axis of samples in front of each; ``dims`` that are left out at the end are None."""
    known = (*dims, *[None] * len(values))
    return [None if value is None else _in_front(value, dim, count) for value, dim in zip(values, known, strict=False)]


def lay_end_to_end(ptr: Tensor, order: Tensor | None, num_rows: int) -> Segments:
    """The segments of samples of ``num_rows`` rows each, and after those of each one more, which holds spare rows.

    ``ptr`` [B, G + 1], ``order`` [B, N].
    """
    shift = num_rows * torch.arange(len(ptr), device=ptr.device).unsqueeze(1)
    end = shift.new_full((1,), len(ptr) * num_rows)
    return Segments(torch.cat([(ptr + shift).flatten(), end]), None if order is None else (order + shift).flatten())


def by_columns(operator: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, int]]:
    """The rule for ``vmap`` of an operator on (x [N, f], ptr) that looks at each column by itself."""

    def batched(info: Any, in_dims: tuple[int | None, ...], x: Tensor, ptr: Tensor) -> tuple[Tensor, int]:
        if in_dims[1] is not None:
            raise ValueError("ptr differs between the samples of vmap: it must be the same for all.")
        samples = _in_front(x, in_dims[0], info.batch_size)
        out = operator(samples.movedim(0, 1).flatten(1), ptr)
        return out.unflatten(1, samples.shape[::2]), 1

    return batched


def _in_front(value: Tensor, dim: int | None, count: int) -> Tensor:
    return value.expand(count, *value.shape) if dim is None else value.movedim(dim, 0)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A ``backward`` that is a constant to autograd, and says so when a second derivative is asked of it.

    That of ``torch.autograd.function`` does not: where the incoming gradient is constant, and wherever
    ``torch.autograd.grad`` names its inputs, what depends on this gradient is left out in silence.
    """

    @wraps(backward)
    def wrapper(ctx: Any, *gradients: Tensor) -> Any:
        with torch.no_grad():
            results = backward(ctx, *gradients)
        if not torch.is_grad_enabled():
            return results
        results = results if isinstance(results, tuple) else (results,)
        return _refuse(type(ctx).__name__, len(results), *results, *gradients, *ctx.saved_tensors)

    return wrapper


class _Refuse(torch.autograd.Function):
    """The first ``count`` of some tensors, which depend on the others in a way that is not known."""

    @staticmethod
    def forward(ctx: Any, name: str, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        ctx.name = name
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        raise RuntimeError(
            f"{ctx.name} has no second derivative: message passing along labelled edges or by the maximum, and layers "
            "of several models, have first ones only. Take second derivatives of readouts and poolings, with respect "
            "to the node features that go into them."
        )


_refuse: Callable[..., Any] = _Refuse.apply
