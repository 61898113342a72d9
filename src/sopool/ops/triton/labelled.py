"""Kernels for message passing along labeled edges, see :mod:`sopool.ops.message_passing.labelled`."""

from typing import TYPE_CHECKING

import triton
import triton.language as tl
from torch import Tensor

from sopool.ops.many_models.model_rows import Rows
from sopool.ops.triton.launching import launch, lay_out, wide
from sopool.ops.triton.neighbors import inside, launch_lists, lists_of, members_of
from sopool.ops.triton.products import relu

if TYPE_CHECKING:
    from sopool.ops.message_passing.labelled import LabelledLists

PARTS = 16
"""The number of partial sums of a vector's gradient. It is constant, so that results do not depend on the batch."""


def propagate(x: Tensor, vectors: Tensor, lists: "LabelledLists") -> Tensor:
    """Return x_i + sum_j relu(x_j + t_ij): ``[N, F]``, ``[V, F]`` to ``[N, F]``."""
    return launch_lists(_aggregate_kernel, x, lists.ptr, lists.nodes, lists.labels, vectors)[0]


def nodes_gradient(x: Tensor, vectors: Tensor, transposed: "LabelledLists", gradient: Tensor) -> Tensor:
    """Return the gradient of each node, from the nodes that aggregate it, ``[N, F]``."""
    return launch_lists(
        _nodes_gradient_kernel, x, transposed.ptr, transposed.nodes, transposed.labels, vectors, gradient
    )[0]


def vectors_gradient(x: Tensor, vectors: Tensor, neighbors: "LabelledLists", gradient: Tensor, rows: Rows) -> Tensor:
    """Return the gradient of each vector, from the edges with its label, by ``PARTS`` partial sums for each model."""
    x = lay_out(x)
    models = len(rows)
    width = x.shape[1]
    vectors = vectors.contiguous()
    gradient = gradient.contiguous()
    kinds = len(vectors) // models
    parts = x.new_empty(models, PARTS, kinds, width, dtype=wide(x))
    columns = min(64, max(16, int(triton.next_power_of_2(width))))
    launch(
        _vectors_gradient_kernel, (models * PARTS, kinds, int(triton.cdiv(width, columns))), x.device,
        x, neighbors.ptr, neighbors.nodes, neighbors.labels, vectors, gradient, rows.ptr, parts, width, x.stride(0),
        kinds,
        PARTS=PARTS, NODES=8, MEMBERS=4, F=columns, num_warps=2,
    )  # fmt: skip
    return parts.sum(1).to(x.dtype)


@triton.jit
def _along(vectors, label, column, there, width):
    """Load the vectors of some labels: ``[nodes, members, columns]``."""
    return tl.load(vectors + label[:, :, None] * width + column[None, None, :], mask=there, other=0.0)


@triton.jit
def _aggregate_kernel(
    x, ptr, nodes, labels, vectors, out, count, width, x_row,
    NODES: tl.constexpr, MEMBERS: tl.constexpr, F: tl.constexpr,
) -> None:  # fmt: skip
    node, start, length, longest = lists_of(ptr, count, NODES)
    column = tl.program_id(1) * F + tl.arange(0, F)
    total = tl.zeros([NODES, F], out.dtype.element_ty)
    for at in range(0, longest, MEMBERS):
        member, there = members_of(nodes, start, length, at, MEMBERS)
        label, _ = members_of(labels, start, length, at, MEMBERS)
        here = there[:, :, None] & (column < width)[None, None, :]
        value = tl.load(x + member[:, :, None] * x_row + column[None, None, :], mask=here, other=0.0)
        edge = (label >= 0)[:, :, None] & here
        value = tl.where(edge, relu(value + _along(vectors, label, column, edge, width)), value)
        total += tl.sum(value, 1)
    tl.store(out + node[:, None] * width + column[None, :], total, mask=inside(node, column, count, width))


@triton.jit
def _nodes_gradient_kernel(
    x, ptr, nodes, labels, vectors, gradient, out, count, width, x_row,
    NODES: tl.constexpr, MEMBERS: tl.constexpr, F: tl.constexpr,
) -> None:  # fmt: skip
    node, start, length, longest = lists_of(ptr, count, NODES)
    column = tl.program_id(1) * F + tl.arange(0, F)
    there = inside(node, column, count, width)
    own = tl.load(x + node[:, None] * x_row + column[None, :], mask=there, other=0.0)
    total = tl.zeros([NODES, F], out.dtype.element_ty)
    for at in range(0, longest, MEMBERS):
        member, heard = members_of(nodes, start, length, at, MEMBERS)
        label, _ = members_of(labels, start, length, at, MEMBERS)
        here = heard[:, :, None] & (column < width)[None, None, :]
        edge = (label >= 0)[:, :, None] & here
        passes = (own[:, None, :] + _along(vectors, label, column, edge, width) > 0) | (label < 0)[:, :, None]
        slope = tl.load(gradient + member[:, :, None] * width + column[None, None, :], mask=here, other=0.0)
        total += tl.sum(tl.where(passes, slope, 0.0), 1)
    tl.store(out + node[:, None] * width + column[None, :], total, mask=there)


@triton.jit
def _vectors_gradient_kernel(
    x, ptr, nodes, labels, vectors, gradient, rows, out, width, x_row, kinds,
    PARTS: tl.constexpr, NODES: tl.constexpr, MEMBERS: tl.constexpr, F: tl.constexpr,
) -> None:  # fmt: skip
    """Add up the gradient of one vector over a part of its model's nodes; only edges with its label are loaded."""
    model, part = tl.program_id(0) // PARTS, tl.program_id(0) % PARTS
    column = tl.program_id(2) * F + tl.arange(0, F)
    mine = model * kinds + tl.program_id(1)
    vector = tl.load(vectors + mine * width + column, mask=column < width, other=0.0)
    last = tl.load(rows + model + 1)
    total = tl.zeros([F], out.dtype.element_ty)
    for first in range(tl.load(rows + model) + part * NODES, last, PARTS * NODES):
        node = first + tl.arange(0, NODES)
        start = tl.load(ptr + node, mask=node < last, other=0)
        length = tl.load(ptr + node + 1, mask=node < last, other=0) - start
        there = inside(node, column, last, width)
        slope = tl.load(gradient + node[:, None] * width + column[None, :], mask=there, other=0.0)
        for at in range(0, tl.max(length, 0), MEMBERS):
            member, heard = members_of(nodes, start, length, at, MEMBERS)
            label, _ = members_of(labels, start, length, at, MEMBERS)
            here = (heard & (label == mine))[:, :, None] & (column < width)[None, None, :]
            value = tl.load(x + member[:, :, None] * x_row + column[None, None, :], mask=here, other=0.0)
            passed = tl.where(here & (value + vector[None, None, :] > 0), slope[:, None, :], 0.0)
            total += tl.sum(tl.sum(passed, 1), 0)
    tl.store(out + (tl.program_id(0) * kinds + tl.program_id(1)) * width + column, total, mask=column < width)
