"""A classifier so small that it is trained in no time, and what to train it on."""

from dataclasses import replace

import numpy as np

from sopool import GraphClassifier
from tests.helpers.training_graphs import little_store

STORE = little_store(graphs=40)
LABELS = np.array(["even", "odd"])[np.arange(40) % 2]
NAMED = replace(STORE, classes=("even", "odd"))
"""The same graphs with these labels."""
TINY = {"hidden": 4, "layers": 2, "epochs": 3, "steps": 3, "batch_size": 8, "n_models": 2, "random_state": 0}


def tiny(**changes):
    return GraphClassifier(**(TINY | {"device": "cpu"} | changes))
