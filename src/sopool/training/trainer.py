"""Train banks to the end, with checkpoints: what was interrupted goes on, and ends with the same numbers."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from sopool._runtime.environment import environment, peak_memory
from sopool._runtime.out_of_memory import oversized, shortage
from sopool.errors import ResourceError, UserError
from sopool.training.bank.bank import Bank, ModelState, layout_of, learning_rate
from sopool.training.bank.batching import GraphTables
from sopool.training.bank.capture import free_memory
from sopool.training.protocols.outcome import describe_settings
from sopool.training.recorder import Recorder, best_weights
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.schema import check_checkpoint

CHECKPOINT_SECONDS = 20.0


class TrainingProgress(NamedTuple):
    """One epoch of a bank is done, or some of its runs were found further on."""

    models: int
    epochs: int
    """Epochs that each of the models moved on by."""
    accuracy: float | None = None
    """On the graphs that are looked at, averaged over the models."""
    finished: int = 0
    """Runs that are complete now."""
    stopped: tuple[str, ...] = ()
    """What to say about runs that were given up."""
    where: str = ""
    """Who is at work, in words, where that changes."""


Report = Callable[[TrainingProgress], None]


class Runs(Protocol):
    """What a trainer asks of a store: :class:`~sopool.training.runs.store.RunStore`, or a way to one elsewhere."""

    def claim(self, config: RunConfig) -> AbstractContextManager[bool]:
        """Whether the run is ours, for the block."""

    def load(self, config: RunConfig) -> Run | None:
        """A finished run."""

    def save(self, run: Run) -> None:
        """Keep a finished run."""

    def save_checkpoint(
        self, config: RunConfig, arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any]
    ) -> None:
        """Keep where a run stands."""

    def load_checkpoint(self, config: RunConfig) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Where a run stood."""


@dataclass(frozen=True)
class Trainer:
    """Trains runs on one data set and device, and keeps them in a store."""

    tables: GraphTables
    store: Runs
    report: Report = lambda _: None
    stop: Callable[[], bool] = lambda: False
    """Asked after each epoch; if so, checkpoints are written and training ends."""
    pause: Callable[[], float] = lambda: CHECKPOINT_SECONDS
    """Seconds between checkpoints."""

    @property
    def device(self) -> torch.device:
        """Where the graphs are."""
        return self.tables.device

    def train(self, configs: Sequence[RunConfig]) -> list[RunConfig]:
        """Train runs of one shape; those that another process is at, or has just finished, are left, and given back.

        Where the device has no room for all of them, one half is trained after the other.
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
        free_memory()  # past the block: the error held on to the bank
        self.report(done.taken_back(configs[0].epochs))
        left = self.train(configs[::2])
        return left if self.stop() else left + self.train(configs[1::2])

    def _together(self, configs: Sequence[RunConfig]) -> list[RunConfig]:
        splitter = Splitter(self.tables.labels.cpu().numpy())
        with ExitStack() as claims:
            mine = [config for config in configs if claims.enter_context(self.store.claim(config))]
            mine = [config for config in mine if self.store.load(config) is None]
            started = [(config, *self._begin(config, splitter)) for config in mine]
            started.sort(key=lambda item: item[2])
            for epoch, together in groupby(started, key=lambda item: item[2]):
                members = list(together)
                self._train([item[1] for item in members], [item[3] for item in members], epoch)
                if self.stop():
                    break
            return [config for config in configs if config not in mine]

    def _begin(self, config: RunConfig, splitter: Splitter) -> tuple[Recorder, int, ModelState | None]:
        """A run's recorder, the epochs it has behind it and its state: from its checkpoint, if there is one."""
        recorder = Recorder(config, splitter(config), splitter.labels, self.tables.classes)
        saved = self.store.load_checkpoint(config)
        if saved is None:
            return recorder, 0, None
        arrays, facts = saved
        layout = layout_of(config, self.tables.features.width, self.tables.classes)
        if facts["layout"] != layout.name:
            return recorder, 0, None  # written by a version whose models look otherwise
        try:
            sizes = (layout.parameters, layout.statistics, len(recorder.split.test), self.tables.classes)
            check_checkpoint(config, arrays, facts, sizes)
        except UserError as error:
            warnings.warn(f"the checkpoint of run {config.key} cannot be used: {error} It starts over.", stacklevel=2)
            return recorder, 0, None
        recorder.restore(arrays, facts["chosen_epoch"])
        state = ModelState(*(arrays[name].unsqueeze(0).to(self.device) for name in ModelState.__annotations__))
        self.report(TrainingProgress(1, facts["epoch"]))
        return recorder, facts["epoch"], state

    def _train(self, recorders: list[Recorder], states: list[ModelState | None], epoch: int) -> None:
        """Train runs that are at the same epoch."""
        bank = self._bank(recorders, _join(states), epoch)
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
                self._checkpoint(bank, recorders)
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
        """Train and look; the models whose loss is not finite any more."""
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
        accuracies = [recorder.curves[f"{recorder.looked_at}_accuracy"][epoch] for recorder in kept]
        notes = tuple(_describe(recorders[m]) for m in lost)
        self.report(TrainingProgress(len(recorders), 1, float(np.mean(accuracies)) if accuracies else None, 0, notes))
        return lost

    def _checkpoint(self, bank: Bank, recorders: list[Recorder]) -> None:
        layout = layout_of(bank.configs[0], self.tables.features.width, self.tables.classes)
        for m, recorder in enumerate(recorders):
            state = {name: tensor[m] for name, tensor in vars(bank.state).items()}
            facts = {"epoch": bank.epoch, "chosen_epoch": recorder.chosen_epoch, "layout": layout.name}
            self.store.save_checkpoint(recorder.config, state | recorder.arrays(), facts)

    def _finish(self, bank: Bank, recorders: list[Recorder], which: Iterable[int]) -> None:
        """Score what is scored at the end only, and save."""
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
        """Of the validation graphs, and of the test graphs where it is due, at each run's best epoch."""
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
                out[m] |= {f"{part}_graphs": numbers, f"{part}_logits": scores.astype(np.float32)}
        return out


class _Done:
    """Counts what is reported, and passes it on."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._epochs = 0
        self._finished = 0

    def __call__(self, progress: TrainingProgress) -> None:
        self._epochs += progress.models * progress.epochs
        self._finished += progress.finished
        self._report(progress)

    def taken_back(self, epochs: int) -> TrainingProgress:
        """What does not count since it was not finished, of runs of so many epochs: it begins again at checkpoints."""
        return TrainingProgress(1, self._finished * epochs - self._epochs)


def _too_large(config: RunConfig, tables: GraphTables, short: str) -> str:
    elsewhere = "" if tables.device.type == "cpu" else ", or the CPU"
    advice = oversized(tables.node_ptr.diff(), config.batch_size)
    advice = advice or f"Take a smaller batch size, width or rank{elsewhere}."
    return (
        f"{tables.device} has no room for a single model ({config.model.pool_name}, hidden {config.model.hidden}, "
        f"batches of {config.batch_size}): {short}. {advice} Nothing finished is lost."
    )


def _join(states: Sequence[ModelState | None]) -> ModelState | None:
    """States of one model each as one; None if they have not begun."""
    known = [state for state in states if state is not None]
    if not known:
        return None
    return ModelState(*(torch.cat(tensors) for tensors in zip(*(vars(state).values() for state in known), strict=True)))


def _describe(recorder: Recorder) -> str:
    config = recorder.config
    where = f"{config.model.pool_name}, fold {config.fold + 1}, {describe_settings(config.setting)}"
    return f"the loss of {where} is not finite in epoch {(recorder.stopped or 0) + 1}: this run is stopped there."
