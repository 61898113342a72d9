"""Trained models that predict together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sopool.data.base_encoder import Encoder
from sopool.data.features import NodeFeatures
from sopool.data.store import PackedGraphs
from sopool.models.classifier import Classifier
from sopool.models.make import clusters_for
from sopool.training.clusters import ClusterTables
from sopool.training.tables import Batch, GraphTables
from sopool.training.watch import TOGETHER


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A stack of models, and how the nodes of any graphs become features for each of them."""

    model: Classifier
    """[M, ...]."""
    encoder: Encoder
    substitutes: Tensor
    """The column that each model sees for each column of the encoder [M, width]: what it has not met is unknown."""
    classes: int

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return self.substitutes.device

    def to(self, device: torch.device | str) -> "Ensemble":
        """The same on another device."""
        return replace(self, model=self.model.to(device), substitutes=self.substitutes.to(device))

    def encode(self, store: PackedGraphs) -> NodeFeatures:
        """The features of all nodes of a store, on its device."""
        return self.encoder.transform(store)

    def scores(self, store: PackedGraphs, features: NodeFeatures) -> Tensor:
        """Of each model for each graph and class [M, G, classes]."""
        return self._run(store, features, lambda batch: self.model(*batch))

    def embeddings(self, store: PackedGraphs, features: NodeFeatures) -> Tensor:
        """What the models pool each graph into, all layers or blocks side by side [M, G, d]."""

        def embed(batch: Batch) -> Tensor:
            return torch.cat([pooled.flatten(1) for pooled, _ in self.model.embed(*batch)], dim=1)

        return self._run(store, features, embed)

    @torch.no_grad()
    def _run(self, store: PackedGraphs, features: NodeFeatures, work: Callable[[Batch], Tensor]) -> Tensor:
        """Some graphs at a time, so many that their nodes fill what is done at once: [M g, w] -> [M, G, w]."""
        self.model.eval()
        tables = GraphTables.for_prediction(store, features, self.classes)
        clusters = clusters_for(self.model.config)
        if clusters is not None:
            tables = replace(tables, clusters=ClusterTables.build(store, clusters))
        tables, models = tables.to(self.device), self.model.models
        parts = []
        for start, end in cut(store.sizes.cpu().numpy(), self._nodes_at_once):
            graphs = torch.arange(start, end, device=self.device).expand(models, -1)
            parts.append(work(tables.batch(graphs, self.substitutes)).view(models, end - start, -1))
        return torch.cat(parts, dim=1)

    @property
    def _nodes_at_once(self) -> int:
        kind = self.device.type
        return TOGETHER[kind] // self.model.models if kind == "cuda" else TOGETHER["cpu"]


def cut(sizes: np.ndarray, nodes: int) -> Iterator[tuple[int, int]]:
    """Stretches of graphs of about so many nodes each: (first, one past the last)."""
    piece = np.cumsum(sizes) // nodes
    ends = np.flatnonzero(np.diff(piece, append=-1)) + 1
    yield from zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
