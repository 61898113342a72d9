"""Trained models that predict together."""

import copy
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sopool._runtime.threads import one_threaded_pool, threads
from sopool.data.features.edge_features import EdgeEncoder, EdgeFeatures, only_encoded_edges
from sopool.data.features.encoder import Encoder, Fields
from sopool.data.features.encoders import only_encoded_nodes
from sopool.data.features.graph_attributes import GraphAttributeEncoder
from sopool.data.features.node_features import NodeFeatures
from sopool.data.features.numbers import Numbers
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError
from sopool.models.base import Classifier
from sopool.models.config import ModelConfig
from sopool.models.inference import prepare_for_inference
from sopool.models.make import extras_for
from sopool.objectives import Combined, Objective
from sopool.ops.segment.size_classes import graphs_apart
from sopool.training.bank.batching import Batch, GraphTables
from sopool.training.bank.inputs import ModelInputs

TOGETHER = {"cpu": 2**15, "cuda": 2**20}
"""The number of nodes, over all models, that are processed at a time; on a CPU they fit the cache."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Stacked models with the encoders that prepare graphs for them."""

    model: Classifier
    """The stacked models; each parameter is ``[M, ...]``."""
    encoder: Encoder
    inputs: ModelInputs
    """How each model takes the features, as learned from its training graphs: values that it has not seen map to the
    column for unknown values, and numbers are standardized by the moments of its training graphs."""
    objectives: tuple[Objective, ...]
    """What each model predicts, with what it took from its own training graphs."""
    edges: EdgeEncoder | None = None
    """The encoder of what edges have; None if the models use nothing of it."""
    graphs: GraphAttributeEncoder | None = None
    """The encoder of the attributes of graphs; None if the models do not use them."""
    temperature: float | None = None
    """The temperature of the joint probabilities; None if they are not calibrated."""

    @property
    def fields(self) -> Fields:
        """The fields of :class:`~sopool.data.Graph` that graphs must have, with their columns, see :data:`Fields`."""
        others = [encoder.fields for encoder in (self.edges, self.graphs) if encoder is not None]
        return dict(ChainMap(*others, self.encoder.fields))

    @property
    def device(self) -> torch.device:
        """The device of the models."""
        return next(self.model.parameters()).device

    def to(self, device: torch.device | str) -> "Ensemble":
        """Return a copy of the ensemble on another device."""
        return replace(self, model=copy.deepcopy(self.model).to(device), inputs=self.inputs.to(device))

    def encode(self, store: PackedGraphs) -> NodeFeatures:
        """Return the node features of all graphs; raise ``DataError`` if they lack a field that the model needs."""
        needed = list(self.encoder.fields)
        if self.model.config.system and self.edges is not None and store.num_edges:
            needed += self.edges.fields
        lacking = next((name for name in needed if getattr(store, name) is None), None)
        if lacking:
            reason = f"the graphs have no {lacking}, which the model needs: its training graphs had them."
            raise DataError(f"{store.name}: {reason}")
        return self.encoder.transform(store)

    def encode_edges(self, store: PackedGraphs) -> EdgeFeatures | None:
        """Return the features of all edges; None if the models do not use them."""
        return None if self.edges is None else self.edges.transform(store)

    def graphs_and_edges(self, store: PackedGraphs) -> tuple[PackedGraphs, EdgeFeatures | None]:
        """Return graphs as the networks take them, and the features of their edges.

        The network of a system takes labels and attributes of edges from its extras only, which get nothing that the
        encoders do not have.
        """
        if not self.model.config.system:
            return store, self.encode_edges(store)
        return for_extras(store, self.encoder, self.edges), None

    def encode_graphs(self, store: PackedGraphs) -> Numbers | None:
        """Return the attributes of all graphs; None if the models do not use them."""
        return None if self.graphs is None else self.graphs.transform(store)

    def unknown_edges(self, store: PackedGraphs) -> int:
        """Count the edges with a label or category that no training graph has, if the models use them."""
        edges = self.encode_edges(store)
        return 0 if edges is None else edges.unknown

    def combine(self, scores: Tensor) -> Combined:
        """Return the joint prediction of the models from their scores ``[M, G, W]``, with calibrated probabilities."""
        every = zip(self.objectives, scores.cpu().numpy(), strict=True)
        first = self.objectives[0]
        combined = first.combine(np.stack([objective.outputs(each) for objective, each in every]))
        return combined if self.temperature is None else first.calibrated(combined, self.temperature)

    def scores(self, store: PackedGraphs, features: NodeFeatures, cores: int = 1) -> Tensor:
        """Return the W scores of each model for each graph ``[M, G, W]``, computed on ``cores`` CPU cores."""
        return self._run(store, features, cores, lambda model, batch: model(*batch))

    def embeddings(self, store: PackedGraphs, features: NodeFeatures, cores: int = 1) -> Tensor:
        """Return the pooled vectors of each model for each graph ``[M, G, F]``, computed on ``cores`` CPU cores."""

        def embed(model: Classifier, batch: Batch) -> Tensor:
            return torch.cat([pooled.flatten(1) for pooled, _ in model.embed(*batch)], dim=1)

        return self._run(store, features, cores, embed)

    @cached_property
    def _ready(self) -> Classifier:
        """The models in evaluation mode; on a CPU, and of systems, a copy that is prepared for inference."""
        prepared = self.device.type == "cpu" or self.model.config.system
        return prepare_for_inference(self.model) if prepared else self.model.eval()

    def _run(
        self, store: PackedGraphs, features: NodeFeatures, cores: int, work: Callable[[Classifier, Batch], Tensor]
    ) -> Tensor:
        """Apply ``work`` to chunks of graphs of a limited number of nodes, and join the results to ``[M, G, F]``."""
        store, edges = self.graphs_and_edges(store)
        numbers = self.encode_graphs(store)
        models = self.model.models
        model = self._ready
        kind = self.device.type

        @torch.no_grad()
        @graphs_apart()
        def part(ends: tuple[int, int]) -> Tensor:
            tables = self._tables(store, features, edges, numbers, *ends)
            return work(model, tables.copies(models, self.inputs)).view(models, ends[1] - ends[0], -1)

        nodes = TOGETHER.get(kind, TOGETHER["cpu"]) // models
        if kind == "cpu":  # enough pieces for every core
            nodes = max(1, min(nodes, -(-store.num_nodes // cores)))
        pieces = cut(store.sizes.numpy(), nodes)
        return torch.cat(list(_side_by_side(part, pieces, cores) if kind == "cpu" else map(part, pieces)), dim=1)

    def _tables(
        self,
        store: PackedGraphs,
        features: NodeFeatures,
        edges: EdgeFeatures | None,
        numbers: Numbers | None,
        first: int,
        last: int,
    ) -> GraphTables:
        """Return the tables of graphs ``first`` to ``last``, on the device of the models."""
        nodes, lines = (slice(*ptr[[first, last]].tolist()) for ptr in (store.node_ptr, store.edge_ptr))
        graphs = store.stretch(first, last)
        device = self.device
        tables = GraphTables.for_prediction(
            graphs.to(device),
            features.stretch(nodes.start, nodes.stop).to(device),
            None if edges is None else edges.stretch(lines.start, lines.stop).to(device),
            None if numbers is None else numbers.stretch(first, last).to(device),
        )
        return tables.with_extras(graphs, extras_for(self.model.config), cached=False)


def _side_by_side(
    work: Callable[[tuple[int, int]], Tensor], pieces: Iterator[tuple[int, int]], cores: int
) -> Iterator[Tensor]:
    """Process as many pieces in parallel as there are CPU cores, with one thread for each."""
    with threads(1), one_threaded_pool(cores) as pool:
        yield from pool.map(work, pieces) if cores > 1 else map(work, pieces)


def cut(sizes: np.ndarray, nodes: int) -> Iterator[tuple[int, int]]:
    """Divide the graphs into ranges of about ``nodes`` nodes; yield (first, one past the last)."""
    piece = np.cumsum(sizes) // nodes
    ends = np.flatnonzero(np.diff(piece, append=-1)) + 1
    yield from zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)


def for_extras(store: PackedGraphs, nodes: Encoder, edges: EdgeEncoder | None) -> PackedGraphs:
    """Return graphs as the extras of a system's network get them, which is the same whatever file they are in."""
    return only_encoded_nodes(only_encoded_edges(store, edges), nodes)


def training_tables(
    store: PackedGraphs,
    features: NodeFeatures,
    edges: EdgeFeatures | None,
    numbers: Numbers | None,
    config: ModelConfig,
    objective: Objective | None = None,
    cached: bool = True,
) -> GraphTables:
    """Return graphs with labels or targets in the layout that models of this configuration train on.

    Extras that take long, such as clusters, are kept in the cache if ``cached``. Others are not: every fold of an
    estimate would add its own file.
    """
    tables = GraphTables.build(store, features, edges, objective, numbers)
    # Labels and targets would change the key in the cache.
    plain = replace(store, labels=None, classes=(), targets=None, target_names=())
    needed = extras_for(config)
    return tables.with_extras(plain, needed, cached and any(extra.slow for extra in needed.values()))


def check_finite(values: Tensor, store: PackedGraphs, called: str) -> Tensor:
    """Return ``values`` ``[M, G, F]``; raise ``DataError`` if they are not finite, naming the first such graph."""
    graphs = overflows(values)
    if graphs:
        raise DataError(f"graph {graphs[0]}: {overflow_reason(called)} Found {largest_number(store[graphs[0]])}.")
    return values


def overflows(values: Tensor) -> list[int]:
    """Return the graphs for which a model's ``values`` ``[M, G, F]`` are not all finite."""
    graphs: list[int] = (~values.isfinite()).any(2).any(0).nonzero().flatten().tolist()
    return graphs


def overflow_reason(values: str) -> str:
    """Describe why such a graph cannot be used; ``values`` is ``"scores"`` or ``"embeddings"``."""
    return f"the model's {values} for it are not finite. Scale its attributes, or remove the graph."


def largest_number(graph: PackedGraphs) -> str:
    """Describe how large the attributes of a graph are."""
    if graph.node_attributes is None or not graph.node_attributes.numel():
        return f"{graph.num_nodes:,} nodes without attributes"
    return f"attributes of up to {float(graph.node_attributes.abs().max()):g}"
