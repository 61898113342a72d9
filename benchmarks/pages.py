"""The tables of the pages under docs/results, from the figures that lie there.

    python -m benchmarks.pages docs/results/table2.json
    python -m benchmarks.pages PART.json PART.json ... --merge docs/results/table2.json

Prints Markdown. `--merge` first writes the parts of one table, from `sopool reproduce --output`, as one file.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.common import make_parser
from sopool.experiments.reproduce.merge import merge
from sopool.experiments.reproduce.reproduction import Reproduction, load_reproduction
from sopool.models.config import Setting
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell, gain_words, p_cell, points_cell, protocol_label
from sopool.report.grids.reproduction import reproduction_grid
from sopool.report.papers import grid_markdown
from sopool.training.protocols.outcome import describe_settings


def page(found: Reproduction) -> str:
    """`fair` over all data sets, each data set beside the paper, the declared comparisons, the ranks.

    Where folds chose their setting, what they chose stands there instead of the paper's figures.
    """
    if len(found.setup["settings"]) > 1:
        each = [chosen_grid(found)]
    else:
        each = [reproduction_grid(replace(found, datasets=(name,), title=name)) for name in found.datasets]
    return "\n".join(map(grid_markdown, [fair_grid(found), *each, gains_grid(found), ranks_grid(found)]))


def fair_grid(found: Reproduction) -> Grid:
    """Lines by data sets."""
    rows = []
    for row in found.rows:
        cells = [found.cell(row.name, dataset).measured.get("fair") for dataset in found.datasets]
        if any(cells):
            figures = [NONE if one is None else accuracy_cell(one.mean, one.std) for one in cells]
            rows.append([Cell(row.name), *figures])
    return Grid("All data sets under fair", ["line", *found.datasets], rows)


def chosen_grid(found: Reproduction) -> Grid:
    """How many folds of all data sets chose which setting."""
    settings = [describe_settings(Setting(**setting)) for setting in found.setup["settings"]]
    rows = []
    for row in found.rows:
        cells = [found.cell(row.name, dataset).measured for dataset in found.datasets]
        if row.kind != "control" and any(cells):
            counts = [sum(one["fair"].settings.get(name, 0) for one in cells if one) for name in settings]
            rows.append([Cell(row.name), *(Cell(str(count)) for count in counts)])
    return Grid("Folds that chose a setting", ["line", *settings], rows)


def gains_grid(found: Reproduction) -> Grid:
    """The comparisons declared beforehand, under each protocol, beside the gain that the paper shows."""
    tests = {(one.dataset, one.row, one.against, one.protocol): one.comparison for one in found.compared("declared")}
    rows = []
    for key in dict.fromkeys(key[:3] for key in tests):
        claimed = found.paper_gain(*key)
        made = [tests.get((*key, name)) for name in found.protocols]
        gains = [NONE if test is None else Cell(f"{gain_words(test)}, {p_cell(test.p).text}") for test in made]
        rows.append([Cell(key[0]), Cell(key[1]), NONE if claimed is None else points_cell(claimed), *gains])
    columns = ["data set", "line", "paper's gain", *map(protocol_label, found.protocols)]
    others = dict.fromkeys(one.against.split(" + ")[-1] for one in found.compared("declared"))
    return Grid(f"Against {', '.join(others)}, on equal terms", columns, rows, 2)


def ranks_grid(found: Reproduction) -> Grid:
    """The mean rank of each line over the data sets."""
    names = dict.fromkeys(name for one in found.across for name in one.ranks)
    rows = [[Cell(name), *(Cell(f"{one.ranks[name]:.1f}") for one in found.across)] for name in names]
    rows.append(
        [Cell("Friedman's p"), *(NONE if one.friedman is None else p_cell(one.friedman) for one in found.across)]
    )
    return Grid("Mean rank over the data sets", ["line", *(protocol_label(one.protocol) for one in found.across)], rows)


def read(paths: Sequence[Path]) -> Reproduction:
    """The parts of one table as one."""
    tables = merge([load_reproduction(path) for path in paths])
    if len(tables) != 1:
        raise SystemExit(f"These are {len(tables)} tables, or one trained in {len(tables)} ways: give parts of one.")
    return tables[0]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("parts", type=Path, nargs="+")
    parser.add_argument("--merge", type=Path, help="write the parts as one file")
    args = parser.parse_args()
    found = read(args.parts)
    if args.merge:
        args.merge.write_text(json.dumps(found.to_json(), indent=1) + "\n")
    print(page(found))


if __name__ == "__main__":
    main()
