"""A small data set that exercises the awkward cases, and runs on it."""

from dataclasses import replace

import numpy as np
import torch

from sopool.data.features.edge_features import EdgeEncoder
from sopool.data.features.encoders import default_encoder
from sopool.data.features.graph_attributes import GraphAttributeEncoder
from sopool.data.names import CategoryColumn
from sopool.data.pack import Graph, pack
from sopool.models import ModelConfig
from sopool.models.presets import edge_encoder_for, edges_used, model_config
from sopool.nn.gnn import VARIANTS
from sopool.objectives import objective_for
from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import GraphTables
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig

EDGE_LABELS = 3
NAMES = ("a", "b", "c")
GOALS = {
    "classes": {},
    "weighted classes": {"class_weights": (0.5, 3.0)},
    "labels": {"task": "multi-label", "metric": "roc_auc"},
    "weighted labels": {"task": "multi-label", "metric": "roc_auc", "class_weights": (1.0, 2.0, 0.5, 1.0, 1.0, 4.0)},
    "one number": {"task": "regression", "metric": "rmse", "loss": "squared"},
    "numbers, squared": {"task": "regression", "metric": "rmse", "loss": "squared"},
    "numbers, absolute": {"task": "regression", "metric": "mae", "loss": "absolute"},
    "numbers, huber": {"task": "regression", "metric": "r2", "loss": "huber"},
}
"""What a run's configuration says of its objective, for every objective and loss."""


def little_store(graphs=24, seed=0, directed=False, classes=2):
    """Graphs of 0 to 9 nodes: empty ones, single nodes, isolated nodes, self-loops and repeated edges among them."""
    random = np.random.default_rng(seed)
    bonds = np.random.default_rng(seed + 1)
    made = []
    for number in range(graphs):
        nodes = 0 if number == 5 else 1 if number == 7 else int(random.integers(2, 10))
        edges = random.integers(0, nodes, (2 * nodes, 2)) if nodes else np.zeros((0, 2), dtype=int)
        kinds = bonds.integers(0, EDGE_LABELS, len(edges))
        if not directed:
            back = edges[:, 0] != edges[:, 1]
            edges = np.concatenate([edges, edges[back, ::-1]])
            kinds = np.concatenate([kinds, kinds[back]])
        labels = random.integers(0, 3, nodes).tolist()
        # Numbers that never agree: where two nodes do, the gradient of a maximum is a matter of convention.
        attributes = random.normal(size=(nodes, 2))
        made.append(Graph(nodes, edges, number % classes, labels, attributes, kinds.tolist()))
    return pack(made, name="little")


def rich_store(seed=0, **given):
    """The little store with everything that nodes, edges and graphs may have; edges differ in their directions."""
    store = little_store(seed=seed, **given)
    random = torch.Generator().manual_seed(seed)

    def codes(count):
        return torch.randint(0, 3, (count, 2), generator=random).to(torch.uint8)

    columns = tuple(CategoryColumn(name, ("x", "y", "z")) for name in ("charge", "ring"))
    heat = torch.randn(len(store), 2, generator=random) * 10 + 300
    heat[torch.rand(len(store), 2, generator=random) < 0.3] = torch.nan
    return replace(
        store,
        node_categories=codes(store.num_nodes),
        node_category_columns=columns,
        edge_categories=codes(store.num_edges),
        edge_category_columns=columns,
        edge_attributes=torch.randn(store.num_edges, 2, generator=random) * torch.tensor([1.0, 30.0]) + 5,
        edge_weights=torch.rand(store.num_edges, generator=random) + 0.5,
        graph_attributes=heat,
        graph_attribute_names=("heat", "pressure"),
    )


def rich_tables(store, config, unknown=False):
    """The tables of graphs for a model that may use everything."""
    edges = edge_encoder_for(edges_used(config))
    features = default_encoder(store, unknown).fit(store).transform(store)
    numbers = GraphAttributeEncoder().fit(store).transform(store) if config.graph_attributes else None
    given = None if edges is None else edges.fit(store).transform(store)
    return GraphTables.build(store, features, given, graph_numbers=numbers)


def rich_model(store, gnn="gine", pool="sum", **changes):
    """The settings of a model that uses everything of a store that its network can use."""
    config = model_config(store, gnn, pool, **changes)
    used = ("edge_labels", "edge_categories", "edge_attributes", "edge_weights", "graph_attributes")
    return {"gnn": gnn, "pool": pool, "blocks": config.blocks} | {name: getattr(config, name) for name in used}


def goal_store(goal, **given):
    """The little store with the true values of one of the goals, of which some are missing."""
    store = little_store(**given)
    if "classes" in goal:
        return store
    random = np.random.default_rng(7)
    names = NAMES[:1] if goal == "one number" else NAMES
    targets = 100 + random.normal(size=(len(store), len(names))) * [5.0, 0.1, 2.0][: len(names)]
    targets = (targets > 100).astype(float) if "labels" in goal else targets
    targets[random.random(targets.shape) < 0.3] = np.nan
    return replace(store, labels=None, classes=(), targets=torch.from_numpy(targets), target_names=names)


def tables_of(store, unknown=False, task=None, metric=None, loss=None, **_):
    """With edge labels where there are some."""
    edges = None if store.edge_labels is None else EdgeEncoder().fit(store).transform(store)
    features = default_encoder(store, unknown).fit(store).transform(store)
    return GraphTables.build(store, features, edges, objective_for(store, task, metric, loss))


def edge_label_options(gnn):
    """A model's settings for this GNN on a little store."""
    return {"gnn": gnn, "edge_labels": EDGE_LABELS if VARIANTS[gnn].labelled else 0}


def run_config(**changes):
    """A run on it, so small that a hundred steps take no time."""
    model = ModelConfig(**({"hidden": 4} | dict(changes.pop("model", {}))))
    facts = {"data": "little", "fingerprint": "0", "encoder": "", "fold": 0}
    defaults = {"folds": 3, "epochs": 4, "steps": 5, "batch_size": 6, "halve_every": 2, "precision": "float64"}
    return RunConfig(model=model, **(facts | defaults | changes))


def bank_of(tables, configs):
    splitter = Splitter.of(tables.objective, tables.truth.cpu().numpy())
    return Bank(tables, configs, [splitter(config) for config in configs])
