"""Train runs on a Ray cluster: a task for each bank, and one store of runs on the machine that starts the training.

On a CPU a task has one core and one thread, and gives the same results as local training. On a GPU it requests a share
of the GPU by its estimated memory, so that small banks share one. The data set is put into Ray's object store once, as
arrays that all workers of a machine read without copying.
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
from sopool.experiments.executors import ray_cluster
from sopool.experiments.executors.banks import banks_of
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.experiments.executors.needs import Needs
from sopool.experiments.executors.rounds import in_rounds
from sopool.experiments.executors.run_server import BankAttempt, RunServer, WorkerLink
from sopool.training import trainer
from sopool.training.bank.batching import GraphTables
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report, Trainer, TrainingProgress

QUEUED = 4096
"""The number of tasks that are submitted to Ray at a time, enough for a cluster to grow."""
DEATHS = 3
"""How many workers may die in a row while training a bank without having saved anything."""
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
    """Train all runs that are not in the store yet; return False if ``stop`` ended the training early.

    This is :func:`sopool.experiments.executors.local.train_all` on a Ray cluster.

    Args:
        store: The labeled graphs.
        runs: The store of runs.
        configs: The runs.
        device: ``"cpu"`` (default), ``"cuda"``, or ``"auto"`` for GPUs if the cluster has any.
        workers: The number of banks that may be trained at the same time. Default: None, as many as fit.
        report: Called with the progress of training.
        stop: Called after each epoch; if it returns True, training ends.
        address: The cluster: ``"auto"`` (default) for the one that was started on this machine, the host name of its
            head, or ``"local"`` to start one on this machine only, for the lifetime of this process.
    """
    ray_cluster.connect(address)
    device = ray_cluster.device_for(device)

    def train(pending: list[RunConfig]) -> list[RunConfig]:
        banks = banks_of(store, pending, device, workers or ray_cluster.places(device))
        return _Round(store, runs, banks, device, report, stop).train(workers or QUEUED)

    return in_rounds(runs, configs, train, report, stop)


class _Round:
    """Hand out banks to workers, and collect their progress from the server."""

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
        self._shared = lru_cache(lambda facts: ray_cluster.share_arrays(tables(facts)))
        splitter = Splitter.of_store(store, banks[0][0])
        there = ray_cluster.resources(device)
        self._needs = Needs(splitter, lambda config: tables(TableFacts.of(config)), device, there)
        self._server = ray_cluster.actor_here(RunServer, runs.folder.resolve(), banks, trainer.CHECKPOINT_SECONDS)
        self._ask = partial(ray_cluster.ask, self._server)
        self._task = ray_cluster.task(train_bank)
        self._under_way: dict[Any, BankAttempt] = {}
        self._error: Exception | None = None
        self._stopping = False

    def train(self, most: int) -> list[RunConfig]:
        """Train all banks, ``most`` at a time; return the runs that other processes train."""
        try:
            self._hand_out(deque(BankAttempt(number, 0) for number in range(len(self.banks))), most)
            left: list[RunConfig] = self._ask("left")
        except ray_cluster.LostError as error:
            raise WorkerDiedError(
                "The process that writes to the store of runs was killed, or this machine is no longer part of the "
                "cluster. Finished runs and checkpoints are kept: start the training again to continue."
            ) from error
        finally:
            ray_cluster.kill(self._server, self._under_way)
        if self._error is not None and not self.stop():
            raise self._error
        return left

    def _hand_out(self, waiting: deque[BankAttempt], most: int) -> None:
        shown = -np.inf
        while self._under_way or (waiting and not self._stopping):
            while waiting and not self._stopping and len(self._under_way) < most:
                self._submit(waiting.popleft())
            if self.stop():
                self._stop()
            for task in ray_cluster.finished(self._under_way, LOOK_SECONDS):
                waiting += self._look(task, self._under_way.pop(task))
            for progress in self._ask("news"):
                self.report(progress)
            if time.monotonic() - shown > SHOW_SECONDS:
                shown = time.monotonic()
                self.report(TrainingProgress(0, 0, where=ray_cluster.describe_cluster(self.device)))

    def _submit(self, attempt: BankAttempt) -> None:
        bank = self.banks[attempt.bank]
        options = self._needs.options(bank)
        # In a list, so that Ray does not fetch the tables before the task knows that it has something to train.
        task = self._task.options(**options).remote(
            self._server, [self._shared(TableFacts.of(bank[0]))], attempt, self.device
        )
        self._under_way[task] = attempt

    def _stop(self) -> None:
        """Let active workers write their checkpoints and end, and cancel tasks that have not begun."""
        if not self._stopping:
            self._stopping = True
            at_work = set(self._ask("stop"))
            ray_cluster.cancel(task for task, attempt in self._under_way.items() if attempt.bank not in at_work)

    def _look(self, task: Any, attempt: BankAttempt) -> list[BankAttempt]:
        """Check a finished task; return the attempts to make next for its bank."""
        try:
            ray_cluster.result(task)
        except ray_cluster.LostError as error:
            deaths = self._ask("died", attempt.bank)
            if deaths < DEATHS and not self._stopping:
                return [BankAttempt(attempt.bank, attempt.number + 1)]
            self._ask("give_up", attempt.bank)
            if deaths >= DEATHS:
                self._error = self._error or _killed(self.banks[attempt.bank], error)
        except Exception as error:
            self._error = self._error or error
            self._stop()
        return []


def _killed(bank: Sequence[RunConfig], error: Exception) -> WorkerDiedError:
    config = bank[0]
    what = f"{len(bank)} models of {config.model.pool_name} on {config.data}, {config.setting}"
    return WorkerDiedError(
        f"{DEATHS} workers that trained {what} were killed one after the other, perhaps for lack of memory ({error}). "
        "All other runs were trained. Finished runs and checkpoints are kept: start the training again to continue."
    )


def train_bank(server: Any, shared: list[Any], attempt: BankAttempt, device: str) -> None:
    """Train a bank; this is the task of a worker."""
    link = WorkerLink(partial(ray_cluster.ask, server), attempt)
    if configs := link.begin():
        tables: GraphTables = ray_cluster.result(shared[0])
        with threads(1):
            Trainer(tables.to(device), link, link.report, link.stop, link.pause).train(configs)
    link.end()
