"""The base class of flat and hierarchical classifiers."""

from typing import NamedTuple

import torch
from torch import Tensor

from sopool.models.config import ModelConfig
from sopool.nn.dropout import Dropout
from sopool.nn.gnn import GNN
from sopool.ops.message_passing.neighbors import Neighbors


class Scored(NamedTuple):
    """The output of a classifier for a batch of graphs.

    Examples:
        >>> import torch
        >>> Scored(torch.zeros(3, 2)).penalty is None
        True
    """

    scores: Tensor
    """The score of each class ``[G, C]``."""
    penalty: Tensor | None = None
    """An additional loss of each graph for training ``[G]``; ``None`` if the pooling has none."""


class Classifier(torch.nn.Module):
    """Base class of graph classifiers, for one model or a stack of models (see :func:`sopool.models.stack`).

    Examples:
        >>> from sopool.models import ModelConfig, make_model, stack
        >>> config = ModelConfig(pool="sum", hidden=8)
        >>> models = [make_model(config, in_channels=3, classes=2) for _ in range(5)]
        >>> isinstance(models[0], Classifier), stack(models).models
        (True, 5)
    """

    config: ModelConfig
    heads: torch.nn.ModuleList
    draws = False
    """Whether the model draws random numbers, which follow from the keys of dropout, even where its rate is 0."""

    @property
    def models(self) -> int:
        """The number of stacked models; 1 for a single model."""
        weight = next(self.heads.parameters())
        return weight.shape[0] if weight.dim() == 3 else 1

    @property
    def capturable(self) -> bool:
        """Whether a step can be captured into a CUDA graph, which depends on all layers."""
        return all(getattr(layer, "capturable", True) for layer in self.modules() if layer is not self)

    def know(self, labels: Tensor) -> None:
        """Mark the known edge labels; ``labels`` is boolean, with one entry for each label."""
        for layer in self.modules():
            if isinstance(layer, GNN) and layer.known is not None:
                layer.known.copy_(labels)

    def decays(self) -> list[Tensor] | None:
        """Return the decoupled weight decay of each parameter, in the shape of the parameter; ``None`` for none."""
        return None

    def embed(
        self, x: Tensor, neighbors: Neighbors, ptr: Tensor, graph_x: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor | None]]:
        """Return one or several graph embeddings ``[G, F]``, each with the additional loss of each graph."""
        raise NotImplementedError(f"{type(self).__name__} must define embed(x, neighbors, ptr, graph_x).")

    def classify(
        self,
        x: Tensor,
        neighbors: Neighbors,
        ptr: Tensor,
        graph_x: Tensor | None = None,
        dropout: Dropout | None = None,
    ) -> Scored:
        """Return scores and penalties of graphs with features ``[N, F]`` and first nodes ``ptr`` ``[G + 1]``."""
        raise NotImplementedError(f"{type(self).__name__} must define classify(x, neighbors, ptr, graph_x, dropout).")

    def attributes(self, graph_x: Tensor | None) -> Tensor:
        """Return the attributes of graphs ``[G, D]``; raise a ``ValueError`` if they are not what the model uses."""
        given = 0 if graph_x is None else graph_x.shape[1]
        if graph_x is None or given != self.config.graph_attributes:
            raise ValueError(
                f"This model uses {self.config.graph_attributes} attributes of each graph, but graph_x has "
                f"{given or 'none'}: pass graph_x with {self.config.graph_attributes} columns."
            )
        return graph_x

    def append(self, embedding: Tensor, graph_x: Tensor | None) -> Tensor:
        """Append the attributes of graphs to an embedding ``[G, F]``, if the model uses them."""
        return torch.cat([embedding, self.attributes(graph_x)], 1) if self.config.graph_attributes else embedding

    def score(self, embedding: Tensor, head: torch.nn.Module, place: int, dropout: Dropout | None) -> Tensor:
        """Return the scores of a head, with dropout on the embedding or on the scores as configured."""
        if dropout is not None and self.config.dropout_on == "embedding":
            embedding = dropout(embedding, place)
        scores: Tensor = head(embedding)
        return dropout(scores, place) if dropout is not None and self.config.dropout_on == "logits" else scores

    def forward(
        self,
        x: Tensor,
        neighbors: Neighbors,
        ptr: Tensor,
        graph_x: Tensor | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Return the scores ``[G, C]`` of :meth:`classify`."""
        return self.classify(x, neighbors, ptr, graph_x, dropout).scores


def add(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    """Add two tensors, either of which may be ``None``."""
    return more if total is None else total if more is None else total + more
