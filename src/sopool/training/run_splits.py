"""Determine the training, validation and test graphs of a run."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sopool.data.graphs import PackedGraphs
from sopool.data.pack import Label
from sopool.data.splits import check_holdout, holdout, stratified_folds
from sopool.training.runs.config import RunConfig


class Split(NamedTuple):
    """The numbers of the graphs of each part; ``validation`` is empty if the test fold is scored at every epoch."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def evaluation_folds(store: PackedGraphs, folds: int, held_out: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test graphs of each fold; raise ``DataError`` if some run could not be given its graphs.

    ``held_out`` says whether some runs hold out part of their training graphs, which very small classes do not allow.
    """
    assert store.labels is not None
    labels = store.labels.cpu().numpy()
    found = stratified_folds(labels, folds, names=store.classes)
    for train, _ in found if held_out else ():
        check_holdout(train, labels, RunConfig.holdout, store.classes)
    return found


class Splitter:
    """Make the splits of one data set. ``names`` are the names of the classes, for messages."""

    def __init__(self, labels: np.ndarray, names: Sequence[Label] | None = None) -> None:
        self.labels = labels
        self.names = names
        self._folds = lru_cache(lambda folds, seed: stratified_folds(labels, folds, seed, names))

    def __call__(self, config: RunConfig) -> Split:
        """Return the split of a run. Each final run of ``fair`` holds out different graphs."""
        train, test = self._folds(config.folds, config.split_seed)[config.fold]
        if config.looks == "test":
            return Split(train, train[:0], test)
        seed = run_seed(config)
        return Split(*holdout(train, self.labels, config.holdout, seed, self.names), test)


def run_seed(config: RunConfig) -> int:
    """Return a 32-bit seed made from a run's seed, fold and repeat; runs of other models or settings share it."""
    words = np.random.SeedSequence([config.seed, config.fold, config.repeat]).generate_state(1)
    return int(words[0])
