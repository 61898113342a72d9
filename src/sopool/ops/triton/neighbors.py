"""Kernels for message passing over lists: a program processes some nodes, several entries of their lists at a time."""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.triton.launching import launch, lay_out

LONG = 6
"""The mean list length above which a program takes fewer nodes and more of their list entries at a time."""


def list_sum(x: Tensor, ptr: Tensor, nodes: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the sum over each list ``[N, F]``, zero for an empty one; ``weights`` ``[L]`` multiply its entries."""
    if weights is None:
        return launch_lists(_sum_kernel, x, ptr, nodes)[0]
    return launch_lists(_weighted_sum_kernel, x, ptr, nodes, weights)[0]


def list_max(x: Tensor, ptr: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maximum of each list, zero for an empty one, and the number of entries with it, ``[N, F]`` each."""
    largest, shared = launch_lists(_max_kernel, x, ptr, nodes, outputs=2)
    return largest, shared


def list_max_backward(x: Tensor, largest: Tensor, share: Tensor, transposed: tuple[Tensor, Tensor]) -> Tensor:
    """Return the gradient of each node: the sum of ``share`` ``[N, F]`` over the lists in which it is the maximum."""
    return launch_lists(_max_backward_kernel, x, *transposed, largest, share)[0]


def launch_lists(kernel: Any, x: Tensor, ptr: Tensor, nodes: Tensor, *more: Tensor, outputs: int = 1) -> list[Tensor]:
    """Launch a kernel that computes ``outputs`` rows ``[N, F]`` from each node's list; ``more`` are further inputs."""
    count, width = ptr.numel() - 1, x.shape[1]
    x = lay_out(x)
    others = [tensor.contiguous() for tensor in more]
    out = [x.new_empty(count, width) for _ in range(outputs)]
    columns = min(64, max(16, triton.next_power_of_2(width)))
    several, members = (4, 8) if nodes.numel() > LONG * count else (512 // columns, 4)
    if count and width:
        grid = (triton.cdiv(count, several), triton.cdiv(width, columns))
        launch(
            kernel, grid, x.device, x, ptr, nodes, *others, *out, count, width, x.stride(0),
            NODES=several, MEMBERS=members, F=columns, num_warps=2 if several >= 16 else 1,
        )  # fmt: skip
    return out


@triton.jit
def lists_of(ptr, count, NODES: tl.constexpr):
    """Return some nodes, the starts and lengths of their lists, and the largest length."""
    node = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    start = tl.load(ptr + node, mask=node < count, other=0)
    length = tl.load(ptr + node + 1, mask=node < count, other=0) - start
    return node, start, length, tl.max(length, 0)


@triton.jit
def members_of(nodes, start, length, at, MEMBERS: tl.constexpr):
    """Return the next entries of each list, and which of them exist."""
    place = at + tl.arange(0, MEMBERS)
    there = place[None, :] < length[:, None]
    return tl.load(nodes + start[:, None] + place[None, :], mask=there, other=0), there


@triton.jit
def _sum_kernel(
    x, ptr, nodes, out, count, width, x_row,
    NODES: tl.constexpr, MEMBERS: tl.constexpr, F: tl.constexpr,
) -> None:  # fmt: skip
    node, start, length, longest = lists_of(ptr, count, NODES)
    column = tl.program_id(1) * F + tl.arange(0, F)
    total = tl.zeros([NODES, F], out.dtype.element_ty)
    for at in range(0, longest, MEMBERS):
        member, there = members_of(nodes, start, length, at, MEMBERS)
        valid = there[:, :, None] & (column < width)[None, None, :]
        total += tl.sum(tl.load(x + member[:, :, None] * x_row + column[None, None, :], mask=valid, other=0.0), 1)
    tl.store(out + node[:, None] * width + column[None, :], total, mask=inside(node, column, count, width))


@triton.jit
def _weighted_sum_kernel(
    x, ptr, nodes, weights, out, count, width, x_row,
    NODES: tl.constexpr, MEMBERS: tl.constexpr, F: tl.constexpr,
) -> None:  # fmt: skip
    node, start, length, longest = lists_of(ptr, count, NODES)
    column = tl.program_id(1) * F + tl.arange(0, F)
    total = tl.zeros([NODES, F], out.dtype.element_ty)
    for at in range(0, longest, MEMBERS):
        member, there = members_of(nodes, start, length, at, MEMBERS)
        weight, _ = members_of(weights, start, length, at, MEMBERS)
        valid = there[:, :, None] & (column < width)[None, None, :]
        value = tl.load(x + member[:, :, None] * x_row + column[None, None, :], mask=valid, other=0.0)
        total += tl.sum(value * weight[:, :, None], 1)
    tl.store(out + node[:, None] * width + column[None, :], total, mask=inside(node, column, count, width))


@triton.jit
def _max_kernel(
    x, ptr, nodes, out, shared, count, width, x_row,
    NODES: tl.constexpr, MEMBERS: tl.constexpr, F: tl.constexpr,
) -> None:  # fmt: skip
    node, start, length, longest = lists_of(ptr, count, NODES)
    column = tl.program_id(1) * F + tl.arange(0, F)
    best = tl.full([NODES, F], float("-inf"), out.dtype.element_ty)
    ties = tl.zeros([NODES, F], out.dtype.element_ty)
    missing = tl.zeros([NODES, F], out.dtype.element_ty)
    for at in range(0, longest, MEMBERS):
        member, there = members_of(nodes, start, length, at, MEMBERS)
        valid = there[:, :, None] & (column < width)[None, None, :]
        value = tl.load(x + member[:, :, None] * x_row + column[None, None, :], mask=valid, other=float("-inf"))
        here = tl.maximum(tl.max(value, 1), best)
        ties = tl.where(here > best, 0.0, ties) + tl.sum((valid & (value == here[:, None, :])).to(ties.dtype), 1)
        best = here
        missing += tl.sum((valid & (value != value)).to(missing.dtype), 1)
    best = tl.where(missing > 0, float("nan"), best)
    ties = tl.where(missing > 0, missing, ties)
    at_out, there = node[:, None] * width + column[None, :], inside(node, column, count, width)
    tl.store(out + at_out, tl.where(length[:, None] > 0, best, 0.0), mask=there)
    tl.store(shared + at_out, ties, mask=there)


@triton.jit
def _max_backward_kernel(
    x, ptr, nodes, largest, share, out, count, width, x_row,
    NODES: tl.constexpr, MEMBERS: tl.constexpr, F: tl.constexpr,
) -> None:  # fmt: skip
    node, start, length, longest = lists_of(ptr, count, NODES)
    column = tl.program_id(1) * F + tl.arange(0, F)
    there = inside(node, column, count, width)
    own = tl.load(x + node[:, None] * x_row + column[None, :], mask=there, other=0.0)
    total = tl.zeros([NODES, F], out.dtype.element_ty)
    for at in range(0, longest, MEMBERS):
        member, here = members_of(nodes, start, length, at, MEMBERS)
        valid = here[:, :, None] & (column < width)[None, None, :]
        where = member[:, :, None] * width + column[None, None, :]
        most = tl.load(largest + where, mask=valid, other=0.0)
        part = tl.load(share + where, mask=valid, other=0.0)
        is_largest = (most == own[:, None, :]) | ((most != most) & (own != own)[:, None, :])
        total += tl.sum(tl.where(is_largest, part, 0.0), 1)
    tl.store(out + node[:, None] * width + column[None, :], total, mask=there)


@triton.jit
def inside(node, column, count, width):
    """Return which values of a block exist."""
    return (node < count)[:, None] & (column < width)[None, :]
