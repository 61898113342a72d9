"""Evaluate systems, and poolings beside them, on the same folds under all protocols.

    python -m benchmarks.systems [--data MUTAG PROTEINS] [--systems fixed trained sum-avg] [--fold-seeds 0 1]
    python -m benchmarks.systems --print

`fixed` and `trained` stand for all systems of a kind; other names are systems and poolings. Networks train 100 epochs,
or fewer if their recipe has fewer. ESOL is a regression, and BBBP is divided by scaffold; both are read from
`--molecules`. A system that refuses some graphs has its reason in place of a result.

Each result is appended to a file as it is found, and those that the file has are not computed again.
"""

import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bridge import figures
from benchmarks.common import DATA, appended, make_parser
from sopool.data import PackedGraphs, load
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import SYSTEMS
from sopool.models.presets import POOLS
from sopool.objectives import METRICS
from sopool.report.grid import NONE, Cell, Grid
from sopool.report.papers import grid_markdown
from sopool.report.scores import score_text
from sopool.training.runs.store import RunStore

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "systems.jsonl"
PROTOCOLS = ("fair", "single-epoch", "last-epoch", "per-fold-max")
GRAPHS = ("MUTAG", "PTC", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI", "NCI1", "DD", "COLLAB", "REDDIT-BINARY")
OTHERS = ("ENZYMES", "Letter-low", "BBBP", "ESOL")
MOLECULES: dict[str, dict[str, Any]] = {
    "BBBP": {"smiles_column": "smiles", "label_column": "permeable", "split": "scaffold"},
    "ESOL": {"smiles_column": "smiles", "target_columns": ["log_solubility"]},
}
DESCRIBED = ("morgan", "atom-pairs", "rdkit2d")
"""The descriptors of molecules that systems need, as their names begin."""
EPOCHS = 100


@cache
def graphs_of(data: str, descriptors: str, root: Path, molecules: Path) -> PackedGraphs:
    """Return a data set; MUTAG is the one of this package, whose edges have labels."""
    if data in MOLECULES:
        described = [descriptors] if descriptors else []
        return load(molecules / f"{data}.csv.gz", **MOLECULES[data], descriptors=described)
    return load(data) if data == "MUTAG" else load(data, root)


def names_of(wanted: list[str]) -> list[str]:
    """Return the names of systems and poolings."""
    every: list[str] = []
    for name in wanted:
        kind = [one for one, system in SYSTEMS.items() if system.kind == name]
        every += kind or [name]
    return list(dict.fromkeys(every))


def result(graphs: PackedGraphs, name: str, fold_seed: int, args: Any) -> dict[str, Any]:
    """Return the score of each fold under each protocol, with what was selected."""
    start = time.perf_counter()
    request = Request([name], PROTOCOLS, epochs=EPOCHS, fold_seed=fold_seed)
    evaluator = Evaluator(graphs, request, RunStore(args.runs))
    if name in evaluator.refused:
        return {"refused": evaluator.refused[name]}
    found = evaluator.evaluate(device=args.device, workers=args.workers)
    assert found is not None
    (one,) = found
    return {
        "metric": evaluator.objective.metric,
        "seconds": round(time.perf_counter() - start, 1),
        **{name: np.round(outcome.folds, 6).tolist() for name, outcome in one.outcomes.items()},
    }


def compute(args: Any) -> Iterator[dict[str, Any]]:
    """Yield the results that the file does not have."""
    known = {(one["data"], one["system"], one["fold_seed"]) for one in figures(args.figures)}
    for fold_seed in args.fold_seeds:
        for data in args.data:
            wanted = [name for name in names_of(args.systems) if (data, name, fold_seed) not in known]
            for name in wanted:
                descriptors = next((one for one in DESCRIBED if name.startswith(one)), "")
                graphs = graphs_of(data, descriptors, args.root, args.molecules)
                yield {"data": data, "system": name, "fold_seed": fold_seed} | result(graphs, name, fold_seed, args)


def grid(found: list[dict[str, Any]], data: str) -> Grid:
    """Return the table of a data set: each system under each protocol, the best under `fair` first."""
    each: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        if one["data"] == data and "refused" not in one:
            each.setdefault(one["system"], []).append(one)
    rows = []
    for name, runs in each.items():
        metric = runs[0]["metric"]
        kind = SYSTEMS[name].kind if name in SYSTEMS else "pooling"
        cells = [_cell(metric, [one[protocol] for one in runs]) for protocol in PROTOCOLS]
        order = -METRICS[metric].sign * float(np.mean([one["fair"] for one in runs]))
        rows.append((order, [Cell(name), Cell(kind), Cell(str(len(runs))), *cells]))
    rows.sort(key=lambda row: row[0])
    columns = ["system", "kind", "fold seeds", *PROTOCOLS]
    return Grid(data, columns, [row for _, row in rows], 2)


def _cell(metric: str, folds: list[list[float]]) -> Cell:
    """Return the mean over all folds and their standard deviation."""
    if not folds:
        return NONE
    mean, spread = float(np.mean(folds)), float(np.std(folds))
    if metric in ("rmse", "mae"):
        return Cell(f"{mean:.3f} ± {spread:.3f}", mean)
    return Cell(f"{score_text(metric, mean).removesuffix(' %')} ± {100 * spread:.1f}", mean)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=(*GRAPHS, *OTHERS), default=[*GRAPHS, *OTHERS])
    parser.add_argument("--systems", nargs="+", default=["fixed"], help=f"fixed, trained, or names, also of {POOLS[0]}")
    parser.add_argument("--fold-seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--molecules", type=Path, default=Path(), help="folder of the files NAME.csv.gz")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--runs", type=Path, help="store of runs, from which interrupted evaluations continue")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file that the results are appended to")
    parser.add_argument("--print", action="store_true", help="show the tables of the file, without training")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.runs = args.runs or Path(folder)
        for one in appended(args.figures, () if args.print else compute(args)):
            shown = one.get("refused") or f"{np.mean(one['fair']):.4f} in {one['seconds']} s"
            print(one["data"], one["system"], one["fold_seed"], shown, flush=True)
    known = figures(args.figures)
    for data in (name for name in args.data if any(one["data"] == name for one in known)):
        print(grid_markdown(grid(known, data)))


if __name__ == "__main__":
    main()
