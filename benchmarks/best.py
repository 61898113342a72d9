"""Print the table of docs/best.md as Markdown and draw its figure, from the results of the search.

    python -m benchmarks.best docs/images/best.svg

The table has the gains of preset best over other models on the test folds of nine data sets.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import make_parser
from benchmarks.gains import frame, mark, save
from benchmarks.search_forms import AVERAGED, BIMAP, SUM
from benchmarks.search_page import MATRIX_ROOT, NINE, SLOW, Figures, divided, read, table2
from sopool.experiments.comparison import Comparison, corrected_paired_test
from sopool.report.grid import Cell, Grid, gain_words
from sopool.report.papers import grid_markdown

BEST = MATRIX_ROOT + AVERAGED
DEFAULT = SLOW + AVERAGED
ALIKE = {BEST: "sum-avg, no dropout" + AVERAGED, DEFAULT: SUM + AVERAGED}
"""Sum/Avg with the same preset."""
GRID = f"{SUM}, whole grid"
"""Sum/Avg with width and batch size selected in each fold."""
NAMES = {
    SUM: "Sum/Avg (paper)",
    GRID: "Sum/Avg, whole grid",
    ALIKE[BEST]: "Sum/Avg, same preset",
    BIMAP: "bimap (paper)",
}
KNOWN = {
    "PROTEINS": ("73.3", "76.5"),
    "NCI1": ("80.0", "85.0"),
    "DD": ("75.3", "78.4"),
    "IMDB-BINARY": ("71.2", "74.4"),
    "IMDB-MULTI": ("48.5", "51.6"),
    "COLLAB": ("75.6", None),
    "REDDIT-BINARY": ("89.9", None),
}
"""Published nested cross-validation: GIN, and the best result known to us."""
COLOURS = {BEST: "#0072B2", DEFAULT: "#009E73", BIMAP: "#D55E00"}
LABELS = {BEST: "--preset best", DEFAULT: "--preset default", BIMAP: "bimap as in the paper"}


def figures() -> Figures:
    """Return the results under `fair`, seed 0."""
    chosen = table2("table2_full.json") | read("large_grid.jsonl")
    grid = {(data, GRID): one for (data, form), one in chosen.items() if form == SUM}
    return table2() | read("large.jsonl") | divided(read("averaged_final.jsonl")) | grid


def gain(found: Figures, data: str, form: str, over: str) -> Comparison:
    """Return the comparison of two variants, paired by fold."""
    return corrected_paired_test(*(np.array(found[data, one]["folds"]) for one in (form, over)))


def grid(found: Figures) -> Grid:
    """Return the gains of preset best over four other models."""
    rows = []
    for data in NINE:
        tests = [gain(found, data, BEST, over) for over in NAMES]
        rows.append([Cell(data), *(Cell(gain_words(test), strong=test.clear) for test in tests)])
    return Grid("Gains of preset best", ["data set", *(f"over {name}" for name in NAMES.values())], rows)


def draw(found: Figures) -> Figure:
    """Draw the gains over the paper's Sum/Avg and over Sum/Avg with the same preset."""
    figure = Figure(figsize=(9.5, 4.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, others in zip(panels, (dict.fromkeys(COLOURS, SUM), ALIKE), strict=True):
        for (form, over), offset in zip(others.items(), (-0.22, 0.0, 0.22), strict=False):
            for place, data in enumerate(NINE):
                mark(panel, place + offset, gain(found, data, form, over), COLOURS[form])
        frame(panel, f"over {NAMES[others[BEST]]}", NINE)
        panel.set_xlabel("points, with 95 % interval")
    marks = [panels[0].plot([], [], "o-", color=COLOURS[form], label=LABELS[form])[0] for form in COLOURS]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    found = figures()
    print(grid_markdown(grid(found)))
    save(lambda: draw(found), args.picture)


if __name__ == "__main__":
    main()
