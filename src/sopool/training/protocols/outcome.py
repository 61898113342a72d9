"""The result of an evaluation protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sopool.models.config import Setting


class Stop(NamedTuple):
    """A run that was stopped before its last epoch."""

    fold: int
    setting: Setting
    repeat: int
    epoch: int
    """The epoch, from 1, in which the loss was no longer finite."""


@dataclass(frozen=True)
class Outcome:
    """The result of a protocol; accuracies are fractions, and tuples are in the order of the folds.

    Examples:
        >>> from sopool.models.config import Setting
        >>> from sopool.training.protocols.protocols import Outcome
        >>> outcome = Outcome(
        ...     protocol="fair", optimistic="", folds=(0.75, 0.25), epochs=((3,), (8,)), setting=(Setting(), Setting()),
        ...     balanced_accuracy=(0.75, 0.25), roc_auc=(None, None),
        ... )
        >>> outcome.mean, outcome.std
        (0.5, 0.25)
    """

    protocol: str
    """The name of the protocol."""
    optimistic: str
    """``"optimistic"`` or ``"less optimistic"`` if test folds were used for a choice; empty otherwise."""
    folds: tuple[float, ...]
    """The accuracy on each test fold; under ``fair`` the mean of the fold's final runs."""
    epochs: int | tuple[int, ...] | tuple[tuple[int, ...], ...]
    """The chosen epochs, from 1. ``single-epoch``: one for all folds. ``per-fold-max``: one for each fold. ``fair``, or
    several seeds: one for each run of each fold. Empty for models that are not trained in epochs."""
    setting: Setting | tuple[Setting, ...]
    """The hyperparameters. ``fair``: one setting for each fold. Otherwise the best setting, or one for each fold and
    seed if seeds differ in it. Empty for models that are not networks."""
    balanced_accuracy: tuple[float, ...]
    """The balanced accuracy on each test fold."""
    roc_auc: tuple[float | None, ...]
    """The area under the ROC curve on each test fold; None if the fold lacks a class or a run has no result."""
    repeats: int = 1
    """The number of runs that are averaged within each fold."""
    stopped: tuple[Stop, ...] = ()
    """The runs that were stopped, among all that were considered and not only those of the best setting."""

    @property
    def mean(self) -> float:
        """The mean accuracy over the folds."""
        return float(np.mean(self.folds))

    @property
    def std(self) -> float:
        """The standard deviation of the accuracy over the folds, with ``ddof=0`` as in the published results."""
        return float(np.std(self.folds, ddof=0))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
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
    """Return the average of several seeds on the same folds, taken within each fold."""
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
    """Return the chosen epochs ``[folds, runs]``."""
    if isinstance(outcome.epochs, int):
        return np.full((len(outcome.folds), 1), outcome.epochs)
    return np.array(outcome.epochs).reshape(len(outcome.folds), -1)


def _settings(outcome: Outcome) -> tuple[Setting, ...]:
    """Return one setting for each fold."""
    return (outcome.setting,) * len(outcome.folds) if isinstance(outcome.setting, Setting) else outcome.setting


def describe_settings(*settings: Setting) -> str:
    """Describe one setting, or the values of several settings, as text."""
    values = [dict.fromkeys(f"{value:g}" for value in some) for some in zip(*settings, strict=True)]
    names = ("hidden", "batch", "lr", "dropout")
    return ", ".join(f"{name} {' or '.join(some)}" for name, some in zip(names, values, strict=True))
