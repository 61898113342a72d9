"""The server beside the store of runs, to which workers on other machines send their results.

Workers need not see the store's file system: what they finish, and now and then where they stand, they send to the
server, which writes it down; a worker that takes over from one that died is told by the server where that one stood.
The server holds the claims, for a bank and not for a worker, so they outlive it. Every message says which attempt at a
bank it belongs to, and those of an attempt that was given up are refused: a worker that was only thought dead does no
harm.
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
"""Of its time, what the server wants to spend on checkpoints, and again on reports of how far workers are."""
PULSE_SECONDS, PULSE_COST = 0.5, 0.001
"""How often a worker says how far it is, and what such a report costs the server."""

Arrays = dict[str, np.ndarray]


class SupersededError(RuntimeError):
    """Another worker was given this bank."""


class BankAttempt(NamedTuple):
    """One attempt at one bank."""

    bank: int
    number: int


class Instructions(NamedTuple):
    """What a worker is told whenever it says how far it is."""

    stop: bool
    pause: float
    """Seconds between its checkpoints."""
    pulse: float
    """Seconds until it should say so again."""


@dataclass
class _Account:
    """What the server knows of a bank."""

    configs: Sequence[RunConfig]
    attempt: int = -1
    claims: ExitStack | None = None
    open: dict[str, RunConfig] = field(default_factory=dict)
    """Those still to be trained, once the bank has begun."""
    epochs: int = 0
    """Model-epochs reported."""
    finished: int = 0
    """Runs reported as finished."""
    saved: int = 0
    busy: bool = False
    """Whether a worker is at it, as far as is known."""
    ended: bool = False
    """A worker may die after its last word."""
    fruitless: int = 0
    """Workers that died since the last time something was saved."""


class RunServer:
    """Keeps the books of some ``banks`` in the store at ``folder``."""

    def __init__(self, folder: str | Path, banks: Sequence[Sequence[RunConfig]], pause: float) -> None:
        self._runs = RunStore(folder)
        self._accounts = [_Account(bank) for bank in banks]
        self._pause = pause
        self._stopping = False
        self._news: list[TrainingProgress] = []
        self._left: list[RunConfig] = []
        self._spent = 0.0
        self._checkpoints = 0

    # What workers ask for.

    def begin(self, attempt: BankAttempt, version: str) -> list[RunConfig]:
        """The runs that this attempt is to train, claimed; none if training is to stop."""
        if version != sopool.__version__:
            raise ResourceError(
                f"a worker has sopool {version}, this machine {sopool.__version__}: install the same on all machines."
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
        """Hear how far a worker is, and tell it how to go on."""
        account = self._account(attempt)
        for progress in news:
            account.epochs += progress.models * progress.epochs
            account.finished += progress.finished
        self._news += news
        workers = sum(account.busy for account in self._accounts)
        return Instructions(self._stopping, self._due(), max(PULSE_SECONDS, workers * PULSE_COST / SHARE))

    def save(self, attempt: BankAttempt, run: Run) -> None:
        """Keep a finished run."""
        account = self._account(attempt)
        del account.open[run.config.key]
        self._runs.save(run)
        account.saved += 1
        account.fruitless = 0

    def save_checkpoint(self, attempt: BankAttempt, config: RunConfig, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Keep where a run stands."""
        account = self._account(attempt)
        start = time.monotonic()
        self._runs.save_checkpoint(config, arrays, facts)
        self._spent = self._spent + time.monotonic() - start
        self._checkpoints = self._checkpoints + 1
        account.fruitless = 0

    def load_checkpoint(self, attempt: BankAttempt, config: RunConfig) -> tuple[Arrays, dict[str, Any]] | None:
        """Where a run stood, whoever trained it."""
        self._account(attempt)
        if (found := self._runs.load_checkpoint(config)) is None:
            return None
        arrays, facts = found
        return {name: tensor.numpy() for name, tensor in arrays.items()}, facts

    def end(self, attempt: BankAttempt) -> None:
        """The worker is through with the bank, or was stopped."""
        account = self._account(attempt)
        account.ended = True
        self._release(account)

    # What the one who hands out the banks asks for.

    def news(self) -> list[TrainingProgress]:
        """What was reported since the last time."""
        news = self._news
        self._news = []
        return news

    def stop(self) -> list[int]:
        """From now on no bank begins, and workers are told to stop; gives the banks that have one."""
        self._stopping = True
        return [number for number, account in enumerate(self._accounts) if account.busy]

    def died(self, bank: int) -> int:
        """A worker died: how many did at this bank since the last one that saved anything."""
        account = self._accounts[bank]
        account.busy = False
        account.fruitless += 1
        return account.fruitless

    def give_up(self, bank: int) -> None:
        """Nobody is to try this bank again now; others may."""
        account = self._accounts[bank]
        self._take_back(account)
        self._release(account)

    def left(self) -> list[RunConfig]:
        """Runs that other processes were at, or had just finished."""
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
        """What the last attempt reported and did not finish does not count: the next one begins at its checkpoints."""
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
        """So many seconds between checkpoints that writing those of all runs under way leaves time for the rest."""
        cost = self._spent / max(1, self._checkpoints)
        running = sum(len(account.open) for account in self._accounts if account.busy)
        return max(self._pause, cost * running / SHARE)


class WorkerLink:
    """Link a worker to the server: to its trainer this is a store of runs, and whom it reports to.

    ``ask(method, *arguments)`` calls a method of the server, wherever that is, and waits for what it gives.
    """

    def __init__(self, ask: Callable[..., Any], attempt: BankAttempt) -> None:
        self._ask = ask
        self._attempt = attempt
        self._news: list[TrainingProgress] = []
        self._answered_at = -np.inf
        self._answer = Instructions(False, np.inf, 0.0)

    def begin(self) -> list[RunConfig]:
        """The runs to train."""
        configs: list[RunConfig] = self._ask("begin", self._attempt, sopool.__version__)
        return configs

    def end(self) -> None:
        """Through with it."""
        self._pulse()
        self._ask("end", self._attempt)

    def report(self, progress: TrainingProgress) -> None:
        """Said at the next pulse."""
        self._news.append(progress)

    def stop(self) -> bool:
        """Whether to stop."""
        return self._told().stop

    def pause(self) -> float:
        """Seconds between checkpoints."""
        return self._told().pause

    def claim(self, config: RunConfig) -> AbstractContextManager[bool]:
        """The server has claimed all that it hands out."""
        return nullcontext(True)

    def load(self, config: RunConfig) -> None:
        """What is finished is not handed out."""

    def save(self, run: Run) -> None:
        """Through the server."""
        self._ask("save", self._attempt, run)

    def save_checkpoint(
        self, config: RunConfig, arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any]
    ) -> None:
        """Through the server, as plain arrays."""
        plain = {name: torch.as_tensor(array).detach().cpu().numpy() for name, array in arrays.items()}
        self._ask("save_checkpoint", self._attempt, config, plain, facts)

    def load_checkpoint(self, config: RunConfig) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Likewise."""
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
