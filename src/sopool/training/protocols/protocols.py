"""Compute the reported scores from finished runs: one function for each protocol.

All are pure functions of recorded runs and true values. Folds are counted from 0, as in configurations; in results
epochs are counted from 1, and in messages folds are, too. A run that was stopped because its loss was no longer finite
counts with the epochs before. One that was stopped in its first epoch has no result: its epoch is 0, its accuracy
counts as 0, and :attr:`Outcome.stopped` names it. No other score stands for a missing result, which is an error.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sopool.errors import DataError
from sopool.models.config import Setting
from sopool.objectives import METRICS, Objective, SingleLabel
from sopool.objectives.base import average as average_of
from sopool.training.protocols.outcome import Outcome, Scores, Stop, average_scores, describe_settings
from sopool.training.runs.config import Looks, RunConfig
from sopool.training.runs.record import Run

__all__ = ["PROTOCOLS", "Outcome", "Protocol", "choose_settings", "fair", "last_epoch", "per_fold_max", "single_epoch"]

DIGITS = 12
"""The number of decimals to which means are compared, so that rounding does not decide between equal ones."""


def per_fold_max(runs: Sequence[Run], truth: Any, objective: Objective | None = None) -> Outcome:
    """Return each fold's best test score over epochs, for the setting with the best mean of these over the folds.

    The authors' code reports this. Both epoch and setting are chosen on the test folds, so the result is optimistic.

    Args:
        runs: The runs of all settings and folds, with ``looks="test"``.
        truth: The true values of every graph: class numbers ``[G]``, or targets ``[G, T]``.
        objective: What is predicted. Default: None, one class per graph.

    Examples:
        >>> import numpy as np
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.protocols.protocols import per_fold_max
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.record import Run
        >>> labels = np.array([0, 1, 0, 1])
        >>> right = 4.0 * np.eye(2)
        >>> runs = []
        >>> for fold in range(2):
        ...     config = RunConfig("toy", "0", "", ModelConfig(), fold, folds=2, epochs=2)
        ...     curves = {"test_accuracy": np.array([0.5, 1.0]), "test_loss": np.ones(2)}
        ...     logits = np.stack([np.zeros((2, 2)), right])
        ...     runs.append(Run(config, curves, {"test_graphs": np.array([0, 1]) + 2 * fold, "test_logits": logits}))
        >>> outcome = per_fold_max(runs, labels)
        >>> outcome.folds, outcome.epochs
        ((1.0, 1.0), (2, 2))
    """
    grid = _grid(runs, "test")
    curves = {setting: _signed(folds) for setting, folds in grid.items()}
    # Without a result an accuracy counts as 0. No score stands for the lack of others, so such a setting comes last.
    least = 0.0 if _counts_without_result(runs[0].config) else -np.inf
    means = {setting: _highest(curve, least).mean().round(DIGITS) for setting, curve in curves.items()}
    best = max(means, key=means.__getitem__)
    epochs = [None if np.isnan(fold).all() else int(np.nanargmax(fold)) for fold in curves[best]]
    shown = [_show(run, epoch, truth, objective) for run, epoch in zip(grid[best], epochs, strict=True)]
    return _outcome("per-fold-max", shown, tuple(one.epoch for one in shown), best, runs)


def single_epoch(runs: Sequence[Run], truth: Any, objective: Objective | None = None) -> Outcome:
    """Return the test score at the epoch, and for the setting, with the best mean over folds.

    The earliest of several equal epochs is chosen. An epoch that some fold did not reach cannot be chosen.

    Args:
        runs: The runs of all settings and folds, with ``looks="test"``.
        truth: The true values of every graph: class numbers ``[G]``, or targets ``[G, T]``.
        objective: What is predicted. Default: None, one class per graph.

    Examples:
        >>> import numpy as np
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.protocols.protocols import single_epoch
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.record import Run
        >>> labels = np.array([0, 1, 0, 1])
        >>> runs = []
        >>> for fold in range(2):
        ...     config = RunConfig("toy", "0", "", ModelConfig(), fold, folds=2, epochs=2)
        ...     curves = {"test_accuracy": np.array([0.5, 0.5]), "test_loss": np.ones(2)}
        ...     predictions = {"test_graphs": np.array([0, 1]) + 2 * fold, "test_logits": np.zeros((2, 2, 2))}
        ...     runs.append(Run(config, curves, predictions))
        >>> outcome = single_epoch(runs, labels)
        >>> outcome.folds, outcome.epochs
        ((0.5, 0.5), 1)
    """
    grid = _grid(runs, "test")
    means = {setting: _signed(folds).mean(0).round(DIGITS) for setting, folds in grid.items()}
    means = {setting: curve for setting, curve in means.items() if not np.isnan(curve).all()}
    if not means:
        never = [_name(run.config) for run in runs if np.isnan(_signed([run])).all()]
        raise DataError(
            "single-epoch: no setting has an epoch that every fold reached with finite scores. No epoch at all was "
            f"reached by {'; '.join(never[:10]) or 'all folds together'}. Try a lower learning rate."
        )
    best = max(means, key=lambda setting: np.nanmax(means[setting]))
    epoch = int(np.nanargmax(means[best]))
    shown = [_show(run, epoch, truth, objective) for run in grid[best]]
    return _outcome("single-epoch", shown, epoch + 1, best, runs)


def last_epoch(runs: Sequence[Run], truth: Any, objective: Objective | None = None) -> Outcome:
    """Return the test score at the last epoch, for the setting with the best mean over folds.

    No epoch is chosen, as in the code of DGCNN; if there are several settings, one is chosen on the test folds. Of a
    fixed system, the last strength of its learner counts. A run that was stopped early counts with the epochs before.

    Args:
        runs: The runs of all settings and folds, with ``looks="test"``.
        truth: The true values of every graph: class numbers ``[G]``, or targets ``[G, T]``.
        objective: What is predicted. Default: None, one class per graph.

    Examples:
        >>> import numpy as np
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.protocols.protocols import last_epoch
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.record import Run
        >>> labels = np.array([0, 1, 0, 1])
        >>> runs = []
        >>> for fold in range(2):
        ...     config = RunConfig("toy", "0", "", ModelConfig(), fold, folds=2, epochs=2)
        ...     curves = {"test_accuracy": np.array([1.0, 0.5]), "test_loss": np.ones(2)}
        ...     logits = np.stack([4.0 * np.eye(2), np.zeros((2, 2))])
        ...     runs.append(Run(config, curves, {"test_graphs": np.array([0, 1]) + 2 * fold, "test_logits": logits}))
        >>> outcome = last_epoch(runs, labels)
        >>> outcome.folds, outcome.epochs
        ((0.5, 0.5), (2, 2))
    """
    grid = _grid(runs, "test")
    ends = {setting: [_last(curve) for curve in _signed(folds)] for setting, folds in grid.items()}
    least = 0.0 if _counts_without_result(runs[0].config) else -np.inf
    means = {}
    for setting, folds in grid.items():
        scores = zip(_signed(folds), ends[setting], strict=True)
        means[setting] = np.mean([least if end is None else curve[end] for curve, end in scores]).round(DIGITS)
    best = max(means, key=means.__getitem__)
    shown = [_show(run, epoch, truth, objective) for run, epoch in zip(grid[best], ends[best], strict=True)]
    outcome = _outcome("last-epoch", shown, tuple(one.epoch for one in shown), best, runs)
    return outcome if len(grid) > 1 else replace(outcome, optimistic="")  # nothing was chosen on the test folds


def choose_settings(runs: Sequence[Run]) -> dict[int, Setting]:
    """Return the best setting of each fold by the validation score at its chosen epoch: the first half of ``fair``.

    If several are equal, the one with the lowest validation loss there is chosen, then the first one in ``runs``.

    Args:
        runs: The runs of all settings and folds, with ``looks="validation"`` and ``repeat=0``.

    Examples:
        >>> import numpy as np
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.protocols.protocols import choose_settings
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.record import Run
        >>> shared = {"data": "toy", "fingerprint": "0", "encoder": "", "model": ModelConfig(), "folds": 2, "epochs": 1}
        >>> runs = []
        >>> for lr, accuracy in ((0.1, 0.5), (0.01, 0.75)):
        ...     for fold in range(2):
        ...         config = RunConfig(**shared, fold=fold, looks="validation", lr=lr)
        ...         curves = {"validation_accuracy": np.array([accuracy]), "validation_loss": np.ones(1)}
        ...         runs.append(Run(config, curves, {}, chosen_epoch=0))
        >>> {fold: setting.lr for fold, setting in choose_settings(runs).items()}
        {0: 0.01, 1: 0.01}
    """
    for run in runs:
        if run.config.repeat != 0:
            raise DataError(f"settings are chosen from runs with repeat 0, but {_name(run.config)} was given.")
    grid = _grid(runs, "validation")
    folds = zip(*grid.values(), strict=True)
    return {fold: min(candidates, key=_rank).config.setting for fold, candidates in enumerate(folds)}


def fair(runs: Sequence[Run], truth: Any, objective: Objective | None = None) -> Outcome:
    """Return the test score at the epoch chosen on held-out graphs, averaged over the final runs of each fold.

    Args:
        runs: The final runs, with ``looks="chosen"``, each at the setting that :func:`choose_settings` returned for its
            fold. Every fold needs the same repeats, from 1 to the highest one.
        truth: The true values of every graph: class numbers ``[G]``, or targets ``[G, T]``.
        objective: What is predicted. Default: None, one class per graph.

    Examples:
        >>> import numpy as np
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.protocols.protocols import fair
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.record import Run
        >>> labels = np.array([0, 1, 0, 1])
        >>> runs = []
        >>> for fold in range(2):
        ...     config = RunConfig("toy", "0", "", ModelConfig(), fold, folds=2, looks="chosen", repeat=1, epochs=1)
        ...     predictions = {"test_graphs": np.array([0, 1]) + 2 * fold, "test_logits": 4.0 * np.eye(2)}
        ...     runs.append(Run(config, {}, predictions, chosen_epoch=0))
        >>> fair(runs, labels).folds
        (1.0, 1.0)
    """
    _check(runs, "chosen")
    folds = runs[0].config.folds
    repeats = max(run.config.repeat for run in runs)
    table = {(run.config.fold, run.config.repeat): run for run in runs}
    wanted = [(fold, repeat) for fold in range(folds) for repeat in range(1, repeats + 1)]
    _complete("fair", {f"fold {fold + 1}, repeat {repeat}": (fold, repeat) in table for fold, repeat in wanted})
    if len(runs) != len(wanted):
        raise DataError(
            f"fair: {len(runs)} runs were given, but {folds} folds with repeats 1 to {repeats} need {len(wanted)}: "
            "some were given twice or have repeat 0."
        )
    settings = []
    shown = []
    epochs = []
    for fold in range(folds):
        final = [table[fold, repeat] for repeat in range(1, repeats + 1)]
        if len({run.config.setting for run in final}) > 1:
            raise DataError(f"fair: the final runs of fold {fold + 1} have different settings; expected the same one.")
        looks = [_show(run, run.chosen_epoch, truth, objective) for run in final]
        settings.append(final[0].config.setting)
        epochs.append(tuple(look.epoch for look in looks))
        shown.append(_average(looks))
    return _outcome("fair", shown, tuple(epochs), tuple(settings), runs, repeats)


@dataclass(frozen=True)
class Protocol:
    """A rule that turns runs into a reported score.

    Examples:
        >>> from sopool.training.protocols.protocols import PROTOCOLS
        >>> PROTOCOLS["fair"].looks
        ('validation', 'chosen')
    """

    outcome: Callable[[Sequence[Run], Any, Objective | None], Outcome]
    """The function that computes the result from runs, true values and the objective."""
    looks: tuple[Looks, ...]
    """The kinds of runs it needs, in the order of training, see :attr:`RunConfig.looks`; ``outcome`` takes the last
    kind."""
    optimistic: str
    """See :attr:`Outcome.optimistic`."""
    meaning: str
    """A description in one sentence."""
    on_request: bool = False
    """Whether it is left out unless it was requested by name."""


BEST = "at the hyperparameter setting with the best score by that rule"
PROTOCOLS = {
    "per-fold-max": Protocol(
        per_fold_max,
        ("test",),
        "optimistic",
        f"each fold at its own best epoch on its test graphs, {BEST}",
    ),
    "single-epoch": Protocol(
        single_epoch,
        ("test",),
        "less optimistic",
        f"all folds at the one epoch that is best on average, {BEST}",
    ),
    "last-epoch": Protocol(
        last_epoch,
        ("test",),
        "less optimistic",
        f"all folds at their last epoch, {BEST}",
        on_request=True,
    ),
    "fair": Protocol(
        fair, ("validation", "chosen"), "", "epoch and setting chosen on held-out training graphs, tested once"
    ),
}
"""The protocols by name.

Examples:
    >>> from sopool.training.protocols.protocols import PROTOCOLS
    >>> list(PROTOCOLS)
    ['per-fold-max', 'single-epoch', 'last-epoch', 'fair']
"""


class _Look(NamedTuple):
    """The scores on the test fold at one epoch of one run."""

    epoch: int
    score: float
    """The score by the metric of the run."""
    others: Scores
    """The scores by all other metrics, each in a tuple of one."""
    targets: Mapping[str, Scores]
    """The scores of each of several targets by all metrics."""


def _show(run: Run, epoch: int | None, truth: Any, objective: Objective | None) -> _Look:
    if objective is not None and (objective.task, objective.metric) != (run.config.task, run.config.metric):
        raise DataError(
            f"{_name(run.config)} is a {run.config.task} with the metric {run.config.metric}, but the objective is a "
            f"{objective.task} with {objective.metric}."
        )
    if epoch is None:
        if not _counts_without_result(run.config):
            raise DataError(f"{_name(run.config)} has no result, since its loss was not finite in the first epoch.")
        return _Look(0, 0.0, {}, {})
    graphs = run.predictions["test_graphs"]
    outputs = run.predictions["test_logits"]
    truth = np.asarray(truth)
    if graphs.max() >= len(truth):
        raise DataError(f"{len(truth)} labels were given, but {_name(run.config)} tests graph {graphs.max()}.")
    true = truth[graphs]
    width = outputs.shape[-1]
    if truth.ndim == 1 and true.max() >= width:
        raise DataError(
            f"{_name(run.config)} predicts {width} classes, numbered from 0, but a graph has class {true.max()}."
        )
    objective = objective or SingleLabel(tuple(range(width)), run.config.metric)
    if run.config.looks != "test":
        return _look(run, epoch, outputs, true, objective)
    look = _look(run, epoch, outputs[epoch], true, objective)
    score = float(METRICS[run.config.metric].sign * _signed([run])[0, epoch])
    # Predictions are stored in single precision, so rounding may change a prediction of a run in double precision.
    if run.config.precision == "float32" and not math.isclose(score, look.score, rel_tol=1e-5, abs_tol=1e-9):
        raise DataError(
            f"{_name(run.config)} has a {run.config.metric} of {score:.4f} in epoch {epoch + 1}, but its predictions "
            f"have {look.score:.4f}: its files, or the true values of the data set, have changed since it was written."
        )
    return look._replace(score=score)


def _look(run: Run, epoch: int, outputs: np.ndarray, truth: np.ndarray, objective: Objective) -> _Look:
    scores, targets = score_fold(objective, outputs, truth, _name(run.config))
    (score,) = scores.pop(objective.metric)
    return _Look(epoch + 1, score, scores, targets)


def score_fold(
    objective: Objective, outputs: np.ndarray, truth: np.ndarray, name: str
) -> tuple[dict[str, tuple[Any, ...]], dict[str, Scores]]:
    """Return the scores of one fold by all metrics, and those of each of several targets.

    Args:
        objective: What is predicted.
        outputs: The outputs for the test graphs, see :meth:`~sopool.objectives.Objective.outputs`.
        truth: Their true values.
        name: What was tested, for the error if the metric that chooses cannot be computed.
    """
    each = objective.score_targets(outputs, truth)
    scores: dict[str, tuple[Any, ...]] = {
        metric: (average_of(objective.comparable(metric, values)),) for metric, values in each.items()
    }
    if scores[objective.metric] == (None,):
        raise DataError(
            f"{name} has no {objective.chosen_by.title}: it cannot be computed from the true values of its "
            f"{len(truth)} test graphs. Use fewer folds or another metric."
        )
    targets: dict[str, Scores] = {
        str(target): {metric: (values[place],) for metric, values in each.items()}
        for place, target in enumerate(objective.targets)
    }
    return scores, targets


def _average(looks: list[_Look]) -> _Look:
    return _Look(
        0,
        float(np.mean([look.score for look in looks])),
        average_scores([look.others for look in looks]),
        {name: average_scores([look.targets[name] for look in looks]) for name in looks[0].targets},
    )


def _outcome(
    protocol: str,
    folds: list[_Look],
    epochs: int | tuple[int, ...] | tuple[tuple[int, ...], ...],
    setting: Setting | tuple[Setting, ...],
    runs: Sequence[Run],
    repeats: int = 1,
) -> Outcome:
    return Outcome(
        protocol=protocol,
        optimistic=PROTOCOLS[protocol].optimistic,
        folds=tuple(fold.score for fold in folds),
        epochs=epochs,
        setting=setting,
        scores=side_by_side([fold.others for fold in folds]),
        repeats=repeats,
        stopped=tuple(
            Stop(run.config.fold, run.config.setting, run.config.repeat, run.stopped + 1)
            for run in runs
            if run.stopped is not None
        ),
        metric=runs[0].config.metric,
        targets={name: side_by_side([fold.targets[name] for fold in folds]) for name in folds[0].targets},
    )


def side_by_side(folds: Sequence[Scores]) -> Scores:
    """Return the scores of all folds by each metric that any fold has; None where a fold has none."""
    names = dict.fromkeys(name for fold in folds for name in fold)
    return {name: tuple(fold.get(name, (None,))[0] for fold in folds) for name in names}


def _signed(runs: Sequence[Run]) -> np.ndarray:
    """Return the test scores ``[runs, epochs]``, negative where lower is better.

    NaN stands where a run was stopped or its scores are not finite.
    """
    curves = []
    for run in runs:
        metric = run.config.metric
        scores = np.array(run.curves[f"test_{metric}"], np.float64)
        scores[~np.isfinite(run.curves["test_loss"])] = np.nan
        if run.stopped is not None:
            scores[run.stopped :] = np.nan
        if metric == "accuracy" and run.config.task == "classification" and run.stopped != 0:
            # Restore exact fractions, whatever the precision of the stored curve.
            graphs = len(run.predictions["test_graphs"])
            scores = np.rint(scores * graphs) / graphs
        curves.append(METRICS[metric].sign * scores)
    return np.stack(curves)


def _counts_without_result(config: RunConfig) -> bool:
    """Return whether a run without a result counts as one that predicts everything wrongly, with a score of 0."""
    metric = METRICS[config.metric]
    return config.task == "classification" and metric.share and not metric.lower_is_better


def _highest(curve: np.ndarray, least: float) -> np.ndarray:
    """Return the best score of each fold ``[folds]``; a run without a result counts as ``least``."""
    none = np.isnan(curve).all(1)
    return np.where(none, least, np.nan_to_num(curve, nan=-np.inf).max(1))


def _last(curve: np.ndarray) -> int | None:
    """Return the last epoch that has a score; None if there is none."""
    there = np.flatnonzero(~np.isnan(curve))
    return int(there[-1]) if len(there) else None


def _rank(run: Run) -> tuple[float, float]:
    metric = METRICS[run.config.metric]
    if run.chosen_epoch is None:
        return np.inf, np.inf
    loss = float(run.curves["validation_loss"][run.chosen_epoch])
    score = float(run.curves[f"validation_{metric.name}"][run.chosen_epoch])
    return -metric.sign * score, loss if np.isfinite(loss) else np.inf


def _grid(runs: Sequence[Run], looks: Looks) -> dict[Setting, list[Run]]:
    """Return the runs of each setting in the order of the folds; raise unless each fold is there exactly once."""
    _check(runs, looks)
    table: dict[Setting, dict[int, Run]] = {}
    for run in runs:
        folds = table.setdefault(run.config.setting, {})
        if run.config.fold in folds:
            raise DataError(f"{_name(run.config)} was given twice; expected one run for each fold and setting.")
        folds[run.config.fold] = run
    every = range(runs[0].config.folds)
    there = {
        f"fold {i + 1}, {describe_settings(setting)}": i in folds for setting, folds in table.items() for i in every
    }
    _complete(f"runs with looks={looks!r}", there)
    return {setting: [folds[i] for i in every] for setting, folds in table.items()}


def _check(runs: Sequence[Run], looks: Looks) -> None:
    if not runs:
        raise DataError(f"no runs were given; expected runs with looks={looks!r}.")
    first = _experiment(runs[0].config)
    for run in runs:
        config = run.config
        if config.looks != looks:
            raise DataError(f"{_name(config)} has looks={config.looks!r}; expected runs with looks={looks!r}.")
        if not 0 <= config.fold < config.folds:
            raise DataError(f"{_name(config)} does not exist: there are only {config.folds} folds.")
        for key, value in _experiment(config).items():
            if value != first[key]:
                raise DataError(
                    f"runs of different experiments were given: {key} is {first[key]!r} in one, {value!r} in another."
                )


def _experiment(config: RunConfig) -> dict[str, Any]:
    """Return what all runs of a protocol must share, by the names of the fields."""
    shared = replace(config.experiment(), seed=0, encoder=config.encoder).to_json()
    model = shared.pop("model")
    return shared | {f"model.{key}": value for key, value in model.items()}


def _complete(what: str, there: dict[str, bool]) -> None:
    missing = [name for name, found in there.items() if not found]
    if missing:
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise DataError(f"{what}: {len(missing)} of {len(there)} are missing: {'; '.join(missing[:10])}{more}.")


def _name(config: RunConfig) -> str:
    return f"the run of fold {config.fold + 1}, {describe_settings(config.setting)}, repeat {config.repeat}"
