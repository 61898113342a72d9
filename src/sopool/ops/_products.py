"""Matrix products that autocast leaves in the dtype of their factors, in the backward pass as well.

Disabling autocast around a product is not enough: its gradient consists of products, too, and they would use half
precision if ``torch.compile`` records the backward pass or if it runs under autocast. The product is therefore a custom
operator.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from sopool.ops._autograd import transformed


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of ``a`` ``[..., P, Q]`` and ``b`` ``[..., Q, R]``, of shape ``[..., P, R]``."""
    if a.device.type == "meta" or not torch.is_autocast_enabled(a.device.type):
        return a @ b
    if transformed():
        with without_autocast(a.device):
            return a @ b
    out: Tensor = _product(a, b)
    return out


def without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context that disables autocast; where it is not enabled, entering the context takes no time."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


@torch.library.custom_op("sopool::product", mutates_args=(), schema="(Tensor a, Tensor b) -> Tensor")
def _product(a: Tensor, b: Tensor) -> Tensor:
    with without_autocast(a.device):
        return a @ b


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
