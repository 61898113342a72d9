"""Matrix products that autocast leaves in the dtype of their factors, in the backward pass as well.

Disabling autocast around a product is not enough: its gradient consists of products, too, and they would use half
precision if ``torch.compile`` records the backward pass or if it runs under autocast. The product is therefore a custom
operator.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from sopool.ops._autograd import transformed

Computation = TypeVar("Computation", bound=Callable[..., Any])


def without_autocast(compute: Computation) -> Computation:
    """Make a function of tensors independent of autocast; the first argument is on the device where it matters."""

    @wraps(compute)
    def wrapper(x: Tensor, *arguments: Any, **options: Any) -> Any:
        if not torch.is_autocast_enabled(x.device.type):
            return compute(x, *arguments, **options)
        with torch.autocast(x.device.type, enabled=False):
            return compute(x, *arguments, **options)

    return cast(Computation, wrapper)


@without_autocast
def _multiply(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of ``a`` ``[..., P, Q]`` and ``b`` ``[..., Q, R]``, of shape ``[..., P, R]``."""
    if a.device.type == "meta" or not torch.is_autocast_enabled(a.device.type):
        return a @ b
    if transformed():
        return _multiply(a, b)
    out: Tensor = _product(a, b)
    return out


@torch.library.custom_op("sopool::product", mutates_args=(), schema="(Tensor a, Tensor b) -> Tensor")
def _product(a: Tensor, b: Tensor) -> Tensor:
    return _multiply(a, b)


@_product.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(*a.shape[:-1], b.shape[-1])


def _save(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    needs_a, needs_b = ctx.needs_input_grad
    return product(gradient, b.mT) if needs_a else None, product(a.mT, gradient) if needs_b else None


_product.register_autograd(_backward, setup_context=_save)
