"""Message passing along edges with labels: each neighbor's message depends on the edge's label.

    out_i = x_i + sum_j relu(x_j + t_ij)        t_ij the vector of the label of the edge from j to i

As in :mod:`sopool.ops.message_passing.neighbors` every sum is taken in one place and in one order. The gradients are
such sums as well: for a node over the nodes that aggregate it, for a vector over the edges of its label.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import once_differentiable, transformed
from sopool.ops.many_models.model_rows import Rows
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import Neighbors, list_total
from sopool.ops.numba import dispatch as compiled


class LabelledLists(NamedTuple):
    """The neighbors that each node aggregates, or those that aggregate it, and the labels of the edges between."""

    ptr: Tensor
    nodes: Tensor
    labels: Tensor


def aggregate_labelled(x: Tensor, neighbors: Neighbors | Dense, vectors: Tensor, rows: Rows) -> Tensor:
    """The formula above for each node: [n, f], ``vectors`` [M, kinds, f] -> [n, f]; ``rows``: those of each model."""
    if isinstance(neighbors, Dense) or neighbors.labels is None:
        raise ValueError(
            "This network uses the labels of edges, but the edges have none: give them as "
            "Neighbors.labels, or take a network that needs none, such as gin-0."
        )
    kinds = neighbors.labels.kinds
    if vectors.shape != (len(rows), kinds, x.shape[1]):
        raise ValueError(
            f"vectors have shape {list(vectors.shape)}: {len(rows)} models, {kinds} labels and {x.shape[1]} channels "
            f"ask for {[len(rows), kinds, x.shape[1]]}."
        )
    if transformed():
        lists = LabelledLists(neighbors.ptr, neighbors.nodes, neighbors.labels.codes)
        return list_total(_messages(x, vectors.flatten(0, 1), lists), neighbors.ptr)
    return _labelled(x, vectors, neighbors, rows)


class _Labelled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, vectors: Tensor, neighbors: Neighbors, rows: Rows) -> Tensor:
        assert neighbors.labels is not None
        ctx.save_for_backward(x, vectors)
        ctx.neighbors = LabelledLists(neighbors.ptr, neighbors.nodes, neighbors.labels.codes)
        ctx.transposed = LabelledLists(*neighbors.transposed, neighbors.labels.transposed)
        ctx.rows = rows
        return _backend(x).propagate(x, vectors.flatten(0, 1), ctx.neighbors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, vectors = ctx.saved_tensors
        backend = _backend(x)
        flat = vectors.flatten(0, 1)
        gradient = gradient.contiguous()
        dx = backend.nodes_gradient(x, flat, ctx.transposed, gradient) if ctx.needs_input_grad[0] else None
        d_vectors = (
            backend.vectors_gradient(x, flat, ctx.neighbors, gradient, ctx.rows) if ctx.needs_input_grad[1] else None
        )
        return dx, None if d_vectors is None else d_vectors.view_as(vectors), None, None


_labelled: Callable[[Tensor, Tensor, Neighbors, Rows], Tensor] = _Labelled.apply


class LabelledBackend(Protocol):
    """Who does the work. ``vectors`` are those of all models, one after the other [V, f]."""

    def propagate(self, x: Tensor, vectors: Tensor, lists: LabelledLists) -> Tensor:
        """The sum for each node."""

    def nodes_gradient(self, x: Tensor, vectors: Tensor, transposed: LabelledLists, gradient: Tensor) -> Tensor:
        """Return what reaches each node from those that aggregate it."""

    def vectors_gradient(
        self, x: Tensor, vectors: Tensor, neighbors: LabelledLists, gradient: Tensor, rows: Rows
    ) -> Tensor:
        """What reaches each vector from the edges of its label."""


class _Torch:
    """Plain PyTorch, with memory for each edge."""

    @staticmethod
    def propagate(x: Tensor, vectors: Tensor, lists: LabelledLists) -> Tensor:
        return _list_total(_messages(x, vectors, lists), lists.ptr)

    @staticmethod
    def nodes_gradient(x: Tensor, vectors: Tensor, transposed: LabelledLists, gradient: Tensor) -> Tensor:
        passes = _itself(transposed) | (_of_owners(x, transposed) + _along(vectors, transposed) > 0)
        return _list_total(gradient.index_select(0, transposed.nodes) * passes, transposed.ptr)

    @staticmethod
    def vectors_gradient(x: Tensor, vectors: Tensor, neighbors: LabelledLists, gradient: Tensor, rows: Rows) -> Tensor:
        passes = x.index_select(0, neighbors.nodes) + _along(vectors, neighbors) > 0
        numbers = neighbors.labels + 1  # the nodes themselves come first, and are left out again
        ends = torch.bincount(numbers, minlength=len(vectors) + 1).cumsum(0)
        ptr = torch.cat([ends.new_zeros(1), ends])
        order = numbers.argsort(stable=True)
        return _list_total(_of_owners(gradient, neighbors) * passes, ptr, order)[1:]


class _Loops:
    """Compiled loops, with no memory beside the results."""

    @staticmethod
    def propagate(x: Tensor, vectors: Tensor, lists: LabelledLists) -> Tensor:
        out = x.new_zeros(x.shape)
        compiled.prepare("aggregate_labelled_loop", x.contiguous(), vectors.contiguous(), *lists, out)()
        return out

    @staticmethod
    def nodes_gradient(x: Tensor, vectors: Tensor, transposed: LabelledLists, gradient: Tensor) -> Tensor:
        out = x.new_zeros(x.shape)
        compiled.prepare("labelled_nodes_gradient", x.contiguous(), vectors.contiguous(), *transposed, gradient, out)()
        return out

    @staticmethod
    def vectors_gradient(x: Tensor, vectors: Tensor, neighbors: LabelledLists, gradient: Tensor, rows: Rows) -> Tensor:
        out = x.new_zeros(vectors.shape)
        compiled.prepare("labelled_vectors_gradient", x.contiguous(), vectors.contiguous(), *neighbors, gradient, out)()
        return out


def _backend(x: Tensor) -> LabelledBackend:
    if backends.serves(x):
        from sopool.ops.triton import labelled

        return labelled
    return _Loops if compiled.serves(x) else _Torch


def _messages(x: Tensor, vectors: Tensor, lists: LabelledLists) -> Tensor:
    """Return the message of each member of the lists [e, f]."""
    rows = x.index_select(0, lists.nodes)
    return torch.where(_itself(lists), rows, (rows + _along(vectors, lists)).relu())


def _itself(lists: LabelledLists) -> Tensor:
    return (lists.labels < 0).unsqueeze(1)


def _along(vectors: Tensor, lists: LabelledLists) -> Tensor:
    """The vector of each member's edge [e, f]; any for the node itself."""
    return vectors.index_select(0, lists.labels.clamp(min=0))


def _of_owners(values: Tensor, lists: LabelledLists) -> Tensor:
    """The row of the node whose list a member is in: [n, f] -> [e, f]."""
    return values.repeat_interleave(lists.ptr.diff(), dim=0, output_size=len(lists.nodes))


def _list_total(values: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """The sum over each list of rows, in their own order or in another: [e, f] -> [n, f]."""
    rows = torch.arange(len(values), device=values.device) if order is None else order
    return F.embedding_bag(rows, values, ptr, mode="sum", include_last_offset=True)
