"""Gradients that have none of their own."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A ``backward`` that is a constant to autograd, and says so when a second derivative is asked of it.

    That of ``torch.autograd.function`` does not: where the incoming gradient is constant, and wherever
    ``torch.autograd.grad`` names its inputs, what depends on this gradient is left out in silence.
    """

    @wraps(backward)
    def wrapper(ctx: Any, *gradients: Tensor) -> Any:
        with torch.no_grad():
            slopes = backward(ctx, *gradients)
        if not torch.is_grad_enabled():
            return slopes
        slopes = slopes if isinstance(slopes, tuple) else (slopes,)
        return _refuse(type(ctx).__name__, len(slopes), *slopes, *gradients, *ctx.saved_tensors)

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
