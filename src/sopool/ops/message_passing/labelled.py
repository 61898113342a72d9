"""Message passing along labeled edges, where each message depends on the label of its edge.

    out_i = x_i + sum_j relu(x_j + t_ij)        t_ij: the vector of the label of the edge from j to i

As in :mod:`sopool.ops.message_passing.neighbors`, every sum is computed in one place and in a fixed order. The
gradients are sums of the same kind: for a node over the nodes that aggregate it, for a vector over the edges with its
label.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import once_differentiable, transformed
from sopool.ops.many_models.model_rows import Rows
from sopool.ops.message_passing.entries import list_total
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.numba import dispatch as compiled


class LabelledLists(NamedTuple):
    """The neighbors that each node aggregates, or the nodes that aggregate it, with the labels of the edges."""

    ptr: Tensor
    nodes: Tensor
    labels: Tensor


def aggregate_labelled(x: Tensor, neighbors: Neighbors, vectors: Tensor, rows: Rows) -> Tensor:
    """Return ``x_i + sum_j relu(x_j + t_ij)`` for each node i, where j runs over its neighbors.

    Args:
        x: Node features ``[N, F]``.
        neighbors: The neighbors of each node, with edge labels.
        vectors: One vector for each model and label ``[M, kinds, F]``.
        rows: The rows of each model.

    Returns:
        Node features ``[N, F]``.

    Raises:
        ValueError: If the edges have no labels, or if ``vectors`` has another shape.

    Examples:
        >>> import torch
        >>> from sopool.ops.many_models.model_rows import Rows
        >>> from sopool.ops.message_passing.labelled import aggregate_labelled
        >>> from sopool.ops.message_passing.neighbors import EdgeLabels, neighbors_of
        >>> graph = neighbors_of(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> codes = torch.tensor([-1, 0, 0, -1])  # -1 marks the node itself
        >>> graph = graph._replace(labels=EdgeLabels(codes, codes, kinds=1))
        >>> x = torch.tensor([[1.0], [-5.0]])
        >>> vectors = torch.full((1, 1, 1), 2.0)  # one model, one label, one feature
        >>> aggregate_labelled(x, graph, vectors, Rows(torch.tensor([0, 2]))).flatten()
        tensor([ 1., -2.])
    """
    lists = _lists_for(x, neighbors, vectors, rows)
    if transformed():
        return list_total(_messages(x, vectors.flatten(0, 1), lists), lists.ptr)
    return _labelled(x, vectors, neighbors, rows)


def along_entries(x: Tensor, neighbors: Neighbors, vectors: Tensor, rows: Rows) -> Tensor:
    """Return the vector of the edge to each list entry, 0 for the node itself; see :func:`aggregate_labelled`.

    Args:
        x: Node features ``[N, F]``.
        neighbors: The neighbors of each node, with edge labels.
        vectors: One vector for each model and label ``[M, kinds, F]``.
        rows: The rows of each model.

    Returns:
        The vectors ``[L, F]``.
    """
    lists = _lists_for(x, neighbors, vectors, rows)
    return F.embedding(lists.labels + 1, F.pad(vectors.flatten(0, 1), (0, 0, 1, 0)))


def _lists_for(x: Tensor, neighbors: Neighbors, vectors: Tensor, rows: Rows) -> LabelledLists:
    """Return the lists with the labels; raise a ``ValueError`` if there are none, or not these ``vectors``."""
    if neighbors.labels is None:
        raise ValueError(
            "This network uses edge labels, but the edges have none: pass them as Neighbors.labels, or use a network "
            "without edge labels, such as gin-0."
        )
    kinds = neighbors.labels.kinds
    if vectors.shape != (len(rows), kinds, x.shape[1]):
        raise ValueError(
            f"vectors have shape {list(vectors.shape)}: {len(rows)} models, {kinds} labels and {x.shape[1]} channels "
            f"require {[len(rows), kinds, x.shape[1]]}."
        )
    return LabelledLists(neighbors.ptr, neighbors.nodes, neighbors.labels.codes)


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
    """The interface of an implementation. ``vectors`` are those of all models, concatenated ``[V, F]``."""

    def propagate(self, x: Tensor, vectors: Tensor, lists: LabelledLists) -> Tensor:
        """Return the sum over the list of each node."""

    def nodes_gradient(self, x: Tensor, vectors: Tensor, transposed: LabelledLists, gradient: Tensor) -> Tensor:
        """Return the gradient of each node, from the nodes that aggregate it."""

    def vectors_gradient(
        self, x: Tensor, vectors: Tensor, neighbors: LabelledLists, gradient: Tensor, rows: Rows
    ) -> Tensor:
        """Return the gradient of each vector, from the edges with its label."""


class _Torch:
    """The implementation in plain PyTorch, which needs memory for each edge."""

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
        numbers = neighbors.labels + 1  # 0 for the nodes themselves, dropped in the end
        ends = torch.bincount(numbers, minlength=len(vectors) + 1).cumsum(0)
        ptr = torch.cat([ends.new_zeros(1), ends])
        order = numbers.argsort(stable=True)
        return _list_total(_of_owners(gradient, neighbors) * passes, ptr, order)[1:]


class _Loops:
    """The implementation by compiled loops, which need no memory besides the results."""

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
    return _Loops if compiled.serves_alone(x) else _Torch


def _messages(x: Tensor, vectors: Tensor, lists: LabelledLists) -> Tensor:
    """Return the message of each of the L list entries, ``[L, F]``."""
    rows = x.index_select(0, lists.nodes)
    return torch.where(_itself(lists), rows, (rows + _along(vectors, lists)).relu())


def _itself(lists: LabelledLists) -> Tensor:
    return (lists.labels < 0).unsqueeze(1)


def _along(vectors: Tensor, lists: LabelledLists) -> Tensor:
    """Return the vector of the edge of each list entry, ``[L, F]``; it is arbitrary for the node itself."""
    return vectors.index_select(0, lists.labels.clamp(min=0))


def _of_owners(values: Tensor, lists: LabelledLists) -> Tensor:
    """Return the row of the node whose list each entry is in: ``[N, F]`` to ``[L, F]``."""
    return values.repeat_interleave(lists.ptr.diff(), dim=0, output_size=len(lists.nodes))


def _list_total(values: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """Return the sum over each list of rows, which ``order`` permutes if it is given: ``[L, F]`` to ``[N, F]``."""
    rows = torch.arange(len(values), device=values.device) if order is None else order
    return F.embedding_bag(rows, values, ptr, mode="sum", include_last_offset=True)
