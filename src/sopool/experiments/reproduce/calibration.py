"""Estimate the training time on this machine from a few steps of small banks."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from sopool._runtime.threads import threads
from sopool.data.graphs import PackedGraphs
from sopool.experiments.executors.banks import MOST
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.models.config import Setting
from sopool.training.bank.bank import Bank
from sopool.training.run_splits import Split
from sopool.training.runs.config import RunConfig

SAMPLE = 256
"""The largest number of graphs to time: clusters and lists of the whole data set would take longer than the steps."""
NODES = {"cpu": 20_000, "cuda": 2_000_000}
"""The number of nodes in a timed step; as many models are used as make this, from 1 to the size of a bank."""
STEPS = {"cpu": 1, "cuda": 2}
"""The number of steps in a timed epoch."""
CLOCK = {"cpu": time.process_time, "cuda": time.perf_counter}
"""On a CPU process time is measured, so that other processes on the same cores do not count."""
REPEATS = 3
"""The largest number of measurements."""
PATIENCE = 0.5
"""Seconds after which no third measurement is made."""
SCORED = 64
"""The number of graphs of the sample that each model scores."""


class Calibration:
    """Estimate the seconds per epoch of a model on one data set.

    Each model is timed at one ``setting``, and the first one at all requested settings. A setting is assumed to change
    the cost of all models by the same factor, and a pooling to cost the same whether its parameters are learned or not.
    Systems have settings of their own, and are timed at each.
    """

    def __init__(self, store: PackedGraphs, setting: Setting, device: str) -> None:
        self.store = store
        self.setting = setting
        self.device = device
        self._tables = lru_cache(lambda facts, count: tables_for(store, facts, device, sample(store, count).tolist()))
        self._times: dict[str, tuple[float, float]] = {}
        self._first: RunConfig | None = None

    def seconds(self, config: RunConfig) -> float:
        """Return the estimated seconds of one epoch of such a model, training and scoring."""
        if config.model.system:
            return self._seconds(config)
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
        # Fold, seed, the scored graphs and SortPool's k, which depends on the fold, hardly change the time.
        kind = f"{replace(config.model, pool_options={}, frozen=False)} {config.batch_size}"
        if kind not in self._times:
            with threads(1 if self.device == "cpu" else torch.get_num_threads()):
                self._times[kind] = self._time(config)
        step, score = self._times[kind]
        return config.steps * step + len(self.store) * score

    def _time(self, config: RunConfig) -> tuple[float, float]:
        """Return the seconds per model of a step and of scoring one graph."""
        kind = self.device.split(":")[0]
        nodes = config.batch_size * self.store.num_nodes / len(self.store)
        models = min(MOST[kind], max(1, int(NODES[kind] / nodes)))
        alike = replace(config, looks="test", encoder="", steps=STEPS[kind])
        tables = self._tables(TableFacts.of(alike), max(SAMPLE, config.batch_size))
        every = np.arange(len(tables))
        none = np.arange(0)
        bank = Bank(tables, [replace(alike, seed=seed) for seed in range(models)], [Split(every, none, none)] * models)
        scored = every[:: -(-len(every) // SCORED)]
        step = _shortest(bank.run_epoch, CLOCK[kind]) / (models * STEPS[kind])
        return step, _shortest(lambda: bank.scores([scored] * models), CLOCK[kind]) / (models * len(scored))


def sample(store: PackedGraphs, count: int) -> np.ndarray:
    """Return ``count`` graphs, or all if there are fewer, evenly spaced in the order of size."""
    by_size = np.argsort(store.sizes.cpu().numpy(), kind="stable")
    count = min(count, len(store))
    return by_size[(2 * np.arange(count) + 1) * len(store) // (2 * count)]


def _shortest(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the shortest time of at least two calls, since the first may compile or capture something."""
    times: list[float] = []
    while len(times) < 2 or (len(times) < REPEATS and sum(times) < PATIENCE):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)
