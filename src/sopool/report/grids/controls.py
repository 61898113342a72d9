"""The results of controls."""

from collections.abc import Sequence

from sopool.data.division import split_title
from sopool.experiments.systems import SYSTEMS, ControlResult
from sopool.report.grid import Cell, Grid, seconds_cell, word_cells
from sopool.report.grids.results import averaged_note, besides, chosen_text, metrics_of, other_cell, score_title
from sopool.report.scores import in_points, mean_cell, spread_note, title_of

CHOSEN = (
    "Chosen: selected on held-out training graphs; the median (range) over folds, or the number of folds that selected "
    "it. The final model is then trained on the whole training fold and tested once."
)


def controls_grid(results: Sequence[ControlResult], metrics: Sequence[str] = ()) -> Grid:
    """Show one row for each result, in the order given; what all results share is in the title.

    The score that settings are chosen by is followed by those by other ``metrics``.
    """
    used = metrics_of(one.outcome for one in results)
    others = besides(metrics, used)
    datasets = sorted({_data(one) for one in results})
    folds = sorted({_folds(one) for one in results})
    shared = ", ".join(some[0] for some in (datasets, folds) if len(some) == 1)
    rows = [
        [
            *word_cells([_data(one)] * (len(datasets) > 1)),
            *word_cells([one.control, SYSTEMS[one.control].seen_for(one.task)]),
            *word_cells([title_of(one.outcome.metric)] * (len(used) > 1)),
            mean_cell(one.outcome),
            *(other_cell(one.outcome, metric) for metric in others),
            *word_cells([_folds(one)] * (len(folds) > 1)),
            Cell(chosen_text(one.settings)),
            seconds_cell(one.seconds),
        ]
        for one in results
    ]
    columns = ["data set"] * (len(datasets) > 1) + ["control", "sees"]
    columns += ["metric"] * (len(used) > 1)
    words = len(columns)
    columns += [score_title(used), *map(title_of, others)]
    columns += ["folds"] * (len(folds) > 1) + ["chosen", "seconds"]
    percent = " in percent" if in_points([*used, *others]) else ""
    title = f"Controls under fair, {score_title(used)}{percent}" + (f": {shared}" if shared else "")
    notes = [spread_note([*used, *others]), *averaged_note(one.outcome for one in results), CHOSEN]
    return Grid(title, columns, rows, words, notes)


def _data(result: ControlResult) -> str:
    """Return the name of the data set, with its split unless that is random."""
    return split_title(result.dataset, result.split.rpartition(" ")[0] or result.split)


def _folds(result: ControlResult) -> str:
    """Return the number of folds and, if there are several, of seeds."""
    seeds = result.outcome.repeats
    return f"{len(result.outcome.folds)} folds" + (f" x {seeds} seeds" if seeds > 1 else "")
