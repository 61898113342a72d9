"""The result of an evaluation protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from sopool.models.config import Setting
from sopool.objectives import METRICS

Scores = Mapping[str, tuple[float | None, ...]]
"""The scores on each test fold by the name of the metric."""


class Stop(NamedTuple):
    """A run that was stopped before its last epoch."""

    fold: int
    setting: Setting
    repeat: int
    epoch: int
    """The epoch, from 1, in which the loss was no longer finite."""


@dataclass(frozen=True)
class Outcome:
    """The result of a protocol; shares such as accuracies are fractions, and tuples are in the order of the folds.

    Examples:
        >>> from sopool.models.config import Setting
        >>> from sopool.training.protocols.protocols import Outcome
        >>> chosen = (Setting(), Setting())
        >>> outcome = Outcome("fair", optimistic="", folds=(0.75, 0.25), epochs=((3,), (8,)), setting=chosen)
        >>> outcome.mean, outcome.std
        (0.5, 0.25)
    """

    protocol: str
    """The name of the protocol."""
    optimistic: str
    """``"optimistic"`` or ``"less optimistic"`` if test folds were used for a choice; empty otherwise."""
    folds: tuple[float, ...]
    """The score on each test fold by :attr:`metric`; under ``fair`` the mean of the fold's final runs."""
    epochs: int | tuple[int, ...] | tuple[tuple[int, ...], ...]
    """The chosen epochs, from 1. ``single-epoch``: one for all folds. ``per-fold-max``: one for each fold. ``fair``, or
    several seeds: one for each run of each fold. Empty for models that are not trained in epochs."""
    setting: Setting | tuple[Setting, ...]
    """The hyperparameters. ``fair``: one setting for each fold. Otherwise the best setting, or one for each fold and
    seed if seeds differ in it. Empty for models that are not networks."""
    scores: Scores = field(default_factory=dict)
    """The scores on each test fold by other metrics, by name; None if one cannot be computed, for example if the fold
    lacks a class or a run has no result."""
    repeats: int = 1
    """The number of runs that are averaged within each fold."""
    stopped: tuple[Stop, ...] = ()
    """The runs that were stopped, among all that were considered and not only those of the best setting."""
    metric: str = "accuracy"
    """The name of the metric that epochs and settings were chosen by."""
    targets: Mapping[str, Scores] = field(default_factory=dict)
    """The scores of each of several targets by all metrics, by the name of the target; errors have its unit. Empty if
    there is a single target."""

    @property
    def sign(self) -> float:
        """1 if a larger score is better, -1 otherwise."""
        return METRICS[self.metric].sign

    @property
    def signed(self) -> tuple[float, ...]:
        """The scores on each test fold, negative where lower is better, so that larger ones are always better."""
        return tuple(self.sign * fold for fold in self.folds)

    @property
    def mean(self) -> float:
        """The mean score over the folds."""
        return float(np.mean(self.folds))

    @property
    def signed_mean(self) -> float:
        """The mean score over the folds, negative where lower is better, so that a larger one is always better."""
        return self.sign * self.mean

    @property
    def std(self) -> float:
        """The standard deviation of the score over the folds, with ``ddof=0`` as in the published results."""
        return float(np.std(self.folds, ddof=0))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        if isinstance(self.setting, Setting):
            setting: Any = self.setting.to_json()
        else:
            setting = [each.to_json() for each in self.setting]
        return {
            "protocol": self.protocol,
            "metric": self.metric,
            "optimistic": self.optimistic,
            "mean": self.mean,
            "std": self.std,
            "ddof": 0,
            "folds": list(self.folds),
            **{name: list(values) for name, values in self.scores.items()},
            "repeats": self.repeats,
            "epochs": np.array(self.epochs).tolist(),
            "setting": setting,
            "stopped": [stop._asdict() | {"setting": stop.setting.to_json()} for stop in self.stopped],
            **({"targets": _plain(self.targets)} if self.targets else {}),
        }


def average(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the average of several seeds on the same folds, taken within each fold."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    settings = {one.setting for one in outcomes}
    return replace(
        first,
        folds=_means([one.folds for one in outcomes]),
        epochs=tuple(tuple(map(int, fold)) for fold in np.hstack([_epochs(one) for one in outcomes]) if fold.size),
        setting=first.setting if len(settings) == 1 else tuple(one for each in outcomes for one in _settings(each)),
        scores=average_scores([one.scores for one in outcomes]),
        targets={name: average_scores([one.targets[name] for one in outcomes]) for name in first.targets},
        repeats=sum(one.repeats for one in outcomes),
        stopped=tuple(stop for one in outcomes for stop in one.stopped),
    )


def _means(seeds: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(float(mean) for mean in np.mean(seeds, axis=0))


def average_scores(runs: Sequence[Scores]) -> Scores:
    """Return the mean of several runs' scores on each fold, by the metrics that all have; None if one has no score."""
    common = [name for name in runs[0] if all(name in one for one in runs)]
    return {name: _each([one[name] for one in runs]) for name in common}


def _plain(targets: Mapping[str, Scores]) -> dict[str, dict[str, list[float | None]]]:
    return {name: {metric: list(values) for metric, values in scores.items()} for name, scores in targets.items()}


def _each(seeds: Sequence[Sequence[float | None]]) -> tuple[float | None, ...]:
    folds = zip(*seeds, strict=True)
    return tuple(None if None in fold else float(np.mean(np.array(fold, float))) for fold in folds)


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
    values: dict[str, dict[str, None]] = {}
    for setting in settings:
        for name, value in setting.to_json().items():
            values.setdefault(shown_name(name).removesuffix("_size"), {})[value_text(value)] = None
    return ", ".join(f"{name} {' or '.join(some)}" for name, some in values.items())


def brief_setting(setting: Setting) -> str:
    """Describe a setting in few words: ``32/32/0.01/0.5`` for a network, ``size 3`` for another system."""
    numbers = "/".join(map(value_text, setting[:4])) if setting.is_network else ""
    options = ", ".join(f"{shown_name(name)} {value_text(value)}" for name, value in setting.options)
    return ", ".join(filter(None, (numbers, options))) or "-"


def shown_name(name: str) -> str:
    """Return the name of a hyperparameter as text; stored results have one in another spelling."""
    return "normalized" if name == "normalised" else name


def value_text(value: Any) -> str:
    """Return the value of a hyperparameter as text, such as ``0.01``, ``yes`` or ``word``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
