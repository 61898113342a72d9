"""The tables of a report on a run store."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from rich import filesize

from sopool.experiments.entries import Entry, join_words
from sopool.experiments.statistics import Across
from sopool.experiments.summary import Gain, Summary
from sopool.report.grid import (
    COMPARISON,
    NONE,
    Cell,
    Grid,
    accuracy_cell,
    comparison_cells,
    number_cell,
    p_cell,
    paired_test_note,
    points_cell,
    protocol_label,
    word_cells,
)
from sopool.report.grids.results import CHOICES, OUTCOME, SPREAD, outcome_cells
from sopool.training.protocols.outcome import Outcome, average
from sopool.training.protocols.protocols import PROTOCOLS

NAMES = ("data set", "network", "pooling", "variant")
OPTIMISM = "Optimism: per-fold-max minus fair, in points"


def accuracy_grid(summary: Summary) -> Grid:
    """Show the accuracies under all protocols, and the difference of the optimistic and the fair one."""
    protocols = summary.protocols
    both = {"per-fold-max", "fair"} <= set(protocols)
    rows = []
    several = any(len(entry.seeds) > 1 for entry in summary.entries)
    for entry in summary.entries:
        seeds = Cell(_seeds(entry) if several else "")
        row = [*names_of(entry), seeds, *(_accuracy(entry.outcomes.get(name)) for name in protocols)]
        row += [_optimism(entry)] if both else []
        rows.append([*row, Cell(", ".join(summary.not_above(entry)))])
    columns = [
        *NAMES,
        "seeds",
        *(protocol_label(name) for name in protocols),
        *(["optimism, points"] if both else []),
        "not above",
    ]
    notes = [SPREAD, *([f"{OPTIMISM}{', over the seeds that have both' * several}."] if both else [])]
    if any(row[-1].text for row in rows):
        notes.append("Not above: the controls whose mean under fair is at least as high.")
    rules = sorted({(entry.pool, entry.data) for entry in summary.entries if entry.is_reference})
    if rules:
        told = "; ".join(
            f"{pool} on {', '.join(data for _, data in same)}" for pool, same in groupby(rules, itemgetter(0))
        )
        notes.append(f"sum-avg is listed as the pooling that the paper's rule selects: {told}.")
    return Grid("Accuracy", columns, rows, len(NAMES) + 1, notes).without_empty()


def gains_grid(gains: Sequence[Gain], protocol: str) -> Grid:
    """Show the gain of each pooling over its reference under one protocol."""
    rows = []
    several = len({seed for gain in gains for one in (gain.entry, gain.reference) for seed in one.seeds}) > 1
    for entry, reference, _, found, seeds in gains:
        rows.append(
            [
                *names_of(entry),
                Cell(join_words(reference.pool, reference.variant)),
                Cell(seeds if several else ""),
                *comparison_cells(found),
            ]
        )
    columns = [*NAMES, "against", "seeds", *COMPARISON]
    notes = [paired_test_note(gain.comparison for gain in gains), "Bold: the interval excludes 0."]
    return Grid(f"Differences under {protocol_label(protocol)}", columns, rows, len(NAMES) + 2, notes).without_empty()


def details_grid(entries: Sequence[Entry], protocol: str) -> Grid:
    """Show epochs, settings and further measures under one protocol."""
    rows = []
    for entry in entries:
        outcome = entry.outcomes.get(protocol)
        if outcome is None:
            continue
        rows.append(
            [
                *names_of(entry),
                *outcome_cells(outcome),
                *(_mean_of(outcome, name) for name in ("balanced_accuracy", "roc_auc")),
            ]
        )
    columns = [*NAMES, *OUTCOME, "balanced accuracy", "ROC AUC"]
    title = f"Details under {protocol_label(protocol)}"
    return Grid(title, columns, rows, len(NAMES), [SPREAD, CHOICES]).without_empty()


def confusion_grid(entry: Entry, protocol: str) -> Grid:
    """Show the confusion matrix of a protocol, and the recall of each class."""
    table = entry.confusion[protocol]
    digits = 0 if (table == table.round()).all() else 1
    rows: list[list[Cell]] = []
    for name, line in zip(entry.classes, table, strict=True):
        found = [Cell(f"{count:,.{digits}f}", float(count)) for count in line]
        share = line[len(rows)] / line.sum() if line.sum() else 0.0
        rows.append([Cell(name), *found, Cell(f"{100 * share:.1f}", float(share))])
    columns = ["true class", *(f"predicted {name}" for name in entry.classes), "found, %"]
    return Grid(entry.title, columns, rows)


def cost_grid(entries: Sequence[Entry]) -> Grid:
    """Show time and memory of each experiment."""
    rows = []
    for entry in entries:
        cost = entry.cost
        each = 1000 * cost.seconds / max(cost.model_epochs, 1)
        rows.append(
            [
                *names_of(entry),
                Cell(", ".join(cost.devices)),
                number_cell(cost.runs),
                number_cell(cost.model_epochs),
                Cell(f"{cost.seconds:,.1f}", cost.seconds),
                Cell(f"{each:,.2f}", each),
                NONE if cost.memory is None else Cell(filesize.decimal(cost.memory), cost.memory),
            ]
        )
    columns = [*NAMES, "device", "runs", "model-epochs", "device seconds", "ms per model-epoch", "peak memory"]
    notes = [
        "Device seconds: time for training and scoring, summed over workers; runs that were trained together share it "
        "equally. Peak memory: the largest of all runs, of the training process or, on a GPU, allocated by PyTorch; a "
        "dash if it was not recorded."
    ]
    return Grid("Time and memory", columns, rows, len(NAMES) + 1, notes).without_empty()


def tests_grid(across: Across) -> Grid | None:
    """Show the declared comparisons over data sets; return None if there are none."""
    if not across.declared:
        return None
    rows = [
        [
            *word_cells([one.row, one.against]),
            number_cell(one.datasets),
            points_cell(one.median),
            p_cell(one.p),
            p_cell(one.holm),
        ]
        for one in across.declared
    ]
    columns = ["pooling", "against", "data sets", "median gain, points", "p (Wilcoxon)", "p (Holm)"]
    notes = ["Declared beforehand: each second-order pooling against Sum/Avg. Holm: adjusted for all in this table."]
    return Grid(f"Declared comparisons under {across.protocol}", columns, rows, 2, notes)


def names_of(entry: Entry) -> list[Cell]:
    """Return the cells of the columns :data:`NAMES`."""
    return word_cells([entry.data, entry.network, entry.pool, entry.variant])


def _accuracy(outcome: Outcome | None) -> Cell:
    if outcome is None:
        return NONE
    return accuracy_cell(outcome.mean, outcome.std)


def _optimism(entry: Entry) -> Cell:
    """Return the optimism over the seeds that have both protocols; no figure if there are none."""
    both = [judged for judged in entry.seeds.values() if {"per-fold-max", "fair"} <= set(judged)]
    if not both:
        return NONE
    shown, fair = (average([judged[name] for judged in both]).mean for name in ("per-fold-max", "fair"))
    return points_cell(shown - fair)


def _seeds(entry: Entry) -> str:
    """Return the seeds of all protocols or, if they differ, of each."""
    protocols = [name for name in PROTOCOLS if name in entry.outcomes]
    alike: dict[str, list[str]] = {}
    for name in protocols:
        seeds = ", ".join(str(seed) for seed, judged in entry.seeds.items() if name in judged)
        alike.setdefault(seeds, []).append(name)
    if len(alike) < 2:
        return next(iter(alike), ", ".join(map(str, entry.seeds)))
    return "; ".join(f"{', '.join(names)}: {seeds}" for seeds, names in alike.items())


def _mean_of(outcome: Outcome, metric: str) -> Cell:
    """Return the mean over the folds of a score that is a share; nothing if it cannot be computed on some fold."""
    values = [value for value in outcome.scores.get(metric, ()) if value is not None]
    if not values or len(values) < len(outcome.folds):
        return NONE
    mean = sum(values) / len(values)
    return Cell(f"{100 * mean:.1f}", mean)
