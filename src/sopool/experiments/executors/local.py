"""Runs on this machine: on a GPU one bank at a time; on a CPU a single-threaded process for each core.

Small operators gain little from threads, so banks side by side are faster than one bank on many threads. Which worker
trains a run, and beside which others, does not change its result.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch

from sopool._runtime.processes import run_jobs
from sopool._runtime.threads import cores, threads
from sopool.data.analysis.spectral import ClusterSpec
from sopool.data.features.edge_labels import EdgeLabelEncoder
from sopool.data.features.encoders import Encoder, default_encoder
from sopool.data.formats.worker_file import GraphsFile, graphs_file
from sopool.data.graphs import PackedGraphs
from sopool.experiments.executors.banks import banks_of
from sopool.experiments.executors.rounds import in_rounds
from sopool.models.make import clusters_for
from sopool.training.bank.batching import GraphTables
from sopool.training.bank.cluster_tables import ClusterTables
from sopool.training.runs.config import Looks, RunConfig
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report, Trainer

WORTH_A_PROCESS = 5e6
"""Node visits from which on starting processes (seconds) pays."""

GO_ON = (
    "Nothing finished is lost: run the same command again to continue, with fewer --workers if there is little memory."
)
Train = Callable[[PackedGraphs, RunStore, Sequence[RunConfig], str, int | None, Report, Callable[[], bool]], bool]
"""A way to train runs: :func:`train_all`, or that of a cluster."""


def encoder_for(store: PackedGraphs, looks: Looks) -> Encoder:
    """The features of a run, fitted: with a validation split, values outside the training graphs become unknown."""
    return default_encoder(store, unknown=looks != "test").fit(store)


class TableFacts(NamedTuple):
    """What decides the tables of a run."""

    looks: Looks
    clusters: ClusterSpec | None
    edge_labels: bool
    """Whether the model uses them."""

    @classmethod
    def of(cls, config: RunConfig) -> "TableFacts":
        """Of a run."""
        return cls(config.looks, clusters_for(config.model), config.model.edge_labels > 0)


def tables_for(store: PackedGraphs, facts: TableFacts, device: str, only: Sequence[int] | None = None) -> GraphTables:
    """The data set as its runs need it; or ``only`` some of its graphs, with the features that all of them make."""
    some = store if only is None else store[only]
    edges = EdgeLabelEncoder().fit(store).transform(some) if facts.edge_labels else None
    tables = GraphTables.build(some, encoder_for(store, facts.looks).transform(some), edges)
    if facts.clusters is not None:
        tables = replace(tables, clusters=ClusterTables.build(some, facts.clusters))
    return tables.to(device)


def train_all(
    store: PackedGraphs,
    runs: RunStore,
    configs: Sequence[RunConfig],
    device: str = "cpu",
    workers: int | None = None,
    report: Report = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train all runs that are not in the store yet; False if ``stop`` said so before the end."""

    def train(pending: list[RunConfig]) -> list[RunConfig]:
        count = _workers(pending, store, device, workers)
        banks = banks_of(store, pending, device, count)
        if count > 1 and len(banks) > 1:
            return _in_processes(store, runs, banks, min(count, len(banks)), report, stop)
        return _here(store, runs, banks, device, report, stop)

    return in_rounds(runs, configs, train, report, stop)


def _workers(configs: Sequence[RunConfig], store: PackedGraphs, device: str, wanted: int | None) -> int:
    if device != "cpu":
        return 1
    if wanted is not None:
        return wanted
    visits = sum(config.epochs * (config.steps * config.batch_size + len(store)) for config in configs)
    worth = visits * store.num_nodes / max(1, len(store)) > WORTH_A_PROCESS
    return cores() if worth else 1


def _here(
    store: PackedGraphs,
    runs: RunStore,
    banks: Sequence[Sequence[RunConfig]],
    device: str,
    report: Report,
    stop: Callable[[], bool],
) -> list[RunConfig]:
    """In this process. On a CPU with one thread, as the workers have, so that the numbers are the same."""
    left: list[RunConfig] = []
    train = _trainer(store, runs, device, report, stop)
    with threads(1 if device == "cpu" else torch.get_num_threads()):
        for bank in banks:
            left += train(bank)
            if stop():
                break
    return left


def _in_processes(
    store: PackedGraphs,
    runs: RunStore,
    banks: Sequence[Sequence[RunConfig]],
    workers: int,
    report: Report,
    stop: Callable[[], bool],
) -> list[RunConfig]:
    left: list[RunConfig] = []
    with graphs_file(store) as graphs:
        for rest in run_jobs(_worker, (graphs, runs.folder), map(list, banks), workers, report, stop, GO_ON):
            left += rest
    return left


def _worker(
    graphs: GraphsFile, folder: Path, report: Report, stop: Callable[[], bool]
) -> Callable[[Sequence[RunConfig]], list[RunConfig]]:
    """What trains a bank in a process of its own."""
    return _trainer(graphs.load(), RunStore(folder), "cpu", report, stop)


def _trainer(
    store: PackedGraphs, runs: RunStore, device: str, report: Report, stop: Callable[[], bool]
) -> Callable[[Sequence[RunConfig]], list[RunConfig]]:
    """What trains a bank: the runs that are left of it come back."""
    tables = lru_cache(lambda facts: tables_for(store, facts, device))
    return lambda bank: Trainer(tables(TableFacts.of(bank[0])), runs, report, stop).train(bank)
