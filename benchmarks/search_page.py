"""Print the tables of docs/results/search.md from the files in its folder, as Markdown.

    python -m benchmarks.search_page
    python -m benchmarks.search_page --all

`--all` also prints every variant on each data set, with its gain over another variant. Gains are paired by fold, with
the 95 % interval of the corrected test of `sopool evaluate`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import make_parser
from benchmarks.search_forms import AVERAGED, BIMAP, DROPOUTS, FORMS, LARGE_BATCH, SUM
from sopool.experiments.comparison import corrected_paired_test
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell, gain_words, points
from sopool.report.papers import grid_markdown

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
LARGE = ("PROTEINS", "NCI1", "IMDB-BINARY")
FIVE = (*LARGE, "MUTAG", "PTC")
BARE = ("IMDB-BINARY", "IMDB-MULTI", "COLLAB", "REDDIT-BINARY")
"""Data sets whose nodes have neither labels nor attributes."""
LARGER = ("DD", "COLLAB", "REDDIT-BINARY")
NINE = ("PROTEINS", "NCI1", "DD", *BARE, "MUTAG", "PTC")
ROUND = [
    SUM,
    *("sum-avg, no dropout", "sum-avg, normed", "dropout on embedding", "random, no dropout"),
    *(f"{kind}, {how}" for kind in ("slow", "both") for how in ("dropout on embedding", "no dropout")),
    *(f"{kind}, matrix-sqrt, no dropout" for kind in ("random", "slow", "both")),
]
POOLS = [SUM, BIMAP, "attn", "m_attn", "covpool", "attnpool"]
BATCHES = [SUM, SUM + LARGE_BATCH, BIMAP, BIMAP + LARGE_BATCH]
SLOW = "slow, dropout on embedding"
MATRIX_ROOT = "slow, rank 16, matrix-sqrt, no dropout"
MEANS = [
    SUM,
    *(form + AVERAGED for form in (SUM, "sum-avg, no dropout", "sum-avg, dropout on embedding")),
    *(f"{kind}, {way}{AVERAGED}" for kind in ("slow", "slow, rank 16, matrix-sqrt") for way in DROPOUTS),
]
WL = "control wl"
AGAINST = [WL, "control histogram", SUM, BIMAP, SLOW + AVERAGED, MATRIX_ROOT + AVERAGED]
TESTED = [form + AVERAGED for form in (SUM, "sum-avg, no dropout", SLOW, MATRIX_ROOT)]
VOTERS = ["sum-avg, dropout on embedding", "both, dropout on embedding", "slow, matrix-sqrt, no dropout"]
VOTES = {"fair": "folds", "five vote": "ensemble_folds", "three of it and two of the first vote": "mixed_folds"}

Figures = dict[tuple[str, str], dict[str, Any]]
"""Results by data set and variant."""


def summary() -> list[Grid]:
    """Return the tables of the page: the mean gain of the variants that mattered."""
    once, closer, reddit = map(read, ("search.jsonl", "search5.jsonl", "search_large.jsonl"))
    averaged = divided(closer | reddit) | divided(read("averaged.jsonl"))
    tested = table2() | read("large.jsonl") | divided(read("nine.jsonl")) | divided(read("averaged_final.jsonl"))
    first, same, default, best = TESTED
    single = ("batch norm", "batch 128", "no dropout", "matrix-sqrt", "size", "hidden layer")
    held_out = [SLOW, *MEANS[1:3], SLOW + AVERAGED, f"slow, no dropout{AVERAGED}", best]
    final = [BIMAP, "slow, matrix-sqrt, no dropout", first, same, default, best]
    others = [summary_row(base, tested, best, base, NINE) for base in (same, BIMAP)]
    others.append(summary_row(f"{first}, 2 seeds", two_seeds(divided(read("averaged_final.jsonl"))), best, first, NINE))
    return [
        summary_grid(
            "Held out: gain over bimap (paper)", [summary_row(form, once, form, BIMAP, FIVE) for form in single]
        ),
        summary_grid(
            "Held out: gain over Sum/Avg (paper)", [summary_row(form, averaged, form, SUM, NINE) for form in held_out]
        ),
        summary_grid("Test: gain over Sum/Avg (paper)", [summary_row(form, tested, form, SUM, NINE) for form in final]),
        summary_grid("Test: gain of the best variant", others, "compared with"),
        summary_grid(
            "Test: gain of three networks",
            [summary_row(form, tested, form, first, NINE, "ensemble_folds") for form in (same, default, best)],
        ),
    ]


def summary_grid(title: str, rows: list[list[Cell]], first: str = "variant") -> Grid:
    """Return one table of the page."""
    return Grid(title, [first, "mean gain", "above", "below"], rows, [0, 2, 3])


def summary_row(
    label: str, figures: Figures, form: str, base: str, datasets: Sequence[str], name: str = "folds"
) -> list[Cell]:
    """Return the mean gain of one variant over another, and where its interval excludes 0."""
    known = [data for data in datasets if (data, form) in figures and (data, base) in figures]
    tests = {
        data: corrected_paired_test(np.array(figures[data, form][name]), np.array(figures[data, base][name]))
        for data in known
    }
    gain = float(np.mean([test.difference for test in tests.values()]))
    above = ", ".join(data for data, test in tests.items() if test.low > 0)
    below = ", ".join(data for data, test in tests.items() if test.high < 0)
    return [*map(Cell, (label, points(gain), above, below))]


def page() -> str:
    """Return all tables of the search."""
    once, closer, reddit = map(read, ("search.jsonl", "search5.jsonl", "search_large.jsonl"))
    finalists, large, chosen, nine = map(read, ("final.jsonl", "large.jsonl", "large_grid.jsonl", "nine.jsonl"))
    averaged = divided(read("averaged.jsonl"))
    tested = divided(read("averaged_final.jsonl"))
    combined = [form for form in forms_of(once) if "normed" in form or form.startswith("sum-avg,")]
    single = [form for form in forms_of(once) if form not in (BIMAP, SUM, *combined)]
    grids = [
        held_out_grid("One thing at a time", once, [BIMAP, *single], FIVE),
        held_out_grid("Several at once", once, [SUM, BIMAP, *combined], FIVE),
        held_out_grid("A closer look: five times", closer, [SUM, *best_first(closer, LARGE)], FIVE),
        held_out_grid("Scale", closer | reddit, [SUM, *best_first(reddit, ["REDDIT-BINARY"])], BARE),
        held_out_grid("All nine sets", divided(closer | reddit), ROUND, NINE),
        *(finals_grid(finalists, title, name, voters(finalists, name)) for title, name in VOTES.items()),
        finals_grid(large, "larger sets", "folds", forms_of(large)),
        finals_grid(chosen, "the whole grid", "folds", [SUM, BIMAP]),
        held_out_grid("batches of 128", read("large_batches.jsonl"), BATCHES, LARGER),
        held_out_grid("other poolings", read("large_pools.jsonl"), POOLS, ("DD", "COLLAB", "COLLAB, batch 128")),
        finals_grid(read("large_controls.jsonl") | chosen | tested, "controls", "folds", AGAINST, LARGER),
        finals_grid(divided(table2() | large | nine), "all nine sets", "folds", [SUM, BIMAP, *VOTERS], NINE),
        finals_grid(divided(nine), "three vote", "ensemble_folds", VOTERS, NINE),
        held_out_grid("The mean of the parameters", divided(closer | reddit) | averaged, MEANS, NINE),
        finals_grid(table2() | large | tested, "averaged", "folds", [SUM, *TESTED], NINE),
        finals_grid(tested, "three vote", "ensemble_folds", TESTED, NINE),
        finals_grid(two_seeds(tested), "two seeds", "folds", [TESTED[0], TESTED[-1]]),
        twins_grid(
            "Larger batches", averaged | divided(read("averaged_batches.jsonl")), [SUM, SLOW, MATRIX_ROOT], NINE
        ),
    ]
    return "\n".join(map(grid_markdown, grids))


def held_out_grid(title: str, figures: Figures, forms: Sequence[str], datasets: Sequence[str]) -> Grid:
    """Return accuracies and gains over the first variant."""
    rows = []
    for form in forms:
        cells = [gain_cell(figures, form, forms[0], data, "folds") for data in datasets]
        known = [data for data in datasets if (data, form) in figures]
        gain = np.mean([mean_of(figures, form, data) - mean_of(figures, forms[0], data) for data in known])
        few = "" if len(known) == len(datasets) else f" ({len(known)} of {len(datasets)})"
        rows.append([Cell(form), *cells, Cell(points(float(gain)) + few if form != forms[0] else "")])
    return Grid(title, ["variant", *datasets, "mean gain"], rows)


def twins_grid(title: str, figures: Figures, forms: Sequence[str], datasets: Sequence[str]) -> Grid:
    """Return the gain of batches of 128 over batches of 32, with averaged parameters."""
    pairs = [(form + AVERAGED, form + LARGE_BATCH + AVERAGED) for form in forms]
    grids = [held_out_grid(title, figures, pair, datasets) for pair in pairs]
    return Grid(title, grids[0].columns, [row for grid in grids for row in grid.rows])


def finals_grid(
    figures: Figures, title: str, name: str, forms: Sequence[str], datasets: Sequence[str] | None = None
) -> Grid:
    """Return one score of the finalists by data set and variant, with the gain over the first variant."""
    rows = [
        [Cell(data), *(gain_cell(figures, form, forms[0], data, name, spread=True) for form in forms)]
        for data in datasets or dict.fromkeys(key[0] for key in figures)
    ]
    return Grid(title, ["data set", *forms], rows)


def voters(figures: Figures, name: str) -> list[str]:
    """Return the variants that have this score on every data set."""
    return [form for form in forms_of(figures) if all(name in one for key, one in figures.items() if key[1] == form)]


def gain_cell(figures: Figures, form: str, base: str, data: str, name: str, spread: bool = False) -> Cell:
    """Return the accuracy and its gain over another variant, bold if the interval excludes 0."""
    if (data, form) not in figures:
        return NONE
    folds = np.array(figures[data, form][name])
    shown = accuracy_cell(float(folds.mean()), float(folds.std()) if spread else None)
    if form == base or (data, base) not in figures:
        return shown
    test = corrected_paired_test(folds, np.array(figures[data, base][name]))
    return Cell(f"{shown.text}, {gain_words(test)}", strong=test.clear)


def mean_of(figures: Figures, form: str, data: str) -> float:
    """Return the mean accuracy over the folds."""
    return float(np.mean(figures[data, form]["folds"]))


def best_first(figures: Figures, datasets: Sequence[str]) -> list[str]:
    """Return the variants without the paper's Sum/Avg, sorted by their mean over these data sets."""
    forms = [form for form in forms_of(figures) if form != SUM and all((data, form) in figures for data in datasets)]
    return sorted(forms, key=lambda form: -np.mean([mean_of(figures, form, data) for data in datasets]))


def forms_of(figures: Figures) -> list[str]:
    """Return the variants in the order of `search_forms.py`."""
    found = {form for _, form in figures}
    return [name for form in FORMS for name in (form, form + AVERAGED) if name in found]


def divided(figures: Figures) -> Figures:
    """Use the results of the variants divided by the number of nodes on data sets without node labels or attributes."""
    found = {(data, form): one for (data, form), one in figures.items() if data not in BARE or is_one(form)}
    for (data, form), one in figures.items():
        plain = form.replace("size, ", "")
        if data in BARE and plain != form:
            found[data, plain] = one
    return found


def two_seeds(first: Figures) -> Figures:
    """Return the mean of two random seeds for each fold, where there is a second one."""
    second = divided(read("averaged_seed1.jsonl"))
    return {
        key: {"folds": ((np.array(first[key]["folds"]) + np.array(one["folds"])) / 2).tolist()}
        for key, one in second.items()
    }


def is_one(form: str) -> bool:
    """Return whether a variant is the same on all data sets."""
    return form == BIMAP or form.startswith("sum-avg")


def table2(name: str = "table2.json") -> Figures:
    """Return the paper's two variants and the kernel under `fair`, from the results of Table 2."""
    names = {"GIN-0 + Sum/Avg": SUM, "GIN-0 + SOPool_bimap": BIMAP, "wl": WL}
    cells = json.loads((RESULTS / name).read_text())["cells"]
    return {(cell["dataset"], names[cell["row"]]): cell["measured"]["fair"] for cell in cells if cell["row"] in names}


def read(name: str) -> Figures:
    """Read a file with one line for each variant on each data set."""
    lines = [json.loads(text) for text in (RESULTS / name).read_text().splitlines()]
    return {(one["data"], one["form"]): one for one in lines}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--all", action="store_true", help="print every table of the search")
    args = parser.parse_args()
    print("\n".join(map(grid_markdown, summary())))
    if args.all:
        print(page())
