"""Determine the training, validation and test graphs of a run."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sopool.data.division import Division
from sopool.data.graphs import PackedGraphs
from sopool.data.pack import Label
from sopool.errors import DataError
from sopool.objectives import Objective, truth_of
from sopool.training.runs.config import RunConfig

Folds = list[tuple[np.ndarray, np.ndarray]]


class Split(NamedTuple):
    """The numbers of the graphs of each part; ``validation`` is empty if the test fold is scored at every epoch."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


class Splitter:
    """Make the splits of one data set: stratified by class, random where there are no classes, or by its division.

    Args:
        strata: The class of each graph ``[G]``; None if there are no classes.
        names: The names of the classes, for messages. Default: None.
        graphs: The number of graphs, needed if there are no classes. Default: 0.
        division: What the graphs are divided by. Default: None, at random.
    """

    def __init__(
        self,
        strata: np.ndarray | None,
        names: Sequence[Label] | None = None,
        graphs: int = 0,
        division: Division | None = None,
    ) -> None:
        self.strata = strata
        self.names = names
        self.graphs = graphs if strata is None else len(strata)
        self.division = division or Division()
        self._folds = lru_cache(self.folds)
        self._key = self.division.key

    @classmethod
    def of(cls, objective: Objective, truth: np.ndarray, division: Division | None = None) -> "Splitter":
        """Return the splitter for graphs with these true values ``[G, ...]``."""
        strata = objective.strata(truth)
        return cls(strata, None if strata is None else objective.names, len(truth), division)

    @classmethod
    def of_store(cls, store: PackedGraphs, config: RunConfig) -> "Splitter":
        """Return the splitter for the data set of a run."""
        return cls.of(config.objective(store), truth_of(store, config.task).cpu().numpy(), Division.of(store))

    def folds(self, folds: int, seed: int = 0) -> Folds:
        """Return the training and test graphs of each fold."""
        return self.division.folds(self.graphs, self.strata, folds, seed, self.names)

    def check(self, folds: int, held_out: bool, seed: int = 0) -> Folds:
        """Return the folds; raise ``DataError`` if some run could not be given its graphs.

        ``held_out`` says whether some runs hold out part of their training graphs, which very small classes do not
        allow.
        """
        found = self.folds(folds, seed)
        for fold, (train, _) in enumerate(found if held_out else ()):
            self.division.check_holdout(train, self.strata, RunConfig.holdout, self.names, fold)
        return found

    def __call__(self, config: RunConfig) -> Split:
        """Return the split of a run. Each final run of ``fair`` holds out different graphs, if it may choose them."""
        if config.split != self._key:
            raise DataError(
                f"the run {config.key} is for the split {config.split!r}, but the graphs carry the split "
                f"{self._key!r}: give the graphs that the run was planned for."
            )
        train, test = self._folds(config.folds, config.split_seed)[config.fold]
        if config.looks == "test":
            return Split(train, train[:0], test)
        seed = run_seed(config)
        found = self.division.holdout(train, self.strata, config.holdout, seed, self.names, config.fold)
        return Split(*found, test)


def run_seed(config: RunConfig) -> int:
    """Return a 32-bit seed made from a run's seed, fold and repeat; runs of other models or settings share it."""
    words = np.random.SeedSequence([config.seed, config.fold, config.repeat]).generate_state(1)
    return int(words[0])
