"""Outcomes of protocols as tables for the terminal."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rich.table import Table

from sopool.errors import DataError
from sopool.experiments.comparison import Comparison, corrected_paired_test
from sopool.models.config import Setting
from sopool.report.grid import in_words, interval_words, p_cell, points
from sopool.training.protocols.outcome import Outcome
from sopool.training.protocols.protocols import PROTOCOLS


@dataclass(frozen=True)
class Result:
    """One pooling under one protocol."""

    data: str
    gnn: str
    pool: str
    outcome: Outcome
    seconds: float | None = None
    """What its runs took."""


class Compared(NamedTuple):
    """A result beside that of the reference pooling, on the same data, with the same GNN and protocol."""

    result: Result
    reference: Result
    comparison: Comparison


def results_table(rows: Sequence[Result], said: Sequence[str] = ()) -> Table:
    """One line for each result, in the order given. What is the same for all stands above, what is ``said`` below."""
    shared, own = _places(rows)
    table = _table(f"Accuracy by cross-validation, per cent{shared}", (*own, "pool"))
    for column in ("accuracy", "folds\nx runs", "epoch", "hidden/batch/\nlr/dropout", "seconds"):
        table.add_column(column, justify="right", overflow="fold")
    for row in rows:
        outcome = row.outcome
        table.add_row(
            *(PLACES[name](row) for name in own),
            row.pool,
            accuracy_text(outcome),
            f"{len(outcome.folds)} x {outcome.repeats}",
            epochs_text(outcome),
            settings_text(outcome),
            seconds_text(row.seconds),
        )
    table.caption = "\n".join(
        [
            *said,
            "Accuracy: mean +- standard deviation (ddof=0) over the test folds; the runs of a fold are averaged first.",
            "Several epochs: median (range). Several settings: how many folds chose each.",
            *_meanings(rows),
            *_stops(rows),
        ]
    )
    return table


def compare(rows: Sequence[Result], reference: str) -> list[Compared]:
    """Each result of another pooling against that of ``reference`` where all else is the same."""
    against = {_place(row): row for row in rows if row.pool == reference}
    found = []
    for row in rows:
        if row.pool == reference:
            continue
        place = ", ".join(_place(row))
        if _place(row) not in against:
            raise DataError(f"{row.pool} cannot be compared with {reference}: there is no result of it on {place}.")
        other = against[_place(row)]
        folds = len(row.outcome.folds)
        if len(other.outcome.folds) != folds:
            counts = f"{folds} and {len(other.outcome.folds)}"
            raise DataError(f"{row.pool} and {reference} have {counts} folds on {place}: they must be the same.")
        found.append(Compared(row, other, corrected_paired_test(row.outcome.folds, other.outcome.folds, folds)))
    return found


def comparison_table(rows: Sequence[Result], reference: str) -> Table:
    """What each pooling gains over ``reference`` under each protocol, in points, with interval and p value."""
    shared, own = _places(rows)
    table = _table(f"Gain over {reference}, in points{shared}", (*own, "pool"))
    for column in ("accuracy", f"accuracy of\n{reference}", "gain", "95 % interval", "p"):
        table.add_column(column, justify="right", overflow="fold")
    compared = compare(rows, reference)
    for row, other, found in compared:
        table.add_row(
            *(PLACES[name](row) for name in own),
            row.pool,
            accuracy_text(row.outcome),
            accuracy_text(other.outcome),
            points(found.difference),
            interval_words(found),
            p_cell(found.p).text,
        )
    folds = ", ".join(str(count) for count in sorted({one.comparison.folds for one in compared}))
    table.caption = "\n".join(
        [
            "Accuracy: per cent, mean +- standard deviation (ddof=0) over the test folds.",
            f"Interval and p: corrected resampled t-test (Nadeau and Bengio) over the same {folds} folds, two-sided, "
            "not adjusted for the number of comparisons.",
            *_meanings(rows),
        ]
    )
    return table


def _table(title: str, names: Sequence[str]) -> Table:
    table = Table(title=title, caption_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _places(rows: Sequence[Result]) -> tuple[str, list[str]]:
    """What is the same for all results, for the title, and the columns of what is not."""
    values = {name: sorted({value(row) for row in rows}) for name, value in PLACES.items()}
    shared = [some[0] for some in values.values() if len(some) == 1]
    return ": " * bool(shared) + ", ".join(shared), [name for name, some in values.items() if len(some) != 1]


def _place(row: Result) -> tuple[str, str, str]:
    return row.data, row.gnn, row.outcome.protocol


PLACES: dict[str, Callable[[Result], str]] = {
    "data set": lambda row: row.data,
    "GNN": lambda row: row.gnn,
    "protocol": lambda row: in_words(row.outcome.protocol),
}


def accuracy_text(outcome: Outcome) -> str:
    """Mean and deviation over folds, per cent."""
    return f"{100 * outcome.mean:.1f} +- {100 * outcome.std:.1f}"


def epochs_text(outcome: Outcome) -> str:
    """The one, or median and range."""
    epochs = np.array(outcome.epochs)
    if not epochs.size:
        return "-"
    if epochs.min() == epochs.max():
        return str(epochs.min())
    return f"{np.median(epochs):g} ({epochs.min()}-{epochs.max()})"


def settings_text(outcome: Outcome) -> str:
    """The one, or a line for each and how many folds chose it."""
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


def seconds_text(seconds: float | None) -> str:
    """To the tenth while they are few."""
    if seconds is None:
        return "-"
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.1f}"


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
            where = f"{row.data}, {row.gnn}, {row.pool}, {row.outcome.protocol}"
            count = "1 run was" if len(stopped) == 1 else f"{len(stopped)} runs were"
            lines.append(f"{where}: {count} stopped because the loss was no longer finite{note}.")
    return lines
