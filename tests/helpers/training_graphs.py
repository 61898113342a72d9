"""A small data set that exercises the awkward cases, and runs on it."""

import numpy as np

from sopool.data.features.edge_labels import EdgeLabelEncoder
from sopool.data.features.encoders import default_encoder
from sopool.data.pack import Graph, pack
from sopool.models import ModelConfig
from sopool.nn.gnn import VARIANTS
from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import GraphTables
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig

EDGE_LABELS = 3


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


def tables_of(store, unknown=False):
    """With edge labels where there are some."""
    edges = None if store.edge_labels is None else EdgeLabelEncoder().fit(store).transform(store)
    return GraphTables.build(store, default_encoder(store, unknown).fit(store).transform(store), edges)


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
    splitter = Splitter(tables.truth.cpu().numpy())
    return Bank(tables, configs, [splitter(config) for config in configs])
