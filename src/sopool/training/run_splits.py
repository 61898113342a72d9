"""Determine the training, validation and test graphs of a run."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sopool.data.graphs import PackedGraphs
from sopool.data.pack import Label
from sopool.data.splits import check_holdout, holdout, random_folds, stratified_folds
from sopool.objectives import Objective, truth_of
from sopool.training.runs.config import RunConfig

Folds = list[tuple[np.ndarray, np.ndarray]]


class Split(NamedTuple):
    """The numbers of the graphs of each part; ``validation`` is empty if the test fold is scored at every epoch."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


class Splitter:
    """Make the splits of one data set: stratified by class, or random where there are no classes.

    Args:
        strata: The class of each graph ``[G]``; None if there are no classes.
        names: The names of the classes, for messages. Default: None.
        graphs: The number of graphs, needed if there are no classes. Default: 0.
    """

    def __init__(self, strata: np.ndarray | None, names: Sequence[Label] | None = None, graphs: int = 0) -> None:
        self.strata = strata
        self.names = names
        self.graphs = graphs if strata is None else len(strata)
        self._folds = lru_cache(self.folds)

    @classmethod
    def of(cls, objective: Objective, truth: np.ndarray) -> "Splitter":
        """Return the splitter for graphs with these true values ``[G, ...]``."""
        strata = objective.strata(truth)
        return cls(strata, None if strata is None else objective.names, len(truth))

    @classmethod
    def of_store(cls, store: PackedGraphs, config: RunConfig) -> "Splitter":
        """Return the splitter for the data set of a run."""
        return cls.of(config.objective(store), truth_of(store, config.task).cpu().numpy())

    def folds(self, folds: int, seed: int = 0) -> Folds:
        """Return the training and test graphs of each fold."""
        if self.strata is None:
            return random_folds(self.graphs, folds, seed)
        return stratified_folds(self.strata, folds, seed, self.names)

    def check(self, folds: int, held_out: bool) -> Folds:
        """Return the folds; raise ``DataError`` if some run could not be given its graphs.

        ``held_out`` says whether some runs hold out part of their training graphs, which very small classes do not
        allow.
        """
        found = self.folds(folds)
        for train, _ in found if held_out else ():
            check_holdout(train, self.strata, RunConfig.holdout, self.names)
        return found

    def __call__(self, config: RunConfig) -> Split:
        """Return the split of a run. Each final run of ``fair`` holds out different graphs."""
        train, test = self._folds(config.folds, config.split_seed)[config.fold]
        if config.looks == "test":
            return Split(train, train[:0], test)
        seed = run_seed(config)
        return Split(*holdout(train, self.strata, config.holdout, seed, self.names), test)


def run_seed(config: RunConfig) -> int:
    """Return a 32-bit seed made from a run's seed, fold and repeat; runs of other models or settings share it."""
    words = np.random.SeedSequence([config.seed, config.fold, config.repeat]).generate_state(1)
    return int(words[0])
