"""The results of an evaluation: accuracies, selected settings, and gains over a reference."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from sopool.experiments.results import ComparedResult, Result
from sopool.models.config import Setting
from sopool.report.grid import (
    COMPARISON,
    NONE,
    Cell,
    Grid,
    accuracy_cell,
    comparison_cells,
    paired_test_note,
    protocol_label,
    seconds_cell,
    word_cells,
)
from sopool.training.protocols.outcome import Outcome
from sopool.training.protocols.protocols import PROTOCOLS

SPREAD = "Percent: mean ± standard deviation (ddof=0) over the test folds; the runs of a fold are averaged first."
CHOICES = "Several epochs: median (range). Several settings: how many folds chose each."
OUTCOME = ("accuracy", "folds\nx runs", "epoch", "hidden/batch/\nlr/dropout")
"""The columns of :func:`outcome_cells`."""


def results_grid(rows: Sequence[Result], said: Sequence[str] = ()) -> Grid:
    """Show one row for each result, in the order given.

    What all results share is in the title; the notes begin with ``said``.
    """
    shared, own = _places(rows)
    lines = [
        [
            *word_cells([*(PLACES[name](row) for name in own), row.pool]),
            *outcome_cells(row.outcome),
            seconds_cell(row.seconds),
        ]
        for row in rows
    ]
    return Grid(
        f"Accuracy by cross-validation, percent{shared}",
        [*own, "pool", *OUTCOME, "seconds"],
        lines,
        len(own) + 1,
        [*said, SPREAD, CHOICES, *_meanings(rows), *_stops(rows)],
    )


def comparison_grid(compared: Sequence[ComparedResult]) -> Grid:
    """Show the gain of each pooling over the reference under each protocol, with interval and p value."""
    rows = [one.result for one in compared]
    shared, own = _places(rows)
    reference = compared[0].reference.pool
    lines = [
        [
            *word_cells([*(PLACES[name](row) for name in own), row.pool]),
            accuracy_cell(row.outcome.mean, row.outcome.std),
            accuracy_cell(other.outcome.mean, other.outcome.std),
            *comparison_cells(found),
        ]
        for row, other, found in compared
    ]
    return Grid(
        f"Gain over {reference}, in points{shared}",
        [*own, "pool", "accuracy", f"accuracy of\n{reference}", *COMPARISON],
        lines,
        len(own) + 1,
        [SPREAD, paired_test_note(one.comparison for one in compared), *_meanings(rows)],
    )


def outcome_cells(outcome: Outcome) -> list[Cell]:
    """Return the accuracy, the numbers of folds and runs, and the selected epoch and setting."""
    return [
        accuracy_cell(outcome.mean, outcome.std),
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
    """Return the single setting, or a line for each with the number of folds that selected it."""
    if isinstance(outcome.setting, Setting):
        return _setting(outcome.setting)
    counts = Counter(outcome.setting).most_common()
    if not counts:
        return "-"
    if len(counts) == 1:
        return _setting(counts[0][0])
    return "\n".join(f"{count} x {_setting(setting)}" for setting, count in counts)


def _setting(setting: Setting) -> str:
    return f"{setting.hidden}/{setting.batch_size}/{setting.lr:g}/{setting.dropout:g}"


def _places(rows: Sequence[Result]) -> tuple[str, list[str]]:
    """Return what all results share, for the title, and the names of the columns for the rest."""
    values = {name: sorted({value(row) for row in rows}) for name, value in PLACES.items()}
    shared = [some[0] for some in values.values() if len(some) == 1]
    return ": " * bool(shared) + ", ".join(shared), [name for name, some in values.items() if len(some) != 1]


PLACES: dict[str, Callable[[Result], str]] = {
    "data set": lambda row: row.dataset,
    "GNN": lambda row: row.network,
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
            where = f"{row.dataset}, {row.network}, {row.pool}, {row.outcome.protocol}"
            count = "1 run was" if len(stopped) == 1 else f"{len(stopped)} runs were"
            lines.append(f"{where}: {count} stopped because the loss was no longer finite{note}.")
    return lines
