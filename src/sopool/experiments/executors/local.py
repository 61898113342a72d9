"""Train runs on this machine: on a GPU one bank at a time, on a CPU one single-threaded process for each core.

Small operators gain little from threads, so parallel banks are faster than one bank with many threads. The result of a
run does not depend on which worker trains it, or with which other runs.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch

import sopool.experiments.systems  # noqa: F401 - registers the networks that a worker process trains
from sopool._runtime.processes import run_jobs
from sopool._runtime.threads import cores, threads
from sopool.data.extras import Extra
from sopool.data.features.encoder import Encoder
from sopool.data.features.encoders import default_encoder
from sopool.data.features.graph_attributes import GraphAttributeEncoder
from sopool.data.formats.worker_file import GraphsFile, graphs_file
from sopool.data.graphs import PackedGraphs
from sopool.experiments.executors.banks import banks_of
from sopool.experiments.executors.rounds import in_rounds
from sopool.models.make import extras_for
from sopool.models.presets import edge_encoder_for, edges_used
from sopool.objectives import objective_for
from sopool.training.bank.batching import GraphTables
from sopool.training.runs.config import Looks, RunConfig
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report, Trainer

WORTH_A_PROCESS = 5e6
"""The number of node visits from which on starting processes, which takes seconds, is worthwhile."""

GO_ON = (
    "Finished runs and checkpoints are kept: start the training again to continue, with fewer workers if memory is low."
)
Train = Callable[[PackedGraphs, RunStore, Sequence[RunConfig], str, int | None, Report, Callable[[], bool]], bool]
"""A function that trains runs, such as :func:`train_all`."""


def encoder_for(store: PackedGraphs, looks: Looks) -> Encoder:
    """Return the fitted encoder of a run; with a validation split it has a value for unknown features."""
    return default_encoder(store, unknown=looks != "test").fit(store)


class TableFacts(NamedTuple):
    """The properties of a run that determine its tables."""

    looks: Looks
    """The graphs that the run is scored on."""
    extras: tuple[tuple[str, Extra], ...]
    """What the model needs besides the edges, by name."""
    edges: tuple[bool, bool, bool, bool]
    """Whether the model uses labels, categories, attributes and weights of edges."""
    graph_attributes: bool
    """Whether the model uses attributes of graphs."""
    objective: tuple[str, str, str | None]
    """The task, the metric and the loss."""

    @classmethod
    def of(cls, config: RunConfig) -> "TableFacts":
        """Return the facts of a run."""
        goal = (config.task, config.metric, config.loss)
        model = config.model
        return cls(config.looks, tuple(extras_for(model).items()), edges_used(model), model.graph_attributes > 0, goal)


def tables_for(store: PackedGraphs, facts: TableFacts, device: str, only: Sequence[int] | None = None) -> GraphTables:
    """Return the tables of a data set for its runs, or of ``only`` some of its graphs with the features of all."""
    some = store if only is None else store[only]
    encoder = edge_encoder_for(facts.edges)
    edges = None if encoder is None else encoder.fit(store).transform(some)
    numbers = GraphAttributeEncoder().fit(store).transform(some) if facts.graph_attributes else None
    objective = objective_for(store, *facts.objective)
    tables = GraphTables.build(some, encoder_for(store, facts.looks).transform(some), edges, objective, numbers)
    return tables.with_extras(some, dict(facts.extras)).to(device)


def train_all(
    store: PackedGraphs,
    runs: RunStore,
    configs: Sequence[RunConfig],
    device: str = "cpu",
    workers: int | None = None,
    report: Report = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train all runs that are not in the store yet; return False if ``stop`` ended the training early.

    Args:
        store: The labeled graphs.
        runs: The store of runs.
        configs: The runs.
        device: ``"cpu"`` (default) or ``"cuda"``.
        workers: The number of processes on a CPU. Default: None, one for each core if there is enough work.
        report: Called with the progress of training.
        stop: Called after each epoch; if it returns True, training ends.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments import Evaluator, Request
        >>> from sopool.experiments.executors.local import train_all
        >>> from sopool.training.runs.store import RunStore
        >>> graphs = make_agreement(60)
        >>> with TemporaryDirectory() as folder:
        ...     runs = RunStore(folder)
        ...     request = Request(["sum"], ["single-epoch"], epochs=1, steps=1, folds=2)
        ...     train_all(graphs, runs, Evaluator(graphs, request, runs).first_runs())
        True
    """

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
    """Train in this process; on a CPU with one thread, as workers do, so that the results are the same."""
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
    """Return the function that trains a bank in a worker process."""
    return _trainer(graphs.load(), RunStore(folder), "cpu", report, stop)


def _trainer(
    store: PackedGraphs, runs: RunStore, device: str, report: Report, stop: Callable[[], bool]
) -> Callable[[Sequence[RunConfig]], list[RunConfig]]:
    """Return the function that trains a bank and returns the runs that other processes train."""
    tables = lru_cache(lambda facts: tables_for(store, facts, device))
    return lambda bank: Trainer(tables(TableFacts.of(bank[0])), runs, report, stop).train(bank)
