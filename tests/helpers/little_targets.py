"""Little graphs with numbers and with several labels to predict, some of them missing."""

from dataclasses import replace

import numpy as np
import torch

from sopool import GraphRegressor
from tests.helpers.little_classifier import STORE, TINY

NAN = float("nan")
_random = np.random.default_rng(3)
NUMBERS = np.stack([STORE.sizes.numpy() + 0.25, 1000 + 5 * _random.normal(size=40)], axis=1)
"""Two numbers for each graph; the second is large compared with its spread."""
SOME = np.where(_random.random(NUMBERS.shape) < 0.3, NAN, NUMBERS)
"""The same, with about a third of them missing."""
FLAGS = np.stack([STORE.sizes.numpy() > 5, np.arange(40) % 3 == 0], axis=1).astype(float)
"""Two labels for each graph."""
SOME_FLAGS = np.where(_random.random(FLAGS.shape) < 0.3, NAN, FLAGS)
"""The same, with about a third of them missing."""


def with_targets(values, names=("size", "noise"), store=STORE):
    """Return the graphs with these targets instead of classes."""
    targets = torch.as_tensor(np.asarray(values, np.float64))
    return replace(store, labels=None, classes=(), targets=targets, target_names=tuple(names))


def tiny_regressor(**changes):
    return GraphRegressor(**(TINY | {"device": "cpu"} | changes))
