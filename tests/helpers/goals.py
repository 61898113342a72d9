"""Small data sets with something else to predict than one class, and their evaluations."""

from dataclasses import replace

import numpy as np
import torch

from sopool.data import make_measurements
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import run_control
from sopool.training.runs.store import RunStore


def labels(graphs=60, missing=0.2):
    """Two labels: whether a graph has many edges, and whether its attributes are spread; some are missing."""
    store = make_measurements(graphs)
    values = (store.targets > store.targets.median(0).values).double()
    values[torch.from_numpy(np.random.default_rng(0).random(values.shape) < missing)] = torch.nan
    return replace(store, targets=values, target_names=("many", "wide"), name="labels")


def numbers(graphs=60, missing=0.2):
    """Two numbers of different sizes, of which some are missing."""
    store = make_measurements(graphs)
    values = store.targets.clone()
    values[torch.from_numpy(np.random.default_rng(0).random(values.shape) < missing)] = torch.nan
    return replace(store, targets=values, name="numbers")


def number(graphs=60):
    """One number."""
    store = make_measurements(graphs)
    return replace(store, targets=store.targets[:, :1], target_names=store.target_names[:1], name="number")


STORES = {"multi-label": labels, "regression": numbers, "one": number}
QUICK = {"epochs": 2, "steps": 2, "folds": 3}


def evaluated(store, folder, pools=("sopool-bimap", "sum"), protocols=("fair", "per-fold-max"), **changes):
    """Evaluate some poolings, quickly."""
    return Evaluator(store, Request(pools, protocols, **QUICK | changes), RunStore(folder))


def fill_with_goals(folder):
    """Save evaluations of every kind of objective, and a control of each."""
    for make in STORES.values():
        evaluated(make(), folder).evaluate()
        run_control("size", make(), 3, runs_folder=folder)
    return RunStore(folder)
