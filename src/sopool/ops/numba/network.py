"""Inference with a message-passing network in one call: see :mod:`sopool.ops.numba.network_loops`."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from sopool.ops.message_passing.neighbors import How, Neighbors
from sopool.ops.numba import dispatch as compiled


class Layers:
    """The linear maps of all L layers of M models, in the order in which they are applied.

    Args:
        how: The aggregation, ``"sum"``, ``"mean"`` or ``"max"``.
        eps: The additional weight of the node itself ``[M, L]``.
        weights: The first ``[M, D, H]``, all others ``[M, H, H]``.
        biases: Biases ``[M, H]`` of all maps.
        vectors: The vectors of edge labels of each layer ``[V, width]``, or none.
        view: A projection ``[M, D + L * H, R]`` of the concatenated layers, which is returned instead of them. Default:
            None.
        weighted: Whether weights of edges multiply the messages. Default: False.
    """

    def __init__(
        self,
        how: How,
        eps: Tensor,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        vectors: Sequence[Tensor] = (),
        view: Tensor | None = None,
        weighted: bool = False,
    ) -> None:
        self.how = ("sum", "mean", "max").index(how)
        self.labelled = len(vectors) > 0
        self.weighted = weighted
        (models, width, hidden) = weights[0].shape
        layers = eps.shape[1]
        rest = torch.stack(list(weights[1:]), 1) if len(weights) > 1 else eps.new_empty(models, 0, hidden, hidden)
        self.widths = [width] + [hidden] * layers if view is None else [view.shape[2]]
        view = eps.new_empty(models, width + layers * hidden, 0) if view is None else view
        views = view[:, :width], view[:, width:].reshape(models, layers, hidden, -1 if view.shape[2] else 0)
        self.maps = _arrays(eps, weights[0], rest, torch.stack(list(biases), 1))
        self.vectors = (
            _stacked(vectors) if vectors else _arrays(eps.new_empty(0, width), eps.new_empty(layers, 0, hidden))
        )
        self.views = _arrays(*views)

    def with_vectors(self, vectors: Sequence[Tensor]) -> "Layers":
        """Return the layers with other vectors of edge labels."""
        out = copy.copy(self)
        out.vectors = _stacked(vectors)
        return out

    def serves(self, neighbors: Neighbors) -> bool:
        """Return whether the edges have the labels and weights that are needed."""
        has_weights = neighbors.values is not None and neighbors.values.weights is not None
        return (neighbors.labels is not None or not self.labelled) and (has_weights or not self.weighted)


def _stacked(vectors: Sequence[Tensor]) -> list[Tensor]:
    """Return the vectors of the first layer ``[V, D]``, and those of the others ``[L - 1, V, H]``."""
    first, *further = vectors
    return _arrays(first, torch.stack(further) if further else first.new_empty(0, *first.shape))


def _arrays(*tensors: Tensor) -> list[Tensor]:
    return [tensor.detach().contiguous() for tensor in tensors]


def run_network(x: Tensor, neighbors: Neighbors, ptr: Tensor, layers: Layers) -> list[Tensor]:
    """Return the input ``[N, D]`` and each layer's output ``[N, H]``, parts of one matrix; or the view ``[N, R]``."""
    out = x.new_empty(x.shape[0], sum(layers.widths))
    labels = neighbors.labels.codes if layers.labelled and neighbors.labels else neighbors.nodes[:0]
    weights = neighbors.values.weights if layers.weighted and neighbors.values else None
    factors = x.new_empty(0) if weights is None else weights.to(x.dtype).contiguous()
    lists = neighbors.ptr, neighbors.nodes, labels, factors
    given = x.contiguous(), ptr, *lists, layers.how, *layers.maps, *layers.vectors, *layers.views
    compiled.prepare("network", *given, out, module="network_loops")()
    return list(out.split(layers.widths, dim=1))
