"""A server beside the store of runs, to which workers on other machines send their results.

Workers need no access to the store's file system. They send finished runs and, from time to time, checkpoints to the
server, which stores them. A worker that replaces one that died gets its checkpoints from the server. The server holds
the claims of each bank, so they survive the death of a worker. Every message names the attempt at a bank that it
belongs to, and messages of superseded attempts are rejected, so a worker that was wrongly assumed dead does no harm.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import sopool
from sopool.errors import ResourceError
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.store import RunStore
from sopool.training.trainer import TrainingProgress

SHARE = 0.1
"""The fraction of its time that the server may spend on checkpoints, and again on progress reports."""
PULSE_SECONDS, PULSE_COST = 0.5, 0.001
"""Seconds between the progress reports of a worker, and seconds that one costs the server."""

Arrays = dict[str, np.ndarray]


class SupersededError(RuntimeError):
    """Another worker was given this bank."""


class BankAttempt(NamedTuple):
    """One attempt at training a bank."""

    bank: int
    number: int


class Instructions(NamedTuple):
    """The server's answer to a progress report of a worker."""

    stop: bool
    """Whether to stop."""
    pause: float
    """Seconds between checkpoints."""
    pulse: float
    """Seconds until the next progress report."""


@dataclass
class _Account:
    """What the server knows about a bank."""

    configs: Sequence[RunConfig]
    attempt: int = -1
    claims: ExitStack | None = None
    open: dict[str, RunConfig] = field(default_factory=dict)
    """The runs that are still to be trained, once the bank has begun."""
    epochs: int = 0
    """The number of reported epochs of all models."""
    finished: int = 0
    """The number of runs reported as finished."""
    saved: int = 0
    """The number of runs that were saved."""
    busy: bool = False
    """Whether a worker trains it, as far as is known."""
    ended: bool = False
    """Whether a worker has finished it; a worker may die after that."""
    fruitless: int = 0
    """The number of workers that died since something was last saved."""


class RunServer:
    """Coordinate the training of some ``banks`` whose runs are kept in the store at ``folder``."""

    def __init__(self, folder: str | Path, banks: Sequence[Sequence[RunConfig]], pause: float) -> None:
        self._runs = RunStore(folder)
        self._accounts = [_Account(bank) for bank in banks]
        self._pause = pause
        self._stopping = False
        self._news: list[TrainingProgress] = []
        self._left: list[RunConfig] = []
        self._spent = 0.0
        self._checkpoints = 0

    # Methods that workers call.

    def begin(self, attempt: BankAttempt, version: str) -> list[RunConfig]:
        """Claim and return the runs that this attempt is to train; none if training is to stop."""
        if version != sopool.__version__:
            raise ResourceError(
                f"a worker has sopool {version}, this machine {sopool.__version__}: install the same version on all "
                "machines."
            )
        account = self._accounts[attempt.bank]
        if attempt.number < account.attempt:
            raise SupersededError
        account.attempt = attempt.number
        if self._stopping or account.ended:
            return []
        if account.claims is None:
            self._claim(account)
        else:
            self._take_back(account)
        account.busy = True
        return list(account.open.values())

    def pulse(self, attempt: BankAttempt, news: Sequence[TrainingProgress]) -> Instructions:
        """Record the progress of a worker, and return its instructions."""
        account = self._account(attempt)
        for progress in news:
            account.epochs += progress.models * progress.epochs
            account.finished += progress.finished
        self._news += news
        workers = sum(account.busy for account in self._accounts)
        return Instructions(self._stopping, self._due(), max(PULSE_SECONDS, workers * PULSE_COST / SHARE))

    def save(self, attempt: BankAttempt, run: Run) -> None:
        """Store a finished run."""
        account = self._account(attempt)
        del account.open[run.config.key]
        self._runs.save(run)
        account.saved += 1
        account.fruitless = 0

    def save_checkpoint(self, attempt: BankAttempt, config: RunConfig, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Store the current state of an unfinished run."""
        account = self._account(attempt)
        start = time.monotonic()
        self._runs.save_checkpoint(config, arrays, facts)
        self._spent = self._spent + time.monotonic() - start
        self._checkpoints = self._checkpoints + 1
        account.fruitless = 0

    def load_checkpoint(self, attempt: BankAttempt, config: RunConfig) -> tuple[Arrays, dict[str, Any]] | None:
        """Return the last state of a run, whichever worker trained it."""
        self._account(attempt)
        if (found := self._runs.load_checkpoint(config)) is None:
            return None
        arrays, facts = found
        return {name: tensor.numpy() for name, tensor in arrays.items()}, facts

    def end(self, attempt: BankAttempt) -> None:
        """Record that the worker has finished the bank or was stopped."""
        account = self._account(attempt)
        account.ended = True
        self._release(account)

    # Methods that the process that hands out the banks calls.

    def news(self) -> list[TrainingProgress]:
        """Return the progress that was reported since the last call."""
        news = self._news
        self._news = []
        return news

    def stop(self) -> list[int]:
        """Start no more banks, and tell workers to stop; return the banks that have a worker."""
        self._stopping = True
        return [number for number, account in enumerate(self._accounts) if account.busy]

    def died(self, bank: int) -> int:
        """Record the death of a worker; return how many died at this bank since something was last saved."""
        account = self._accounts[bank]
        account.busy = False
        account.fruitless += 1
        return account.fruitless

    def give_up(self, bank: int) -> None:
        """Release a bank that is not to be tried again; other processes may train it."""
        account = self._accounts[bank]
        self._take_back(account)
        self._release(account)

    def left(self) -> list[RunConfig]:
        """Return the runs that other processes train or have just finished."""
        return self._left

    def _account(self, attempt: BankAttempt) -> _Account:
        account = self._accounts[attempt.bank]
        if attempt.number != account.attempt:
            raise SupersededError(f"bank {attempt.bank} is at attempt {account.attempt}, not {attempt.number}.")
        return account

    def _claim(self, account: _Account) -> None:
        account.claims = ExitStack()
        for config in account.configs:
            if account.claims.enter_context(self._runs.claim(config)) and self._runs.load(config) is None:
                account.open[config.key] = config
            else:
                self._left.append(config)

    def _take_back(self, account: _Account) -> None:
        """Take back the progress of the last attempt that was not saved: the next one starts at its checkpoints."""
        epochs = account.configs[0].epochs
        progress = TrainingProgress(
            1, account.saved * epochs - account.epochs, finished=account.saved - account.finished
        )
        account.epochs = account.saved * epochs
        account.finished = account.saved
        self._news.append(progress)

    def _release(self, account: _Account) -> None:
        account.busy = False
        if account.claims is not None:
            account.claims.close()
            account.claims = None

    def _due(self) -> float:
        """Return the seconds between checkpoints, which leave the server enough time for other work."""
        cost = self._spent / max(1, self._checkpoints)
        running = sum(len(account.open) for account in self._accounts if account.busy)
        return max(self._pause, cost * running / SHARE)


class WorkerLink:
    """The link of a worker to the server, which its trainer uses as a store of runs and for its reports.

    ``ask(method, *arguments)`` calls a method of the server, wherever that is, and waits for its result.
    """

    def __init__(self, ask: Callable[..., Any], attempt: BankAttempt) -> None:
        self._ask = ask
        self._attempt = attempt
        self._news: list[TrainingProgress] = []
        self._answered_at = -np.inf
        self._answer = Instructions(False, np.inf, 0.0)

    def begin(self) -> list[RunConfig]:
        """Return the runs to train."""
        configs: list[RunConfig] = self._ask("begin", self._attempt, sopool.__version__)
        return configs

    def end(self) -> None:
        """Report that the worker has finished."""
        self._pulse()
        self._ask("end", self._attempt)

    def report(self, progress: TrainingProgress) -> None:
        """Keep a report for the next message to the server."""
        self._news.append(progress)

    def stop(self) -> bool:
        """Return whether to stop."""
        return self._told().stop

    def pause(self) -> float:
        """Return the seconds between checkpoints."""
        return self._told().pause

    def claim(self, config: RunConfig) -> AbstractContextManager[bool]:
        """Return True: the server has claimed all runs that it hands out."""
        return nullcontext(True)

    def load(self, config: RunConfig) -> None:
        """Return None: finished runs are not handed out."""

    def save(self, run: Run) -> None:
        """Send a finished run to the server."""
        self._ask("save", self._attempt, run)

    def save_checkpoint(
        self, config: RunConfig, arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any]
    ) -> None:
        """Send a checkpoint to the server, as NumPy arrays."""
        plain = {name: torch.as_tensor(array).detach().cpu().numpy() for name, array in arrays.items()}
        self._ask("save_checkpoint", self._attempt, config, plain, facts)

    def load_checkpoint(self, config: RunConfig) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the last checkpoint of a run from the server."""
        if (found := self._ask("load_checkpoint", self._attempt, config)) is None:
            return None
        arrays, facts = found
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}, facts

    def _told(self) -> Instructions:
        if time.monotonic() - self._answered_at > self._answer.pulse:
            self._pulse()
        return self._answer

    def _pulse(self) -> None:
        news = self._news
        self._news = []
        self._answer = self._ask("pulse", self._attempt, news)
        self._answered_at = time.monotonic()
