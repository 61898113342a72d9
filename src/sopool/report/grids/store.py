"""The tables of a report on a run store."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from rich import filesize

from sopool.experiments.entries import Entry, join_words
from sopool.experiments.statistics import Across
from sopool.experiments.summary import Gain, Summary
from sopool.report.grid import (
    NONE,
    Cell,
    Grid,
    number_cell,
    p_cell,
    paired_test_note,
    protocol_label,
    word_cells,
)
from sopool.report.grids.results import (
    CHOICES,
    averaged_note,
    besides,
    headline,
    metrics_of,
    other_cell,
    outcome_cells,
    outcome_columns,
    over_folds,
    score_title,
)
from sopool.report.scores import (
    difference_cell,
    gain_cells,
    gain_columns,
    gain_of,
    in_points,
    mean_cell,
    spread_note,
    title_of,
)
from sopool.training.protocols.outcome import Outcome, average
from sopool.training.protocols.protocols import PROTOCOLS

NAMES = ("data set", "network", "pooling", "variant")
DETAILS = {
    "classification": ("balanced_accuracy", "roc_auc"),
    "multi-label": ("roc_auc", "average_precision"),
    "regression": ("mae", "r2"),
}
"""The further metrics of the details, by task."""


def scores_grid(summary: Summary) -> Grid:
    """Show the scores under all protocols, and the difference of the optimistic and the fair one."""
    protocols = summary.protocols
    used = entry_metrics(summary.entries)
    both = {"per-fold-max", "fair"} <= set(protocols)
    rows = []
    several = any(len(entry.seeds) > 1 for entry in summary.entries)
    for entry in summary.entries:
        seeds = Cell(_seeds(entry) if several else "")
        row = [*names_of(entry), seeds, _metric(entry, used)]
        row += [_score(entry.outcomes.get(name)) for name in protocols]
        row += [_optimism(entry)] if both else []
        rows.append([*row, Cell(", ".join(summary.not_above(entry)))])
    columns = [
        *NAMES,
        "seeds",
        "metric",
        *(protocol_label(name) for name in protocols),
        *([f"optimism{in_points(used, ', ')}"] if both else []),
        "not above",
    ]
    notes = [spread_note(used), *averaged_note(outcome for one in summary.entries for outcome in one.outcomes.values())]
    if both:
        notes.append(f"{_optimism_words(used)}{', over the seeds that have both' * several}.")
    if any(row[-1].text for row in rows):
        how = "high" if used == ["accuracy"] else "good"
        notes.append(f"Not above: the controls whose mean under fair is at least as {how}.")
    rules = sorted({(entry.pool, entry.data) for entry in summary.entries if entry.is_reference})
    if rules:
        told = "; ".join(
            f"{pool} on {', '.join(data for _, data in same)}" for pool, same in groupby(rules, itemgetter(0))
        )
        notes.append(f"sum-avg is listed as the pooling that the paper's rule selects: {told}.")
    return Grid(headline(used), columns, rows, len(NAMES) + 2, notes).without_empty()


def gains_grid(gains: Sequence[Gain], protocol: str) -> Grid:
    """Show the gain of each pooling over its reference under one protocol."""
    rows = []
    used = entry_metrics(gain.entry for gain in gains)
    several = len({seed for gain in gains for one in (gain.entry, gain.reference) for seed in one.seeds}) > 1
    for entry, reference, _, found, seeds in gains:
        rows.append(
            [
                *names_of(entry),
                Cell(join_words(reference.pool, reference.variant)),
                Cell(seeds if several else ""),
                _metric(entry, used),
                *gain_cells(entry.shared.metric, found),
            ]
        )
    columns = [*NAMES, "against", "seeds", "metric", *gain_columns(used)]
    notes = [paired_test_note(gain.comparison for gain in gains), "Bold: the interval excludes 0."]
    lower = [gain_of(metric) for metric in used if gain_of(metric)]
    notes += [f"Gain: {', '.join(lower)}."] if lower else []
    return Grid(f"Differences under {protocol_label(protocol)}", columns, rows, len(NAMES) + 3, notes).without_empty()


def details_grid(entries: Sequence[Entry], protocol: str, metrics: Sequence[str] = ()) -> Grid:
    """Show epochs, settings and the scores by further metrics under one protocol."""
    judged = [(entry, entry.outcomes[protocol]) for entry in entries if protocol in entry.outcomes]
    used = entry_metrics(entry for entry, _ in judged)
    others = besides(further_metrics(entries, metrics), used)
    rows = [
        [
            *names_of(entry),
            _metric(entry, used),
            _score(outcome),
            *outcome_cells(outcome),
            *(other_cell(outcome, metric) for metric in others),
        ]
        for entry, outcome in judged
    ]
    columns = [
        *NAMES,
        "metric",
        score_title(used),
        *outcome_columns(outcome for _, outcome in judged),
        *map(title_of, others),
    ]
    title = f"Details under {protocol_label(protocol)}"
    notes = [spread_note([*used, *others]), *averaged_note(outcome for _, outcome in judged), CHOICES]
    return Grid(title, columns, rows, len(NAMES) + 1, notes).without_empty()


def further_metrics(entries: Sequence[Entry], metrics: Sequence[str] = ()) -> list[str]:
    """Return the metrics to show beside the one that chooses: those given, or the usual ones of the tasks."""
    usual = [
        metric for task, some in DETAILS.items() if any(one.shared.task == task for one in entries) for metric in some
    ]
    return list(dict.fromkeys(metrics or usual))


def targets_grid(entry: Entry, protocol: str, metrics: Sequence[str] = ()) -> Grid:
    """Show the scores of each of several targets."""
    targets = entry.outcomes[protocol].targets
    shown = list(dict.fromkeys([entry.shared.metric, *further_metrics([entry], metrics)]))
    shown = [metric for metric in shown if all(metric in scores for scores in targets.values())]
    rows = [
        [Cell(str(name)), *(over_folds(metric, scores) for metric in shown), _folds(scores[entry.shared.metric])]
        for name, scores in targets.items()
    ]
    notes = [spread_note(shown), "Folds whose true values do not allow a score are left out."]
    return Grid(entry.title, ["target", *map(title_of, shown), "folds"], rows, 1, notes)


def _folds(scores: Sequence[float | None]) -> Cell:
    known = sum(score is not None for score in scores)
    return number_cell(known)


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


def tests_grid(across: Across, metric: str) -> Grid | None:
    """Show the declared comparisons over data sets; return None if there are none."""
    if not across.declared:
        return None
    rows = [
        [
            *word_cells([one.row, one.against]),
            number_cell(one.datasets),
            difference_cell(metric, one.median),
            p_cell(one.p),
            p_cell(one.holm),
        ]
        for one in across.declared
    ]
    columns = ["pooling", "against", "data sets", f"median gain{in_points([metric], ', ')}", "p (Wilcoxon)", "p (Holm)"]
    notes = ["Declared beforehand: each second-order pooling against Sum/Avg. Holm: adjusted for all in this table."]
    return Grid(f"Declared comparisons under {across.protocol}", columns, rows, 2, notes)


def names_of(entry: Entry) -> list[Cell]:
    """Return the cells of the columns :data:`NAMES`."""
    return word_cells([entry.data, entry.network, entry.pool, entry.variant])


def entry_metrics(entries: Iterable[Entry]) -> list[str]:
    """Return the metrics that the results of entries were chosen by, each once."""
    return metrics_of(outcome for entry in entries for outcome in entry.outcomes.values())


def _metric(entry: Entry, used: Sequence[str]) -> Cell:
    """Return the metric of an entry if a table has several."""
    return Cell(title_of(entry.shared.metric) if len(used) > 1 else "")


def _score(outcome: Outcome | None) -> Cell:
    return NONE if outcome is None else mean_cell(outcome)


def _optimism(entry: Entry) -> Cell:
    """Return the optimism over the seeds that have both protocols; no figure if there are none."""
    both = [judged for judged in entry.seeds.values() if {"per-fold-max", "fair"} <= set(judged)]
    if not both:
        return NONE
    shown, fair = (average([judged[name] for judged in both]) for name in ("per-fold-max", "fair"))
    return difference_cell(shown.metric, shown.signed_mean - fair.signed_mean, max(shown.std, fair.std))


def _optimism_words(used: Sequence[str]) -> str:
    if any(gain_of(metric) for metric in used):
        return "Optimism: by how much per-fold-max is better than fair"
    return f"Optimism: per-fold-max minus fair{in_points(used)}"


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
