"""How long training takes on this machine, from a few steps of small banks. An estimate, no more."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from sopool.data.store import PackedGraphs
from sopool.experiments.executors.banks import MOST
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.experiments.threads import threads
from sopool.training.bank import Bank
from sopool.training.config import RunConfig, Setting
from sopool.training.splits import Splitter

NODES = {"cpu": 20_000, "cuda": 2_000_000}
"""In a step that is timed: as many models as make that, at least 2, and at most as many as a bank has."""
STEPS, REPEATS = 2, 3
PATIENCE = 1.0
"""Seconds after which nothing is timed again."""
GRAPHS = 64
"""Scored by each model."""


class Calibration:
    """Seconds per model-epoch on one data set.

    Each model is timed at one ``setting``, and the first one at all settings that are asked for: the cost of a setting
    is taken to be the same factor for all models.
    """

    def __init__(self, store: PackedGraphs, setting: Setting, device: str) -> None:
        self.store, self.setting, self.device = store, setting, device
        assert store.labels is not None
        self._splitter = Splitter(store.labels.cpu().numpy())
        self._tables = lru_cache(lambda facts: tables_for(store, facts, device))
        self._times: dict[str, tuple[float, float]] = {}
        self._first: RunConfig | None = None

    def seconds(self, config: RunConfig) -> float:
        """Of one epoch of one such model, training and scores."""
        self._first = self._first or config
        usual = self._seconds(config.with_setting(self.setting))
        if config.setting == self.setting:
            return usual
        return (
            usual
            * self._seconds(self._first.with_setting(config.setting))
            / self._seconds(self._first.with_setting(self.setting))
        )

    def _seconds(self, config: RunConfig) -> float:
        # Fold, seed and what is looked at change next to nothing in what an epoch costs.
        alike = replace(config, fold=0, seed=0, repeat=0, looks="test", encoder="", steps=STEPS)
        if alike.key not in self._times:
            with threads(1 if self.device == "cpu" else torch.get_num_threads()):
                self._times[alike.key] = self._time(alike)
        step, score = self._times[alike.key]
        return config.steps * step + len(self.store) * score

    def _time(self, config: RunConfig) -> tuple[float, float]:
        """Seconds of a step, and of one graph's scores, per model."""
        kind = self.device.split(":")[0]
        nodes = config.batch_size * self.store.num_nodes / len(self.store)
        models = min(MOST[kind], max(2, int(NODES[kind] / nodes)))
        configs = [replace(config, seed=seed) for seed in range(models)]
        split = self._splitter(config)
        bank = Bank(self._tables(TableFacts.of(config)), configs, [split] * models)
        some = np.random.default_rng(0).permutation(len(self.store))[:GRAPHS]
        step = _shortest(bank.run_epoch) / (models * STEPS)
        return step, _shortest(lambda: bank.scores([some] * models)) / (models * len(some))


def _shortest(work: Callable[[], object]) -> float:
    """The first time, in which something is compiled or captured, counts only where it is long anyway."""
    times: list[float] = []
    while len(times) <= REPEATS and sum(times) < PATIENCE:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
