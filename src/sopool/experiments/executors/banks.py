"""Divide runs into banks that are trained together."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

from sopool.data.graphs import PackedGraphs
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig

MOST = {"cpu": 10, "cuda": 256}
"""The largest number of models in a bank: on a CPU as many as fit into the cache, on a GPU as many as use it fully."""


def banks_of(store: PackedGraphs, configs: Sequence[RunConfig], device: str, workers: int) -> list[list[RunConfig]]:
    """Return the banks of runs on one data set, see :func:`make_banks`."""
    if not configs:
        return []
    splitter = Splitter.of_store(store, configs[0])
    return make_banks(configs, device.split(":")[0], workers, [len(splitter(config).train) for config in configs])


def make_banks(
    configs: Sequence[RunConfig], device: str, workers: int, train_sizes: Sequence[int]
) -> list[list[RunConfig]]:
    """Group runs of one shape into banks that are small enough for every worker to get one.

    ``train_sizes`` is the number of training graphs of each run, which limits its batch size.
    """
    groups: dict[Hashable, list[RunConfig]] = defaultdict(list)
    for config, size in zip(configs, train_sizes, strict=True):
        groups[config.bank_shape(), min(config.batch_size, size)].append(config)
    share = -(-len(configs) // workers)
    banks = []
    for group in groups.values():
        pieces = -(-len(group) // min(MOST[device], share))
        if pieces > 1:  # the same number for each worker, so that none waits
            pieces = min(len(group), -(-pieces // workers) * workers)
        banks += [group[piece::pieces] for piece in range(pieces)]
    return sorted(banks, key=len, reverse=True)
