"""Cross-validate poolings on data sets whose nodes or edges carry more than one label, under `fair`.

    python -m benchmarks.attributed [--data ENZYMES Letter-med] [--epochs 100] [--device cuda]
    python -m benchmarks.attributed --print

Ten folds of three runs, preset default, seed 0, 50 batches an epoch. Each result is appended to a file as it is found,
and those that the file has are not computed again; interrupted runs continue from the folder of runs. `--print` shows
the table of the file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import DATA, appended, make_parser, results_in
from sopool.data import load
from sopool.experiments import Evaluator, Request
from sopool.experiments.comparison import corrected_paired_test
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell, gain_words
from sopool.report.papers import grid_markdown
from sopool.training.runs.store import RunStore

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "attributed.jsonl"
POOLS = {"sum": "Sum", "mean": "Avg", "sopool-bimap": "bimap"}
SETS = {
    "ENZYMES": "18 attributes, 3 labels",
    "Letter-low": "2 coordinates",
    "Letter-med": "2 coordinates",
    "COIL-RAG": "64 attributes",
    "DHFR": "3 coordinates, 9 labels",
    "BZR": "3 coordinates, 10 labels",
    "AIDS": "4 attributes, 38 labels, 3 edge labels",
    "Mutagenicity": "14 labels, 3 edge labels",
}
"""The data sets, with what their nodes and edges carry."""
WITH_EDGES = ("AIDS", "Mutagenicity")
"""The sets that are also given to a network that uses edge labels."""


def compute(names: list[str], args: Any) -> Iterator[dict[str, Any]]:
    """Yield the results that the file does not have."""
    known = {(one["data"], one["gnn"], one["pool"]) for one in figures(args.figures)}
    for name in names:
        graphs = load(name, args.root)
        for gnn in ("gin-0", "gine") if name in WITH_EDGES else ("gin-0",):
            wanted = [pool for pool in POOLS if (name, gnn, pool) not in known]
            if not wanted:
                continue
            request = Request(wanted, gnn=gnn, epochs=args.epochs)
            found = Evaluator(graphs, request, RunStore(args.runs)).evaluate(device=args.device)
            for one in found or ():
                folds = np.round(one.outcomes["fair"].folds, 6).tolist()
                yield {"data": name, "gnn": gnn, "pool": one.pool, "epochs": args.epochs, "folds": folds}


def figures(path: Path = FIGURES) -> list[dict[str, Any]]:
    """Return the results of the file."""
    return results_in(path)


def grid(found: list[dict[str, Any]]) -> Grid:
    """Return the table: the accuracy of each pooling, and the gain of bimap over the sum."""
    folds: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in found:
        folds.setdefault((one["data"], one["gnn"]), {})[one["pool"]] = one["folds"]
    rows = []
    for (data, gnn), each in folds.items():
        cells = [accuracy_cell(float(np.mean(one)), float(np.std(one))) for one in map(each.get, POOLS) if one]
        test = (
            corrected_paired_test(each["sopool-bimap"], each["sum"]) if {"sopool-bimap", "sum"} <= set(each) else None
        )
        gain = NONE if test is None else Cell(gain_words(test), test.difference, test.clear)
        rows.append([Cell(data), Cell(SETS[data]), Cell(gnn), *cells, gain])
    return Grid(
        "Attributed graphs", ["data set", "nodes and edges carry", "GNN", *POOLS.values(), "bimap over Sum"], rows, 3
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file that the results are appended to")
    parser.add_argument("--print", action="store_true", help="show the table of the file, without training")
    args = parser.parse_args()
    for one in appended(args.figures, () if args.print else compute(args.data, args)):
        print(one["data"], one["gnn"], one["pool"], f"{100 * np.mean(one['folds']):.1f}", flush=True)
    print(grid_markdown(grid(figures(args.figures))))


if __name__ == "__main__":
    main()
