"""Trained models that predict together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sopool._runtime.threads import one_threaded_pool, threads
from sopool.data.analysis.spectral import spectral_clusters
from sopool.data.features.edge_labels import EdgeCodes, EdgeLabelEncoder
from sopool.data.features.encoders import Encoder
from sopool.data.features.node_features import NodeFeatures
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError
from sopool.models.base import Classifier
from sopool.models.config import ModelConfig
from sopool.models.inference import prepare_for_inference
from sopool.models.make import clusters_for
from sopool.training.bank.batching import Batch, GraphTables
from sopool.training.bank.cluster_tables import ClusterTables

TOGETHER = {"cpu": 2**15, "cuda": 2**20}
"""Nodes of all models that are worked on at a time: on a CPU a cache-full."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A stack of models, and how the nodes of any graphs become features for each of them."""

    model: Classifier
    """[M, ...]."""
    encoder: Encoder
    substitutes: Tensor
    """The column that each model sees for each column of the encoder [M, width]: what it has not met is unknown."""
    classes: int
    edges: EdgeLabelEncoder | None = None
    """For models that use edge labels."""

    @property
    def fields(self) -> dict[str, int | None]:
        """What graphs must have: the names of :class:`~sopool.data.Graph`, with the width of attributes."""
        return self.encoder.fields | ({} if self.edges is None else {"edge_labels": None})

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return self.substitutes.device

    def to(self, device: torch.device | str) -> "Ensemble":
        """The same on another device."""
        return replace(self, model=self.model.to(device), substitutes=self.substitutes.to(device))

    def encode(self, store: PackedGraphs) -> NodeFeatures:
        """The features of all nodes of a store, on its device; a ``DataError`` where the nodes lack something."""
        lacking = next((name for name in self.encoder.fields if getattr(store, name) is None), None)
        if lacking:
            raise DataError(f"{store.name} has no {lacking}; the graphs that the model was trained on have.")
        return self.encoder.transform(store)

    def encode_edges(self, store: PackedGraphs) -> EdgeCodes | None:
        """The labels of all edges of a store; None if the models do not use them."""
        return None if self.edges is None else self.edges.transform(store)

    def unknown_edges(self, store: PackedGraphs) -> int:
        """How many edges have a label that no training graph has, and that the models would use."""
        codes = self.encode_edges(store)
        return 0 if codes is None else codes.unknown

    def scores(self, store: PackedGraphs, features: NodeFeatures, cores: int = 1) -> Tensor:
        """Of each model for each graph and class [M, G, classes]; on a CPU by so many ``cores``."""
        return self._run(store, features, cores, lambda model, batch: model(*batch))

    def embeddings(self, store: PackedGraphs, features: NodeFeatures, cores: int = 1) -> Tensor:
        """What the models pool each graph into, all layers or blocks side by side [M, G, d], likewise."""

        def embed(model: Classifier, batch: Batch) -> Tensor:
            return torch.cat([pooled.flatten(1) for pooled, _ in model.embed(*batch)], dim=1)

        return self._run(store, features, cores, embed)

    @cached_property
    def _ready(self) -> Classifier:
        """The models in evaluation. On a GPU kernels fold norms as they go."""
        return prepare_for_inference(self.model) if self.device.type == "cpu" else self.model.eval()

    def _run(
        self, store: PackedGraphs, features: NodeFeatures, cores: int, work: Callable[[Classifier, Batch], Tensor]
    ) -> Tensor:
        """Some graphs at a time, so many that their nodes fill what is done at once: [M g, w] -> [M, G, w]."""
        edges = self.encode_edges(store)
        models = self.model.models
        model = self._ready
        kind = self.device.type

        @torch.no_grad()
        def part(ends: tuple[int, int]) -> Tensor:
            tables = self._tables(store, features, edges, *ends)
            return work(model, tables.copies(models, self.substitutes)).view(models, ends[1] - ends[0], -1)

        nodes = TOGETHER.get(kind, TOGETHER["cpu"]) // models
        if kind == "cpu":  # something for every core to do
            nodes = max(1, min(nodes, -(-store.num_nodes // cores)))
        pieces = cut(store.sizes.numpy(), nodes)
        return torch.cat(list(_side_by_side(part, pieces, cores) if kind == "cpu" else map(part, pieces)), dim=1)

    def _tables(
        self, store: PackedGraphs, features: NodeFeatures, edges: EdgeCodes | None, first: int, last: int
    ) -> GraphTables:
        """Of graphs ``first`` to ``last``: everything from here on is done where the models are."""
        nodes, lines = (slice(*ptr[[first, last]].tolist()) for ptr in (store.node_ptr, store.edge_ptr))
        graphs = store.stretch(first, last)
        device = self.device
        codes = None if edges is None else edges._replace(codes=edges.codes[lines].to(device))
        seen = features.stretch(nodes.start, nodes.stop).to(device)
        tables = GraphTables.for_prediction(graphs.to(device), seen, self.classes, codes)
        clusters = clusters_for(self.model.config)
        if clusters is None:
            return tables
        # Not from the cache: what is predicted once would fill it.
        return replace(tables, clusters=ClusterTables.of(spectral_clusters(graphs, clusters)).to(device))


def _side_by_side(
    work: Callable[[tuple[int, int]], Tensor], pieces: Iterator[tuple[int, int]], cores: int
) -> Iterator[Tensor]:
    """On a CPU: as many pieces at a time as there are cores, each in one. Torch's operators are too small to share."""
    with threads(1), one_threaded_pool(cores) as pool:
        yield from pool.map(work, pieces) if cores > 1 else map(work, pieces)


def cut(sizes: np.ndarray, nodes: int) -> Iterator[tuple[int, int]]:
    """Stretches of graphs of about so many nodes each: (first, one past the last)."""
    piece = np.cumsum(sizes) // nodes
    ends = np.flatnonzero(np.diff(piece, append=-1)) + 1
    yield from zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)


def training_tables(
    store: PackedGraphs, features: NodeFeatures, edges: EdgeCodes | None, config: ModelConfig
) -> GraphTables:
    """Return graphs with labels as models of this shape are trained on them, or asked for gradients."""
    tables = GraphTables.build(store, features, edges)
    clusters = clusters_for(config)
    if clusters is None:
        return tables
    plain = replace(store, labels=None, classes=())  # the cache knows graphs by all that they carry
    return replace(tables, clusters=ClusterTables.build(plain, clusters))


def check_finite(values: Tensor, store: PackedGraphs, called: str) -> Tensor:
    """Return the ``values`` [M, G, w] of some graphs; a ``DataError`` names the first that has some not finite."""
    graphs = overflows(values)
    if graphs:
        raise DataError(f"graph {graphs[0]}: {overflow_reason(called)} Found {largest_number(store[graphs[0]])}.")
    return values


def overflows(values: Tensor) -> list[int]:
    """Return the graphs for which some model's ``values`` [M, G, w] are not finite."""
    graphs: list[int] = (~values.isfinite()).any(2).any(0).nonzero().flatten().tolist()
    return graphs


def overflow_reason(values: str) -> str:
    """Say what is wrong with such a graph; ``values``: scores, embeddings."""
    return f"its numbers are too large for the model, whose {values} of it are not finite: scale or remove it."


def largest_number(graph: PackedGraphs) -> str:
    """Say how large the numbers of a graph are."""
    if graph.node_attributes is None or not graph.node_attributes.numel():
        return f"{graph.num_nodes:,} nodes without attributes"
    return f"attributes of up to {float(graph.node_attributes.abs().max()):g}"
