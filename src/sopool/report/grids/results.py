"""The results of an evaluation: scores, selected settings, and gains over a reference."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sopool.experiments.results import ComparedResult, Result
from sopool.models.config import Setting
from sopool.objectives import METRICS
from sopool.report.grid import (
    NONE,
    Cell,
    Grid,
    paired_test_note,
    protocol_label,
    seconds_cell,
    word_cells,
)
from sopool.report.scores import (
    gain_cells,
    gain_columns,
    gain_of,
    in_points,
    mean_cell,
    score_cell,
    spread_note,
    title_of,
)
from sopool.training.protocols.outcome import Outcome, brief_setting, shown_name, value_text
from sopool.training.protocols.protocols import PROTOCOLS

CHOICES = "Several epochs or values: median (range). Several settings: how many folds chose each."
NETWORKS = "hidden/batch/\nlr/dropout"
"""The title of a column with the settings of networks."""


def outcome_columns(outcomes: Iterable[Outcome]) -> tuple[str, str, str]:
    """Return the titles of the columns of :func:`outcome_cells`."""
    each = [(one.setting,) if isinstance(one.setting, Setting) else one.setting for one in outcomes]
    networks = all(setting.is_network for some in each for setting in some)
    return "folds\nx runs", "epoch", NETWORKS if networks else "setting"


AVERAGED = "Several targets: the mean over those for which the score can be computed."
IN_SPREAD = (
    "MAE and RMSE of several targets are divided by the standard deviation of each target before they are averaged."
)


def results_grid(rows: Sequence[Result], said: Sequence[str] = (), metrics: Sequence[str] = ()) -> Grid:
    """Show one row for each result, in the order given.

    What all results share is in the title; the notes begin with ``said``. The score that the protocol chooses by is
    followed by those by other ``metrics``.
    """
    shared, own = _places(rows)
    used = metrics_of([row.outcome for row in rows])
    others = besides(metrics, used)
    lines = [
        [
            *word_cells([*(PLACES[name](row) for name in own), row.pool]),
            mean_cell(row.outcome),
            *(other_cell(row.outcome, metric) for metric in others),
            *outcome_cells(row.outcome),
            seconds_cell(row.seconds),
        ]
        for row in rows
    ]
    return Grid(
        f"{headline(used)} by cross-validation{_percent([*used, *others])}{shared}",
        [
            *own,
            "pool",
            score_title(used),
            *map(title_of, others),
            *outcome_columns(row.outcome for row in rows),
            "seconds",
        ],
        lines,
        len(own) + 1,
        [
            *said,
            spread_note([*used, *others]),
            *averaged_note([row.outcome for row in rows]),
            CHOICES,
            *_meanings(rows),
            *_stops(rows),
        ],
    )


def comparison_grid(compared: Sequence[ComparedResult]) -> Grid:
    """Show the gain of each pooling over the reference under each protocol, with interval and p value."""
    rows = [one.result for one in compared]
    shared, own = _places(rows)
    reference = compared[0].reference.pool
    used = metrics_of([row.outcome for row in rows])
    lines = [
        [
            *word_cells([*(PLACES[name](row) for name in own), row.pool]),
            *(score_cell(one.outcome.metric, one.outcome.mean, one.outcome.std) for one in (row, other)),
            *gain_cells(row.outcome.metric, found),
        ]
        for row, other, found in compared
    ]
    kinds = "".join(f", {gain_of(metric)}" for metric in used if gain_of(metric))
    return Grid(
        f"Gain over {reference}{in_points(used)}{kinds}{shared}",
        [*own, "pool", score_title(used), f"{score_title(used)} of\n{reference}", *gain_columns(used)],
        lines,
        len(own) + 1,
        [spread_note(used), paired_test_note(one.comparison for one in compared), *_meanings(rows)],
    )


def targets_grid(rows: Sequence[Result]) -> Grid | None:
    """Show the score of each of several targets, with a column for each pooling; None if there is a single target.

    All results are under one protocol.
    """
    outcome = rows[0].outcome
    if not outcome.targets:
        return None
    lines = [
        [Cell(str(name)), *(over_folds(row.outcome.metric, row.outcome.targets[name]) for row in rows)]
        for name in outcome.targets
    ]
    title = f"{headline([outcome.metric])} of each target under {protocol_label(outcome.protocol)}"
    notes = [spread_note([outcome.metric])]
    if any(None in scores[outcome.metric] for scores in outcome.targets.values()):
        notes.append("Folds whose true values do not allow the score are left out.")
    return Grid(title + _percent([outcome.metric]), ["target", *(row.pool for row in rows)], lines, 1, notes)


def over_folds(metric: str, scores: Mapping[str, Sequence[float | None]]) -> Cell:
    """Show the mean and the spread of a target's scores over the folds for which it can be computed."""
    known = [score for score in scores.get(metric, ()) if score is not None]
    spread = float(np.std(known)) if len(known) > 1 else None
    return score_cell(metric, float(np.mean(known)), spread) if known else NONE


def other_cell(outcome: Outcome, metric: str) -> Cell:
    """Show the score by any metric; none if it cannot be computed on some fold."""
    if metric == outcome.metric:
        return mean_cell(outcome)
    if None in outcome.scores.get(metric, (None,)):
        return NONE
    return over_folds(metric, outcome.scores)


def metrics_of(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the metrics that the results were chosen by, each once; the accuracy if there are none."""
    return list(dict.fromkeys(outcome.metric for outcome in outcomes)) or ["accuracy"]


def besides(metrics: Iterable[str], used: Sequence[str]) -> list[str]:
    """Return the metrics that need a column beside that of the scores, which has those by the metric(s) ``used``."""
    return [metric for metric in metrics if [metric] != list(used)]


def score_title(metrics: Sequence[str]) -> str:
    """Return the title of a column of scores by these metrics."""
    return title_of(metrics[0]) if len(metrics) == 1 else "score"


def headline(metrics: Sequence[str]) -> str:
    """Return the same with a capital, as the beginning of a title."""
    found = score_title(metrics)
    return found[0].upper() + found[1:]


def averaged_note(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the notes that say how several targets are averaged, if there are some."""
    used = [outcome.metric for outcome in outcomes if outcome.targets]
    in_unit = any(METRICS[metric].in_unit for metric in used)
    return [AVERAGED] * bool(used) + [IN_SPREAD] * in_unit


def _percent(metrics: Iterable[str]) -> str:
    return ", percent" if in_points(metrics) else ""


def outcome_cells(outcome: Outcome) -> list[Cell]:
    """Return the numbers of folds and runs, and the selected epoch and setting."""
    return [
        Cell(f"{len(outcome.folds)} x {outcome.repeats}", len(outcome.folds) * outcome.repeats),
        _epochs_cell(outcome),
        Cell(settings_text(outcome)),
    ]


def _epochs_cell(outcome: Outcome) -> Cell:
    """Return the single epoch, or median and range."""
    epochs = np.array(outcome.epochs)
    if not epochs.size:
        return NONE
    middle = float(np.median(epochs))
    if epochs.min() == epochs.max():
        return Cell(str(epochs.min()), middle)
    return Cell(f"{middle:g} ({epochs.min()}-{epochs.max()})", middle)


def settings_text(outcome: Outcome) -> str:
    """Return the single setting, or a line for each with the number of folds that selected it.

    That of a system has a line for each hyperparameter, see :func:`chosen_text`.
    """
    if isinstance(outcome.setting, Setting):
        return brief_setting(outcome.setting).replace(", ", "\n" if not outcome.setting.is_network else ", ")
    counts = Counter(outcome.setting).most_common()
    if not counts:
        return "-"
    if not any(setting.is_network for setting, _ in counts):
        return chosen_text([dict(setting.options) for setting in outcome.setting])
    if len(counts) == 1:
        return brief_setting(counts[0][0])
    return "\n".join(f"{count} x {brief_setting(setting)}" for setting, count in counts)


def chosen_text(settings: Sequence[Mapping[str, Any]]) -> str:
    """Return the values of each hyperparameter that was selected on the folds, on a line of its own.

    Several numbers are shown as median and range, e.g. ``C 10 (1-100)``, and booleans as a count, e.g. ``8 of 10``.
    """
    names = dict.fromkeys(name for setting in settings for name in setting)
    lines = [f"{shown_name(name)} {_values([one[name] for one in settings if name in one])}" for name in names]
    return "\n".join(lines) or "-"


def _values(values: Sequence[Any]) -> str:
    counts = Counter(values)
    if len(counts) == 1:
        return value_text(values[0])
    if isinstance(values[0], bool):
        return f"{counts[True]} of {len(values)}"
    if not all(isinstance(value, int | float) for value in values):
        return ", ".join(f"{count} x {value_text(value)}" for value, count in counts.most_common())
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 2]:g} ({ordered[0]:g}-{ordered[-1]:g})"


def _places(rows: Sequence[Result]) -> tuple[str, list[str]]:
    """Return what all results share, for the title, and the names of the columns for the rest."""
    values = {name: sorted({value(row) for row in rows}) for name, value in PLACES.items()}
    shared = [some[0] for some in values.values() if len(some) == 1 and some[0] != NONE.text]
    return ": " * bool(shared) + ", ".join(shared), [name for name, some in values.items() if len(some) != 1]


PLACES: dict[str, Callable[[Result], str]] = {
    "data set": lambda row: row.dataset,
    "GNN": lambda row: row.network or NONE.text,
    "protocol": lambda row: protocol_label(row.outcome.protocol),
}


def _meanings(rows: Sequence[Result]) -> list[str]:
    used = {row.outcome.protocol for row in rows}
    return [f"{name}: {protocol.meaning}." for name, protocol in PROTOCOLS.items() if name in used]


def _stops(rows: Sequence[Result]) -> list[str]:
    lines = []
    for row in rows:
        stopped = row.outcome.stopped
        if stopped:
            at_once = sum(stop.epoch == 1 for stop in stopped)
            note = f" ({at_once} in the first epoch: accuracy counted as 0)" if at_once else ""
            where = ", ".join(filter(None, (row.dataset, row.network, row.pool, row.outcome.protocol)))
            count = "1 run was" if len(stopped) == 1 else f"{len(stopped)} runs were"
            lines.append(f"{where}: {count} stopped because the loss was no longer finite{note}.")
    return lines
