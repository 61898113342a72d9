"""What flat and hierarchical classifiers share."""

from typing import NamedTuple

import torch
from torch import Tensor

from sopool.models.config import ModelConfig
from sopool.nn.dropout import Dropout
from sopool.nn.gnn import GNN
from sopool.ops.message_passing.neighbors import Neighbors


class Scored(NamedTuple):
    """What a model says of a batch of graphs."""

    scores: Tensor
    """Of each class [G, classes]."""
    penalty: Tensor | None = None
    """What each graph adds to its loss in training [G]; None where the pooling asks for nothing."""


class Classifier(torch.nn.Module):
    """Graphs to scores of classes; one model, or a stack of them (see :func:`sopool.models.stack`)."""

    config: ModelConfig
    heads: torch.nn.ModuleList

    @property
    def models(self) -> int:
        """How many models are stacked in it."""
        weight = next(self.heads.parameters())
        return weight.shape[0] if weight.dim() == 3 else 1

    @property
    def capturable(self) -> bool:
        """Whether a step can be captured into a CUDA graph: all of its layers say so."""
        return all(getattr(layer, "capturable", True) for layer in self.modules() if layer is not self)

    def know(self, labels: Tensor) -> None:
        """Make edge labels unknown that are not among these [labels], bool."""
        for layer in self.modules():
            if isinstance(layer, GNN) and layer.known is not None:
                layer.known.copy_(labels)

    def embed(self, x: Tensor, neighbors: Neighbors, ptr: Tensor) -> list[tuple[Tensor, Tensor | None]]:
        """Graph embeddings [G, ...], one or several, each with what it adds to the loss of a graph [G]."""
        raise NotImplementedError(f"{type(self).__name__} must define embed(x, neighbors, ptr).")

    def classify(self, x: Tensor, neighbors: Neighbors, ptr: Tensor, dropout: Dropout | None = None) -> Scored:
        """Features [N, in], the neighbors of each node, where each graph starts [G + 1] -> scores and penalties."""
        raise NotImplementedError(f"{type(self).__name__} must define classify(x, neighbors, ptr, dropout).")

    def score(self, embedding: Tensor, head: torch.nn.Module, place: int, dropout: Dropout | None) -> Tensor:
        """A head's scores of embeddings, with dropout where the configuration wants it."""
        if dropout is not None and self.config.dropout_on == "embedding":
            embedding = dropout(embedding, place)
        scores: Tensor = head(embedding)
        return dropout(scores, place) if dropout is not None and self.config.dropout_on == "logits" else scores

    def forward(self, x: Tensor, neighbors: Neighbors, ptr: Tensor, dropout: Dropout | None = None) -> Tensor:
        """The scores of :meth:`classify` [G, classes]."""
        return self.classify(x, neighbors, ptr, dropout).scores


def add(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    """The sum of what is there."""
    return more if total is None else total if more is None else total + more
