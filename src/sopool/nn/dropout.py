"""Dropout without a state: a key determines which values are dropped, independently of the device."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import transformed

# Multipliers of murmur3's 32-bit finalizer and of a Weyl sequence, as signed numbers; products wrap around.
WEYL, FIRST, SECOND = -1640531527, -2048144789, -1028477387


class Dropout(NamedTuple):
    """Dropout for a stack of M models in one training step."""

    keys: Tensor
    """A random key for each model and step ``[M]``, int32."""
    rates: Tensor
    """The fraction of values to drop ``[M]``."""

    def __call__(self, values: Tensor, place: int = 0) -> Tensor:
        """Drop some of ``values`` and scale up the others; ``place`` distinguishes several uses in one step."""
        per_model = values.view(self.keys.numel(), -1)
        keys = self.keys + place * WEYL
        if backends.serves(values) and not transformed():
            return _drop(per_model, keys, self.rates.to(values.dtype)).view_as(values)
        numbers = random_bits(keys, per_model.shape[1])
        dropped = numbers < (self.rates.double() * 2**31).int().unsqueeze(1)
        scale = 1 / (1 - self.rates.to(values.dtype)).unsqueeze(1)
        return (per_model * scale).masked_fill(dropped, 0).view_as(values)


class _Drop(torch.autograd.Function):
    """Dropout in one kernel. The gradient is dropped and scaled in the same way as the values."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, keys: Tensor, rates: Tensor) -> Tensor:
        from sopool.ops.triton.elementwise import drop

        ctx.save_for_backward(keys, rates)
        return drop(values, keys, rates)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _drop(gradient, *ctx.saved_tensors), None, None


_drop: Callable[[Tensor, Tensor, Tensor], Tensor] = _Drop.apply


def random_bits(keys: Tensor, count: int) -> Tensor:
    """Return 31 random bits for each key and position ``[M, count]``, int32, by two rounds of murmur3's finalizer."""
    bits = torch.arange(count, dtype=torch.int32, device=keys.device).mul_(WEYL).unsqueeze(0) ^ keys.unsqueeze(1)
    bits = _mix(_mix(bits).add_(keys.unsqueeze(1)))
    return bits.bitwise_and_(0x7FFFFFFF)


def _mix(bits: Tensor) -> Tensor:
    """Apply murmur3's finalizer in place. Shifts are arithmetic, so the bits shifted in from the sign are masked."""
    for shift, multiplier in ((16, FIRST), (13, SECOND), (16, 1)):
        bits.bitwise_xor_((bits >> shift).bitwise_and_((1 << (32 - shift)) - 1))
        bits.mul_(multiplier)
    return bits
