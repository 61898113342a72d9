"""Training tasks: data set, number of models, batch size and layer width, and the operations they require."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from benchmarks.rivals import BATCH, HIDDEN, LAYERS, RANK, STEPS
from sopool.data import NodeFeatures, PackedGraphs
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from sopool.experiments.executors.local import encoder_for
from sopool.models.presets import model_config
from sopool.training.run_splits import Split, Splitter
from sopool.training.runs.config import RunConfig

FOLDS = 10
MODELS = {"cpu": (1, 10), "cuda": (1, 10, 60, 240)}
BESIDE = {"cpu": 4, "cuda": 60}
"""The number of models in the bank when another quantity is varied."""
VALUES: Mapping[str, Sequence[int]] = {"graphs": (8, 32, 128), "width": (16, 32, 64, 128), "nodes": (10, 30, 100, 300)}
SCALES = ("models", *VALUES)


class Point(NamedTuple):
    """One configuration to train on a data set."""

    models: int
    graphs: int = BATCH
    """The batch size."""
    width: int = HIDDEN
    steps: int = STEPS


@dataclass(frozen=True)
class Job:
    """A data set to train on."""

    store: PackedGraphs
    features: NodeFeatures
    splitter: Splitter
    device: str

    @property
    def nodes(self) -> float:
        """The mean number of nodes of a graph."""
        return self.store.num_nodes / len(self.store)

    def configs(self, point: Point) -> list[RunConfig]:
        """Return one run for each fold, then again with other seeds."""
        model = replace(model_config(self.store, "gin-0", "sopool-bimap", "paper"), hidden=point.width)
        run = RunConfig(self.store.name, "", "", model, fold=0, folds=FOLDS, steps=point.steps, batch_size=point.graphs)
        return [replace(run, fold=m % FOLDS, seed=m // FOLDS) for m in range(point.models)]

    def splits(self, point: Point) -> list[Split]:
        """Return the training graphs of each run."""
        return [self.splitter(config) for config in self.configs(point)]

    def fit(self, point: Point) -> Point:
        """Return a point whose batch size does not exceed the number of training graphs."""
        return point._replace(graphs=min(point.graphs, *(len(split.train) for split in self.splits(point))))

    def operations(self, point: Point) -> float:
        """Return the number of operations of the matrix products in a model-epoch.

        The backward pass of a product with weights takes two more products of the same size (one for input features,
        which need no gradient), and that of a Gram matrix one more.
        """
        first = self.features.width * (point.width + RANK)
        weights = first + (2 * LAYERS - 1) * point.width**2 + LAYERS * point.width * RANK
        node = 2 * (weights + RANK**2)
        back = 2 * (2 * weights - first + RANK**2)
        head = 2 * RANK**2 * len(self.store.classes)
        trained = point.steps * point.graphs
        scored = len(self.store)
        return trained * (self.nodes * (node + back) + 3 * head) + scored * (self.nodes * node + head)


def prepare(store: PackedGraphs, device: str) -> Job:
    """Compute the features and folds of a data set."""
    if store.labels is None:
        raise DataError(f"{store.name} has no graph labels, which training requires.")
    features = encoder_for(store, "test").transform(store)
    return Job(store, features, Splitter(store.labels.cpu().numpy()), device)


def plan_points(
    stores: Sequence[PackedGraphs], scale: str, models: Sequence[int], beside: int, device: str, steps: int = STEPS
) -> Iterator[tuple[Job, Point]]:
    """Yield all points of one scale: each number of ``models``, or ``beside`` models if another quantity is varied."""
    if scale == "nodes":
        for nodes in VALUES[scale]:
            yield prepare(random_graphs(nodes), device), Point(beside, steps=steps)
        return
    for store in stores:
        job = prepare(store, device)
        for value in models if scale == "models" else VALUES[scale]:
            point = Point(beside, steps=steps)._replace(**{scale: value})
            yield job, job.fit(point)


def random_graphs(nodes: int, graphs: int = 188, labels: int = 7, seed: int = 0) -> PackedGraphs:
    """Return as many graphs and node labels as MUTAG has, all of one size: rings with as many chords as nodes."""
    random = np.random.default_rng(seed)
    ring = np.stack([np.arange(nodes), np.roll(np.arange(nodes), 1)], axis=1)
    made = []
    for number in range(graphs):
        edges = np.concatenate([ring, random.integers(0, nodes, (nodes, 2))])
        edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
        both = np.concatenate([edges, edges[:, ::-1]])
        made.append(Graph(nodes, both, number % 2, random.integers(0, labels, nodes).tolist()))
    return pack(made, name="random graphs")
