"""Print the tables of a page under docs/results from its JSON file, as Markdown.

    python -m benchmarks.pages docs/results/table2.json
    python -m benchmarks.pages docs/results/table2.json --all
    python -m benchmarks.pages PART.json PART.json ... --merge docs/results/table2.json

These are the tables that a page may show; `--all` adds every protocol, p-values and mean ranks. `--merge` first
writes the parts of one table, from `sopool reproduce --output`, as one file.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.common import make_parser
from sopool.experiments.comparison import Comparison
from sopool.experiments.reproduce.merge import merge
from sopool.experiments.reproduce.reproduction import Reproduction, load_reproduction
from sopool.models.config import Setting
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell, gain_words, p_cell, points_cell, protocol_label
from sopool.report.grids.reproduction import reproduction_grid
from sopool.report.papers import grid_markdown
from sopool.training.protocols.outcome import describe_settings

ARROW = " → "
"""Stands between the paper's figure and ours."""


def page(found: Reproduction) -> str:
    """Return the tables of the page: accuracies under `fair`, those next to the paper's, and gains under `fair`."""
    grids = [fair_grid(found), gains_grid(found)]
    if "per-fold-max" in found.protocols:
        grids.insert(1, paper_grid(found))
    return "\n".join(map(grid_markdown, grids))


def details(found: Reproduction) -> str:
    """Return the other tables: each data set next to the paper, gains under all protocols with p-values, mean ranks.

    If each fold selected its hyperparameters, the selected ones are counted instead of showing the paper's figures.
    """
    if len(found.setup["settings"]) > 1:
        each = [chosen_grid(found)]
    else:
        each = [reproduction_grid(replace(found, datasets=(name,), title=name)) for name in found.datasets]
    return "\n".join(map(grid_markdown, [*each, tests_grid(found), ranks_grid(found)]))


def fair_grid(found: Reproduction, controls: bool = True) -> Grid:
    """Return the accuracies under `fair`: a row for each model, a column for each data set."""
    rows = []
    for row in found.rows:
        cells = [found.cell(row.name, dataset).measured.get("fair") for dataset in found.datasets]
        if any(cells) and (controls or row.kind != "control"):
            figures = [NONE if one is None else accuracy_cell(one.mean, one.std) for one in cells]
            rows.append([Cell(row.name), *figures])
    return Grid("Accuracy under fair", ["model", *found.datasets], rows)


def paper_grid(found: Reproduction) -> Grid:
    """Return the accuracies of the declared models under `per-fold-max`: the paper's, then ours."""
    cells = {}
    for dataset, row, _, protocol in declared_tests(found):
        if protocol == "per-fold-max":
            cell = found.cell(row, dataset)
            paper = [] if cell.paper is None else [accuracy_cell(cell.paper.mean, None).text]
            ours = accuracy_cell(cell.measured[protocol].mean, None).text
            cells[dataset, row] = Cell(ARROW.join([*paper, ours]))
    return matrix("Accuracy under per-fold-max: paper, ours", cells)


def gains_grid(found: Reproduction) -> Grid:
    """Return the declared comparisons: the paper's gain, then ours under `fair`, bold if significant."""
    cells = {}
    for (dataset, row, against, protocol), test in declared_tests(found).items():
        if protocol == "fair":
            claimed = found.paper_gain(dataset, row, against)
            paper = [] if claimed is None else [points_cell(claimed).text]
            cells[dataset, row] = Cell(ARROW.join([*paper, gain_words(test)]), strong=test.clear)
    return matrix(f"Gain over {references(found)}: paper, ours under fair", cells)


def matrix(title: str, cells: dict[tuple[str, str], Cell]) -> Grid:
    """Return cells by data set and model as a table; the longer of the two lists goes down."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in cells))
    models = list(dict.fromkeys(model for _, model in cells))
    if len(models) > len(datasets):
        rows = [[Cell(model), *(cells.get((dataset, model), NONE) for dataset in datasets)] for model in models]
        return Grid(title, ["model", *datasets], rows)
    rows = [[Cell(dataset), *(cells.get((dataset, model), NONE) for model in models)] for dataset in datasets]
    return Grid(title, ["data set", *models], rows)


def declared_tests(found: Reproduction) -> dict[tuple[str, str, str, str], Comparison]:
    """Return the comparisons declared beforehand by data set, model, reference and protocol."""
    return {(one.dataset, one.row, one.against, one.protocol): one.comparison for one in found.compared("declared")}


def references(found: Reproduction) -> str:
    """Return the names of the poolings that others are compared with."""
    return ", ".join(dict.fromkeys(one.against.split(" + ")[-1] for one in found.compared("declared")))


def chosen_grid(found: Reproduction) -> Grid:
    """Return how many folds of all data sets selected which hyperparameters."""
    settings = [describe_settings(Setting(**setting)) for setting in found.setup["settings"]]
    rows = []
    for row in found.rows:
        cells = [found.cell(row.name, dataset).measured for dataset in found.datasets]
        if row.kind != "control" and any(cells):
            counts = [sum(one["fair"].settings.get(name, 0) for one in cells if one) for name in settings]
            rows.append([Cell(row.name), *(Cell(str(count)) for count in counts)])
    return Grid("Folds that selected each setting", ["model", *settings], rows)


def tests_grid(found: Reproduction) -> Grid:
    """Return the declared comparisons under every protocol, with p-values, next to the paper's gain."""
    tests = declared_tests(found)
    rows = []
    for key in dict.fromkeys(key[:3] for key in tests):
        claimed = found.paper_gain(*key)
        made = [tests.get((*key, name)) for name in found.protocols]
        gains = [NONE if test is None else Cell(f"{gain_words(test)}, {p_cell(test.p).text}") for test in made]
        rows.append([Cell(key[0]), Cell(key[1]), NONE if claimed is None else points_cell(claimed), *gains])
    columns = ["data set", "model", "paper's gain", *map(protocol_label, found.protocols)]
    return Grid(f"Gain over {references(found)}, 95 % interval, p", columns, rows, 2)


def ranks_grid(found: Reproduction) -> Grid:
    """Return the mean rank of each model over the data sets."""
    names = dict.fromkeys(name for one in found.across for name in one.ranks)
    rows = [[Cell(name), *(Cell(f"{one.ranks[name]:.1f}") for one in found.across)] for name in names]
    rows.append(
        [Cell("Friedman's p"), *(NONE if one.friedman is None else p_cell(one.friedman) for one in found.across)]
    )
    return Grid(
        "Mean rank over the data sets", ["model", *(protocol_label(one.protocol) for one in found.across)], rows
    )


def read(paths: Sequence[Path]) -> Reproduction:
    """Return the parts of one table as one."""
    tables = merge([load_reproduction(path) for path in paths])
    if len(tables) != 1:
        raise SystemExit(
            f"The files hold {len(tables)} tables, or one table trained in {len(tables)} ways. Give the parts of one."
        )
    return tables[0]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("parts", type=Path, nargs="+")
    parser.add_argument("--merge", type=Path, help="write the parts as one file")
    parser.add_argument("--all", action="store_true", help="print every table, not only those of the page")
    args = parser.parse_args()
    found = read(args.parts)
    if args.merge:
        args.merge.write_text(json.dumps(found.to_json(), indent=1) + "\n")
    print(page(found))
    if args.all:
        print(details(found))


if __name__ == "__main__":
    main()
