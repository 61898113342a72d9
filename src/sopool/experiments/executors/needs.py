"""Estimate what a bank needs of a machine: a core, and a share of its memory or of a GPU."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from sopool.training.bank.batching import GraphTables
from sopool.training.bank.memory import BankMemory, bank_memory
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig

PROCESS = {"cpu": 600 << 20, "cuda": 1 << 30}
"""The memory of a worker before it has done anything: libraries, and on a GPU CUDA's context and captured graphs."""


LEAST = 0.25
"""The smallest share of a GPU, since processes on one GPU take turns and more than a few only wait for each other."""


class Resources(NamedTuple):
    """The resources of the machines, in bytes."""

    machine: float
    """The memory of the largest machine."""
    gpu: float
    """The memory of the smallest GPU; 0 if there is none."""


class Needs:
    """The needs of banks on one data set; ``tables_of`` returns the tables of a run."""

    def __init__(
        self, splitter: Splitter, tables_of: Callable[[RunConfig], GraphTables], device: str, there: Resources
    ) -> None:
        self._splitter = splitter
        self._tables_of = tables_of
        self._device = device
        self._there = there
        self._of_shape = lru_cache(maxsize=None)(self._measure)
        self._examples: dict[str, RunConfig] = {}

    def bytes_of(self, bank: Sequence[RunConfig]) -> int:
        """Return the memory on the device. Tables count only on a GPU: on a CPU all workers of a machine share them."""
        first = bank[0]
        tables = self._tables_of(first)
        self._examples.setdefault(first.bank_shape(), first)
        nodes = tables.neighbors.lengths.numel()
        memory = self._of_shape(first.bank_shape()).of(len(bank), self._device, nodes)
        return PROCESS[self._device] + memory + (tables.nbytes if self._device == "cuda" else 0)

    def options(self, bank: Sequence[RunConfig]) -> dict[str, float]:
        """Return the options of a Ray task. A bank that is larger than all memory gets a whole machine or GPU."""
        wanted = self.bytes_of(bank)
        if self._device == "cuda":
            return {"num_cpus": 1, "num_gpus": share(wanted, self._there.gpu)}
        return {"num_cpus": 1, "memory": int(min(wanted, self._there.machine))}

    def _measure(self, name: str) -> BankMemory:
        config = self._examples[name]
        return bank_memory(self._tables_of(config), config, self._splitter(config))


def share(wanted: float, there: float) -> float:
    """Return the share of a GPU for ``wanted`` bytes, rounded up to a thousandth, at least a quarter and at most 1."""
    return min(1.0, max(LEAST, math.ceil(1000 * wanted / there) / 1000)) if there else 1.0
