"""What a protocol reports."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sopool.models.config import Setting


class Stop(NamedTuple):
    """A run that did not reach its last epoch."""

    fold: int
    setting: Setting
    repeat: int
    epoch: int
    """The one, from 1, in which the loss was no longer finite."""


@dataclass(frozen=True)
class Outcome:
    """What a protocol reports, in fractions. Everything in a tuple is in the order of the folds."""

    protocol: str
    optimistic: str
    """``optimistic`` or ``less optimistic`` where test folds helped to choose; empty where they did not."""
    folds: tuple[float, ...]
    """Accuracy of each test fold; the mean of its final runs under ``fair``."""
    epochs: int | tuple[int, ...] | tuple[tuple[int, ...], ...]
    """``single-epoch``: the one for all folds. ``per-fold-max``: one for each. ``fair``, or with several seeds: one for
    each run of each fold. Empty where nothing is trained in epochs."""
    setting: Setting | tuple[Setting, ...]
    """``fair``: one for each fold. Otherwise the one that was best; for each fold and seed where seeds differ in that.
    Empty where it is not a network's."""
    balanced_accuracy: tuple[float, ...]
    roc_auc: tuple[float | None, ...]
    """None where the fold lacks a class, or a run has nothing to show."""
    repeats: int = 1
    """Runs for each fold, averaged within it."""
    stopped: tuple[Stop, ...] = ()
    """Among all the runs looked at, not only those of the setting that was best."""

    @property
    def mean(self) -> float:
        """Over folds."""
        return float(np.mean(self.folds))

    @property
    def std(self) -> float:
        """Over folds, with ``ddof=0``, as the published figures: the root of the mean squared deviation."""
        return float(np.std(self.folds, ddof=0))

    def to_json(self) -> dict[str, Any]:
        """All of it, plain."""
        if isinstance(self.setting, Setting):
            setting: Any = self.setting._asdict()
        else:
            setting = [each._asdict() for each in self.setting]
        return {
            "protocol": self.protocol,
            "optimistic": self.optimistic,
            "mean": self.mean,
            "std": self.std,
            "ddof": 0,
            "folds": list(self.folds),
            "balanced_accuracy": list(self.balanced_accuracy),
            "roc_auc": list(self.roc_auc),
            "repeats": self.repeats,
            "epochs": np.array(self.epochs).tolist(),
            "setting": setting,
            "stopped": [stop._asdict() | {"setting": stop.setting._asdict()} for stop in self.stopped],
        }


def average(outcomes: Sequence[Outcome]) -> Outcome:
    """What several seeds gave on the same folds, averaged within each."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    areas = zip(*(one.roc_auc for one in outcomes), strict=True)
    settings = {one.setting for one in outcomes}
    return replace(
        first,
        folds=_means([one.folds for one in outcomes]),
        epochs=tuple(tuple(map(int, fold)) for fold in np.hstack([_epochs(one) for one in outcomes]) if fold.size),
        setting=first.setting if len(settings) == 1 else tuple(one for each in outcomes for one in _settings(each)),
        balanced_accuracy=_means([one.balanced_accuracy for one in outcomes]),
        roc_auc=tuple(None if None in fold else float(np.mean(np.array(fold, float))) for fold in areas),
        repeats=sum(one.repeats for one in outcomes),
        stopped=tuple(stop for one in outcomes for stop in one.stopped),
    )


def _means(seeds: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(float(mean) for mean in np.mean(seeds, axis=0))


def _epochs(outcome: Outcome) -> np.ndarray:
    """[folds, runs]."""
    if isinstance(outcome.epochs, int):
        return np.full((len(outcome.folds), 1), outcome.epochs)
    return np.array(outcome.epochs).reshape(len(outcome.folds), -1)


def _settings(outcome: Outcome) -> tuple[Setting, ...]:
    """One for each fold."""
    return (outcome.setting,) * len(outcome.folds) if isinstance(outcome.setting, Setting) else outcome.setting


def describe_settings(*settings: Setting) -> str:
    """A setting in words, or several that were chosen from."""
    values = [dict.fromkeys(f"{value:g}" for value in some) for some in zip(*settings, strict=True)]
    names = ("hidden", "batch", "lr", "dropout")
    return ", ".join(f"{name} {' or '.join(some)}" for name, some in zip(names, values, strict=True))
