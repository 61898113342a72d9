"""Runs on a Ray cluster: a task for each bank, one store of runs on the machine where the command was given.

On a CPU a task has one core and one thread, and gives what it gives here. On a GPU it asks for as much of
one as its memory is estimated at, so that small banks share one. The data set goes into Ray's object store once, as
arrays that all workers of a machine read in place.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from sopool._runtime.processes import WorkerDiedError
from sopool._runtime.threads import threads
from sopool.data.graphs import PackedGraphs
from sopool.experiments.executors import ray_cluster as cluster
from sopool.experiments.executors.banks import banks_of
from sopool.experiments.executors.desk import Desk, Line, Ticket
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.experiments.executors.needs import Needs
from sopool.experiments.executors.rounds import in_rounds
from sopool.training import trainer
from sopool.training.bank.batching import GraphTables
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Progress, Report, Trainer

QUEUED = 4096
"""Tasks handed to Ray at a time: enough for a cluster to grow by."""
DEATHS = 3
"""Workers that may die at a bank, one after the other, without having saved anything."""
LOOK_SECONDS, SHOW_SECONDS = 0.1, 2.0


def train_on_ray(
    store: PackedGraphs,
    runs: RunStore,
    configs: Sequence[RunConfig],
    device: str = "cpu",
    workers: int | None = None,
    report: Report = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    *,
    address: str = "auto",
) -> bool:
    """Train all runs that are not in the store yet; False if ``stop`` said so before the end.

    As :func:`sopool.experiments.executors.local.train_all`, on the cluster at ``address``: a host (the head of the
    cluster that this machine is part of), ``auto`` (the cluster that was started here) or ``local`` (one of this
    machine alone, for as long as this process lives). ``workers``: how many banks may be trained at once, None for all
    that fit.
    ``device``: ``cpu``, ``cuda``, or ``auto`` for GPUs if the cluster has any.
    """
    cluster.connect(address)
    device = cluster.device_for(device)

    def train(pending: list[RunConfig]) -> list[RunConfig]:
        banks = banks_of(store, pending, device, workers or cluster.places(device))
        return _Round(store, runs, banks, device, report, stop).train(workers or QUEUED)

    return in_rounds(runs, configs, train, report, stop)


class _Round:
    """Hands out banks to workers, and hears through the desk what they do."""

    def __init__(
        self,
        store: PackedGraphs,
        runs: RunStore,
        banks: Sequence[Sequence[RunConfig]],
        device: str,
        report: Report,
        stop: Callable[[], bool],
    ) -> None:
        self.banks = banks
        self.device = device
        self.report = report
        self.stop = stop
        tables = lru_cache(lambda facts: tables_for(store, facts, "cpu"))
        self._shared = lru_cache(lambda facts: cluster.share_arrays(tables(facts)))
        labels = store.labels.cpu().numpy() if store.labels is not None else np.zeros(0)
        self._needs = Needs(labels, lambda config: tables(TableFacts.of(config)), device, cluster.resources(device))
        self._desk = cluster.actor_here(Desk, runs.folder.resolve(), banks, trainer.CHECKPOINT_SECONDS)
        self._ask = partial(cluster.ask, self._desk)
        self._task = cluster.task(train_bank)
        self._under_way: dict[Any, Ticket] = {}
        self._error: Exception | None = None
        self._stopping = False

    def train(self, most: int) -> list[RunConfig]:
        """Train all, so many at a time; the runs that other processes are at are left, and given back."""
        try:
            self._hand_out(deque(Ticket(number, 0) for number in range(len(self.banks))), most)
            left: list[RunConfig] = self._ask("left")
        except cluster.LostError as error:
            raise WorkerDiedError(
                "The process that writes to the store of runs was killed, or this machine is no longer part of the "
                "cluster. Nothing finished is lost: run the same command again to go on."
            ) from error
        finally:
            cluster.kill(self._desk, self._under_way)
        if self._error is not None and not self.stop():
            raise self._error
        return left

    def _hand_out(self, waiting: deque[Ticket], most: int) -> None:
        shown = -np.inf
        while self._under_way or (waiting and not self._stopping):
            while waiting and not self._stopping and len(self._under_way) < most:
                self._submit(waiting.popleft())
            if self.stop():
                self._stop()
            for task in cluster.finished(self._under_way, LOOK_SECONDS):
                waiting += self._look(task, self._under_way.pop(task))
            for progress in self._ask("news"):
                self.report(progress)
            if time.monotonic() - shown > SHOW_SECONDS:
                shown = time.monotonic()
                self.report(Progress(0, 0, where=cluster.describe(self.device)))

    def _submit(self, ticket: Ticket) -> None:
        bank = self.banks[ticket.bank]
        options = self._needs.options(bank)
        # In a list: Ray leaves it to the task to fetch what it needs, once it knows that it is to train at all.
        task = self._task.options(**options).remote(
            self._desk, [self._shared(TableFacts.of(bank[0]))], ticket, self.device
        )
        self._under_way[task] = ticket

    def _stop(self) -> None:
        """Those at work write their checkpoints and leave; the others are not to begin."""
        if not self._stopping:
            self._stopping = True
            at_work = set(self._ask("stop"))
            cluster.cancel(task for task, ticket in self._under_way.items() if ticket.bank not in at_work)

    def _look(self, task: Any, ticket: Ticket) -> list[Ticket]:
        """At a task that is over: what to do next for its bank."""
        try:
            cluster.result(task)
        except cluster.LostError as error:
            deaths = self._ask("died", ticket.bank)
            if deaths < DEATHS and not self._stopping:
                return [Ticket(ticket.bank, ticket.attempt + 1)]
            self._ask("give_up", ticket.bank)
            if deaths >= DEATHS:
                self._error = self._error or _killed(self.banks[ticket.bank], error)
        except Exception as error:
            self._error = self._error or error
            self._stop()
        return []


def _killed(bank: Sequence[RunConfig], error: Exception) -> WorkerDiedError:
    config = bank[0]
    what = f"{len(bank)} models of {config.model.pool_name} on {config.data}, {config.setting}"
    return WorkerDiedError(
        f"{DEATHS} workers that trained {what} were killed one after the other, perhaps for want of memory ({error}). "
        "All else was trained. Nothing finished is lost: run the same command again to go on."
    )


def train_bank(desk: Any, shared: list[Any], ticket: Ticket, device: str) -> None:
    """A worker's task."""
    line = Line(partial(cluster.ask, desk), ticket)
    if configs := line.begin():
        tables: GraphTables = cluster.result(shared[0])
        with threads(1):
            Trainer(tables.to(device), line, line.report, line.stop, line.pause).train(configs)
    line.end()
