"""Train banks of models with checkpoints, so that interrupted training continues and gives the same results."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np
import torch

from sopool._runtime.environment import environment, peak_memory
from sopool._runtime.out_of_memory import oversized, shortage
from sopool.errors import ResourceError
from sopool.training.bank.bank import Bank, ModelState, learning_rate
from sopool.training.bank.batching import GraphTables
from sopool.training.bank.capture import free_memory
from sopool.training.checkpoints import CHECKPOINT_SECONDS as CHECKPOINT_SECONDS
from sopool.training.checkpoints import Checkpoints, join_states, restore_checkpoint, save_checkpoints
from sopool.training.protocols.outcome import describe_settings
from sopool.training.recorder import Recorder, best_weights
from sopool.training.run_splits import Split, Splitter
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.schema import output_type


class TrainingProgress(NamedTuple):
    """A report of progress: a bank finished an epoch, or runs were found complete or partly trained."""

    models: int
    epochs: int
    """How many epochs each of the models advanced by; negative if earlier progress no longer counts."""
    score: float | None = None
    """The mean score of the models on the graphs that are scored at every epoch; None if it is not known."""
    finished: int = 0
    """The number of runs that are now complete."""
    stopped: tuple[str, ...] = ()
    """Messages about runs that were stopped because their loss was not finite."""
    where: str = ""
    """The machines in use, as text; empty if that did not change."""
    graphs: int = 0
    """The number of graphs that all of the models together were trained on."""


Report = Callable[[TrainingProgress], None]


class Runs(Checkpoints, Protocol):
    """The interface of a store of runs that a trainer needs, such as :class:`~sopool.training.runs.store.RunStore`."""

    def claim(self, config: RunConfig) -> AbstractContextManager[bool]:
        """Claim the run for the duration of a ``with`` block; the block's value is False if another process has it."""

    def load(self, config: RunConfig) -> Run | None:
        """Return a finished run; None if there is none."""

    def save(self, run: Run) -> None:
        """Store a finished run."""


@dataclass(frozen=True)
class Trainer:
    """Train runs on one data set and one device, and store them.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import AttributeEncoder, make_agreement
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.bank.batching import GraphTables
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.store import RunStore
        >>> graphs = make_agreement(20)
        >>> tables = GraphTables.build(graphs, AttributeEncoder().fit(graphs).transform(graphs))
        >>> shared = {"data": "agreement", "fingerprint": "0", "encoder": "", "model": ModelConfig(hidden=4)}
        >>> configs = [RunConfig(**shared, fold=fold, folds=2, epochs=2, steps=1, batch_size=5) for fold in range(2)]
        >>> with TemporaryDirectory() as folder:
        ...     left = Trainer(tables, RunStore(folder)).train(configs)
        ...     run = RunStore(folder).load(configs[0])
        >>> left, run.curves["test_accuracy"].shape
        ([], (2,))
    """

    tables: GraphTables
    """The graphs, on the device to train on."""
    store: Runs
    """Where finished runs and checkpoints are stored."""
    report: Report = lambda _: None
    """Called with a :class:`TrainingProgress` after each epoch."""
    stop: Callable[[], bool] = lambda: False
    """Called after each epoch; if it returns True, checkpoints are written and training ends."""
    pause: Callable[[], float] = lambda: CHECKPOINT_SECONDS
    """Returns the number of seconds between checkpoints."""

    @property
    def device(self) -> torch.device:
        """The device of the graphs."""
        return self.tables.device

    def train(self, configs: Sequence[RunConfig]) -> list[RunConfig]:
        """Train runs of one shape; return those that were left out because another process trains or has finished them.

        If the device has not enough memory for all of them, they are trained in two halves, one after the other.
        """
        done = _Done(self.report)
        try:
            return replace(self, report=done)._together(configs)
        except RuntimeError as error:
            short = shortage(error)
            if short is None:
                raise
            if len(configs) == 1:
                raise ResourceError(_too_large(configs[0], self.tables, short)) from error
        free_memory()  # after the block: the error kept the bank alive
        self.report(done.taken_back(configs[0].epochs))
        left = self.train(configs[::2])
        return left if self.stop() else left + self.train(configs[1::2])

    def _together(self, configs: Sequence[RunConfig]) -> list[RunConfig]:
        objective, truth = self.tables.goal
        splitter = Splitter.of(objective, truth.cpu().numpy(), self.tables.division)
        with ExitStack() as claims:
            mine = [config for config in configs if claims.enter_context(self.store.claim(config))]
            mine = [config for config in mine if self.store.load(config) is None]
            started = [(config, *self._begin(config, splitter(config))) for config in mine]
            started.sort(key=lambda item: item[2])
            for epoch, together in groupby(started, key=lambda item: item[2]):
                members = list(together)
                self._train([item[1] for item in members], [item[3] for item in members], epoch)
                if self.stop():
                    break
            return [config for config in configs if config not in mine]

    def _begin(self, config: RunConfig, split: Split) -> tuple[Recorder, int, ModelState | None]:
        """Return a run's recorder, its finished epochs and its state, all from its checkpoint if there is one."""
        objective, truth = self.tables.goal
        recorder = Recorder(config, split, objective, truth.cpu().numpy())
        epoch, state = restore_checkpoint(self.store, recorder, self.tables)
        if state is not None:
            self.report(TrainingProgress(1, epoch))
        return recorder, epoch, state

    def _train(self, recorders: list[Recorder], states: list[ModelState | None], epoch: int) -> None:
        """Train runs that are at the same epoch."""
        bank = self._bank(recorders, join_states(states), epoch)
        seen = time.monotonic()
        while recorders and bank.epoch < bank.configs[0].epochs:
            lost = self._epoch(bank, recorders)
            if lost:
                kept = [m for m in range(len(recorders)) if m not in lost]
                self._finish(bank, recorders, lost)
                recorders = [recorders[m] for m in kept]
                bank = bank.keep(kept) if kept else bank
            if bank.epoch == bank.configs[0].epochs:
                break
            stopping = self.stop()
            if stopping or time.monotonic() - seen > self.pause():
                save_checkpoints(self.store, bank, recorders)
                seen = time.monotonic()
            if stopping:
                return
        self._finish(bank, recorders, range(len(recorders)))

    def _bank(self, recorders: list[Recorder], state: ModelState | None, epoch: int) -> Bank:
        return Bank(
            self.tables,
            [recorder.config for recorder in recorders],
            [recorder.split for recorder in recorders],
            state,
            epoch,
        )

    def _epoch(self, bank: Bank, recorders: list[Recorder]) -> list[int]:
        """Train and score one epoch; return the models whose loss is no longer finite."""
        start = time.perf_counter()
        epoch = bank.epoch
        losses = bank.run_epoch()
        every = bank.scores([recorder.graphs for recorder in recorders])
        seconds = (time.perf_counter() - start) / len(recorders)
        values, statistics = bank.shown
        for m, (recorder, loss, scores) in enumerate(zip(recorders, losses, every, strict=True)):
            rate = learning_rate(recorder.config, epoch)
            weights = (values[m], statistics[m])
            recorder.record(epoch, float(loss), scores, weights, learning_rate=rate, seconds=seconds)
        lost = [m for m, recorder in enumerate(recorders) if recorder.stopped is not None]
        kept = [recorder for recorder in recorders if recorder.stopped is None]
        seen = [recorder.curves[f"{recorder.looked_at}_{recorder.config.metric}"][epoch] for recorder in kept]
        notes = tuple(_describe(recorders[m]) for m in lost)
        score = float(np.mean(seen)) if seen else None
        graphs = len(recorders) * bank.steps * bank.batch_size
        self.report(TrainingProgress(len(recorders), 1, score, 0, notes, graphs=graphs))
        return lost

    def _finish(self, bank: Bank, recorders: list[Recorder], which: Iterable[int]) -> None:
        """Make the predictions that are needed only at the end, and save the runs."""
        which = list(which)
        if not which:
            return
        facts = environment(str(bank.device)) | {"peak_memory": peak_memory(str(bank.device))}
        predictions = self._predictions(bank.keep(which), [recorders[m] for m in which])
        for m, one in zip(which, predictions, strict=True):
            self.store.save(recorders[m].finish(one, facts))
        left = sum(bank.configs[0].epochs - bank.epoch for m in which)
        self.report(TrainingProgress(1, left, finished=len(which)))

    def _predictions(self, bank: Bank, recorders: list[Recorder]) -> list[dict[str, np.ndarray]]:
        """Predict the validation graphs, and the test graphs where required, at each run's best epoch."""
        out: list[dict[str, np.ndarray]] = [{} for _ in recorders]
        ready = [m for m, recorder in enumerate(recorders) if recorder.best]
        if not ready:
            return out
        then = ModelState.start(*best_weights([recorders[m] for m in ready], bank.device))
        small = self._bank([recorders[m] for m in ready], then, bank.epoch)
        parts = ("validation", "test") if bank.configs[0].looks == "chosen" else ("validation",)
        for part in parts:
            graphs = [getattr(recorders[m].split, part) for m in ready]
            for m, numbers, scores in zip(ready, graphs, small.scores(graphs), strict=True):
                out[m] |= {f"{part}_graphs": numbers, f"{part}_logits": scores.astype(output_type(bank.configs[0]))}
        return out


class _Done:
    """Count the reported progress, and pass it on."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._epochs = 0
        self._finished = 0

    def __call__(self, progress: TrainingProgress) -> None:
        self._epochs += progress.models * progress.epochs
        self._finished += progress.finished
        self._report(progress)

    def taken_back(self, epochs: int) -> TrainingProgress:
        """Return a report that takes back the progress of unfinished runs, which start again at their checkpoints."""
        return TrainingProgress(1, self._finished * epochs - self._epochs)


def _too_large(config: RunConfig, tables: GraphTables, short: str) -> str:
    elsewhere = "" if tables.device.type == "cpu" else ", or the CPU"
    advice = oversized(tables.node_ptr.diff(), config.batch_size)
    advice = advice or f"Use a smaller batch size, width or rank{elsewhere}."
    return (
        f"there is not enough memory on {tables.device} for a single model ({config.model.pool_name}, hidden "
        f"{config.model.hidden}, batch size {config.batch_size}): {short}. {advice} Finished runs are kept."
    )


def _describe(recorder: Recorder) -> str:
    config = recorder.config
    where = f"{config.model.pool_name}, fold {config.fold + 1}, {describe_settings(config.setting)}"
    return f"{where}: the loss is not finite in epoch {(recorder.stopped or 0) + 1}, so this run was stopped."
