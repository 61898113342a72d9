"""The estimated scores of an estimator on new graphs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sopool.data.division import split_title
from sopool.objectives import METRICS, Objective, Task
from sopool.objectives.base import average
from sopool.report.grid import NONE, Cell, Grid, number_cell
from sopool.report.scores import score_cell, score_text, title_of

if TYPE_CHECKING:
    from sopool.estimator.estimate import Estimate
    from sopool.objectives.calibration import Calibration

ROUNDING = 1e-9
SHOWN: dict[Task, tuple[str, ...]] = {
    "classification": ("accuracy", "balanced_accuracy", "roc_auc"),
    "multi-label": ("roc_auc", "average_precision", "balanced_accuracy"),
    "regression": ("rmse", "mae", "r2", "spearman"),
}
"""The metrics that are shown if none are asked for."""
MOST = 3
"""The number of these that are shown of several targets."""
BASELINES: dict[Task, str] = {
    "classification": "the most frequent class",
    "multi-label": "the share of each label",
    "regression": "the mean of the training graphs",
}
"""What is always predicted by the baseline."""
TOO_FEW: dict[Task, str] = {
    "classification": "which lack a class",
    "multi-label": "which lack one of the two values or any",
    "regression": "which have too few known values",
}
"""Why a fold does not allow a score."""
WORDS = {
    "balanced_accuracy": "Balanced accuracy is the mean recall over the classes.",
    "roc_auc": "A ROC-AUC of 50 means random guessing; with several classes it is the mean over one-vs-rest.",
    "r2": "An R2 of 0 is that of predicting the mean, 1 is the best.",
}
"""Explanations of metrics for notes."""


def usual_metrics(objective: Objective) -> list[str]:
    """Return the metrics to show if none are asked for: the one that chooses, then the usual ones of the task."""
    usual = SHOWN[objective.task]
    if objective.targets:
        usual = usual[:MOST]  # a column for each
    return list(dict.fromkeys((objective.metric, *usual)))


def estimate_grid(found: "Estimate", metrics: Sequence[str]) -> Grid:
    """Show the means and standard deviations over the folds of a cross-validation, by target if there are several."""
    several = len(found.folds) > 1
    how = f"by {len(found.folds)}-fold cross-validation" if several else "on one test set"
    title = split_title(f"Estimate {how}", found.split) + _unit(metrics)
    spread = "Mean ± standard deviation (ddof=0) over the test folds." if several else "There is a single test set."
    words = [WORDS[metric] for metric in metrics if metric in WORDS]
    if found.objective.targets:
        baseline = f"Baseline: the average for always predicting {BASELINES[found.objective.task]}."
        note = " ".join([spread, baseline, *_average_notes(found, metrics), *words])
        columns = ["target", *map(title_of, metrics)]
        return Grid(title, columns, _by_target(found, metrics), notes=[note], sections=[found.objective.width])
    rows = [[Cell(title_of(metric)), _cell(found, metric)] for metric in metrics]
    first = metrics[0]
    alike = found.baseline_mean(first)
    predicting = "" if found.objective.task == "classification" else "predicting "
    baseline = f"{title_of(first)} of {predicting}{BASELINES[found.objective.task]}"
    rows.append([Cell(baseline), NONE if alike is None else score_cell(first, alike)])
    note = " ".join([spread, *_left_out(found, metrics), *words])
    return Grid(title, ["", "on unseen graphs"], rows, notes=[note])


def _cell(found: "Estimate", metric: str, target: int | None = None) -> Cell:
    mean = found.mean(metric, target)
    spread = found.std(metric, target) if len(found.folds) > 1 else None
    return NONE if mean is None else score_cell(metric, mean, spread)


def calibration_grid(found: "Calibration") -> Grid:
    """Show how good probabilities are without and with a temperature."""
    rows = [
        [Cell(title_of(metric)), *(_score(metric, scores[metric]) for scores in (found.before, found.after))]
        for metric in found.before
    ]
    used = "The model uses it" if found.helps else "The log loss is not lower, so the model does not use it"
    limit = " It is the limit of what is tried, so do not rely on these probabilities." if found.at_limit else ""
    note = (
        f"Temperature: {found.temperature:.2f}, chosen by log loss. {used}.{limit} Each test fold was scored with the "
        "temperature of the other folds."
    )
    title = f"Probabilities on unseen graphs, lower is better{_unit(list(found.before))}"
    return Grid(title, ["", "as trained", "calibrated"], rows, notes=[note])


def _by_target(found: "Estimate", metrics: Sequence[str]) -> list[list[Cell]]:
    """Return a row for each target, one for their average and one for the baseline."""
    rows = [
        [Cell(str(name)), *(_cell(found, metric, place) for metric in metrics)]
        for place, name in enumerate(found.objective.names)
    ]
    alike = [(metric, found.baseline_mean(metric)) for metric in metrics]
    last = [NONE if mean is None else score_cell(metric, mean) for metric, mean in alike]
    rows.append([Cell("average", strong=True), *(_cell(found, metric) for metric in metrics)])
    return [*rows, [Cell("baseline"), *last]]


def _average_notes(found: "Estimate", metrics: Sequence[str]) -> list[str]:
    """Say what the average over targets is, and what it leaves out."""
    notes = []
    units = [title_of(metric) for metric in metrics if METRICS[metric].in_unit]
    if units:
        notes.append(f"The average of {' and '.join(units)} is in standard deviations of the targets.")
    return [*notes, *_left_out(found, metrics)]


def _left_out(found: "Estimate", metrics: Sequence[str]) -> list[str]:
    """Say which scores some folds do not allow, and of which targets if there are several."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for metric in metrics:
        alike.setdefault(tuple(map(str, found.incomplete(metric))), []).append(title_of(metric))
    several = bool(found.objective.targets)
    return [
        f"{' and '.join(titles)} cannot be computed in some folds, {TOO_FEW[found.objective.task]}"
        f"{', for ' + ', '.join(targets) if several else ''}; averages leave these out."
        for targets, titles in alike.items()
        if targets
    ]


def scores_grid(objective: Objective, each: Mapping[str, Sequence[float | None]], graphs: Sequence[int]) -> Grid:
    """Show the scores of each target on test graphs.

    Args:
        objective: What is predicted.
        each: The score of each target by metric.
        graphs: The number of graphs whose value is known, for each target.
    """
    rows = []
    for place, (name, count) in enumerate(zip(objective.names, graphs, strict=True)):
        scores = [_score(metric, values[place]) for metric, values in each.items()]
        rows.append([Cell(str(name)), number_cell(count), *scores])
    means = [_score(metric, average(objective.comparable(metric, values))) for metric, values in each.items()]
    rows.append([Cell("average", strong=True), Cell(""), *means])
    units = [title_of(metric) for metric in each if METRICS[metric].in_unit]
    notes = [f"The average of {' and '.join(units)} is in standard deviations of the targets."] if units else []
    if any(None in values for values in each.values()):
        notes.append("The average leaves out scores that cannot be computed.")
    columns = ["target", "graphs", *map(title_of, each)]
    return Grid(
        f"Scores on the known values{_unit(list(each))}", columns, rows, notes=notes, sections=[objective.width]
    )


def _unit(metrics: Sequence[str]) -> str:
    """Return the unit of scores for a title, if it is percent for some of them."""
    shares = [title_of(metric) for metric in metrics if METRICS[metric].share]
    if len(shares) == len(metrics):
        return ", percent"
    return f"; {' and '.join(shares)} in percent" if shares else ""


def _score(metric: str, value: float | None) -> Cell:
    return NONE if value is None else score_cell(metric, value)


def no_better(found: "Estimate", balanced: bool) -> str:
    """Return a sentence if a model is no better than predicting the same of all graphs, else nothing.

    With ``balanced`` class weights, balanced accuracy is compared instead of accuracy.
    """
    objective = found.objective
    metric = objective.metric
    if objective.task == "classification" and balanced and metric == "accuracy":
        metric = "balanced_accuracy"
    mean = found.mean(metric)
    least = found.baseline_mean(metric)
    if mean is None or least is None or METRICS[metric].sign * (mean - least) > ROUNDING:
        return ""
    return (
        f"This model has not been shown to be better than always predicting {BASELINES[objective.task]}: its "
        f"{title_of(metric)} is {score_text(metric, mean)} against {score_text(metric, least)}."
    )
