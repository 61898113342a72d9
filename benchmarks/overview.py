"""Print the table of docs/results/index.md as Markdown: the accuracy of each model on the test folds of each data set.

    python -m benchmarks.overview

The models are the Weisfeiler-Lehman kernel, Sum/Avg and bimap as in the paper, the presets, and published models.
"""

import numpy as np

from benchmarks.best import ALIKE, BEST, DEFAULT, GRID, KNOWN
from benchmarks.best import figures as tested
from benchmarks.search_forms import BIMAP, SUM
from benchmarks.search_page import NINE, WL, Figures, read
from sopool.experiments.comparison import corrected_paired_test
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell
from sopool.report.papers import grid_markdown

COLUMNS = {
    WL: "WL kernel",
    SUM: "Sum/Avg (paper)",
    GRID: "Sum/Avg, whole grid",
    BIMAP: "bimap (paper)",
    DEFAULT: "bimap, preset default",
    ALIKE[BEST]: "Sum/Avg, preset best",
    BEST: "bimap, preset best",
}


def figures() -> Figures:
    """Return the results under `fair`, seed 0, with the Weisfeiler-Lehman kernel on the same folds."""
    return tested() | read("large_controls.jsonl")


def grid(found: Figures) -> Grid:
    """Return the accuracies, bold where they differ significantly from Sum/Avg, and their mean over the data sets."""
    folds = {(data, form): np.array(found[data, form]["folds"]) for data in NINE for form in COLUMNS}
    rows = []
    for data in NINE:
        others = [NONE if text is None else Cell(text) for text in KNOWN.get(data, (None, None))]
        rows.append([Cell(data), *(cell(folds[data, form], folds[data, SUM]) for form in COLUMNS), *others])
    means = [np.mean([folds[data, form].mean() for data in NINE]) for form in COLUMNS]
    rows.append([Cell("mean"), *(accuracy_cell(float(mean), None) for mean in means), NONE, NONE])
    return Grid("Nine sets", ["data set", *COLUMNS.values(), "GIN, by others", "best known"], rows)


def cell(folds: np.ndarray, base: np.ndarray) -> Cell:
    """Return mean and standard deviation over the folds."""
    shown = accuracy_cell(float(folds.mean()), float(folds.std()))
    return Cell(shown.text, strong=folds is not base and corrected_paired_test(folds, base).clear)


if __name__ == "__main__":
    print(grid_markdown(grid(figures())))
