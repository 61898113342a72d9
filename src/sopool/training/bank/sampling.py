"""Draw batches and dropout keys as a function of a run's seed and the epoch alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Draws(NamedTuple):
    """The random numbers of one epoch of several runs."""

    graphs: np.ndarray
    """The numbers of the graphs of each step, drawn without replacement ``[steps, runs, batch]``."""
    keys: np.ndarray
    """A dropout key for each step ``[steps, runs]``, int32."""


def draw_batches(seeds: Sequence[int], epoch: int, trains: Sequence[np.ndarray], steps: int, batch: int) -> Draws:
    """Draw the batches of one epoch for runs with these seeds and training graphs."""
    numbers = []
    keys = []
    for seed, train in zip(seeds, trains, strict=True):
        random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, epoch])))
        numbers.append(random.integers(0, np.arange(len(train) - batch, len(train)) + 1, (steps, batch)))
        keys.append(random.integers(-(2**31), 2**31, steps, dtype=np.int32))
    places = _make_distinct(np.stack(numbers, axis=1), np.array([len(train) for train in trains]))
    graphs = np.stack([train[places[:, run]] for run, train in enumerate(trains)], axis=1)
    return Draws(graphs, np.stack(keys, axis=1))


def _make_distinct(numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Turn random numbers into random subsets by Floyd's algorithm, for all steps of all runs at once.

    ``numbers[..., i]`` is drawn from 0 to size - batch + i; if it occurred before, the largest of these replaces it.
    """
    batch = numbers.shape[-1]
    for i in range(1, batch):
        taken = (numbers[..., :i] == numbers[..., i : i + 1]).any(-1)
        numbers[..., i] = np.where(taken, sizes - batch + i, numbers[..., i])
    return numbers
