"""Kernels for values ``[M, n]`` of M models that fuse several elementwise operations into one launch."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.launching import launch

BLOCK = 1024


def adam_step(
    values: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    pace: Tensor,
    root: Tensor,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Apply a step of Adam in place, all contiguous ``[M, n]``; see :class:`sopool.training.bank.optimizer.Adam`."""
    constants = {"BETA1": betas[0], "BETA2": betas[1], "EPS": eps}
    _launch(adam_kernel, values, gradient, mean, square, pace, root, values.shape[1], **constants)


def drop(values: Tensor, keys: Tensor, rates: Tensor) -> Tensor:
    """Set values to zero where a hash of the model's key and the position is below its rate, and scale up the others.

    Shapes are ``[M, n]`` to ``[M, n]``.
    """
    values = values.contiguous()
    out = torch.empty_like(values)
    _launch(drop_kernel, values, keys, rates, out, values.shape[1])
    return out


def _launch(kernel: Any, values: Tensor, *arguments: Tensor | int, **constants: float) -> None:
    models, count = values.shape
    grid = (models, int(triton.cdiv(count, BLOCK)))
    launch(kernel, grid, values.device, values, *arguments, **constants, BLOCK=BLOCK, num_warps=4)


@triton.jit
def adam_kernel(
    values, gradient, mean, square, pace, root, count,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Update one block of one model."""
    model = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at, inside = model * count + column, column < count
    slope = tl.load(gradient + at, mask=inside, other=0.0)
    first, second = tl.load(mean + at, mask=inside, other=0.0), tl.load(square + at, mask=inside, other=0.0)
    first += (slope - first) * (1 - BETA1)
    second = second * BETA2 + slope * slope * (1 - BETA2)
    tl.store(mean + at, first, mask=inside)
    tl.store(square + at, second, mask=inside)
    move = first / (tl.sqrt(second) / tl.load(root) + EPS) * tl.load(pace + model)
    tl.store(values + at, tl.load(values + at, mask=inside, other=0.0) - move, mask=inside)


@triton.jit
def drop_kernel(values, keys, rates, out, count, BLOCK: tl.constexpr) -> None:
    """Process one block of one model; the hash is that of :func:`sopool.nn.dropout.random_bits`."""
    model = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < count
    key = tl.load(keys + model).to(tl.uint32, bitcast=True)
    bits = _mix(_mix((column.to(tl.uint32) * 0x9E3779B9) ^ key) + key) & 0x7FFFFFFF
    rate = tl.load(rates + model)
    dropped = bits.to(tl.int32) < (rate.to(tl.float64) * 2147483648.0).to(tl.int32)
    kept = tl.load(values + model * count + column, mask=inside, other=0.0) * (1 / (1 - rate))
    tl.store(out + model * count + column, tl.where(dropped, 0.0, kept), mask=inside)


@triton.jit
def _mix(bits):
    """Apply the finalizer of MurmurHash3."""
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE35
    return bits ^ (bits >> 16)
