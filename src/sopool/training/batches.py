"""Which graphs a run draws, and the keys of its dropout: a function of its seed and the epoch, nothing else."""

from typing import NamedTuple

import numpy as np


class Draws(NamedTuple):
    """One epoch of a run."""

    graphs: np.ndarray
    """Numbers of graphs for each step, drawn without replacement [steps, batch]."""
    keys: np.ndarray
    """A key for the dropout of each step [steps], int32."""


def draw(seed: int, epoch: int, train: np.ndarray, steps: int, batch: int) -> Draws:
    """The batches of one epoch."""
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, epoch])))
    graphs = np.stack([train[random.choice(len(train), batch, replace=False)] for _ in range(steps)])
    return Draws(graphs, random.integers(-(2**31), 2**31, steps, dtype=np.int32))
