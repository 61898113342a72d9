"""Choose what is read of molecules: scores of networks that see more and more of their atoms and bonds.

Molecules are divided by scaffold, those of ESOL at random and those of ZINC-29k as its file says. The first of ten
folds is the test set; the first of ten folds of the others, or the validation part of ZINC-29k, is held out for the
choice of a default. A score is the mean of three networks, each with a seed of its own and, for the choice of its
epoch, with held-out training molecules of its own. Each result is appended to a file as it is found, and those that the
file has are not computed again.

    python -m benchmarks.features --molecules FOLDER [--data ESOL BBBP] [--levels element all] [--device cuda]
    python -m benchmarks.features --print [--part test]

`--print` shows the scores on held-out molecules, or on the test set, without training. With `--stores FOLDER` the
molecules of each level are kept as `.graphs` files, also for a machine without RDKit.
"""

import csv
import gzip
import json
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import make_parser, results_in
from sopool.data import (
    CategoryEncoder,
    ConcatEncoder,
    NodeLabelEncoder,
    PackedGraphs,
    RandomWalkEncoder,
    load,
    load_graphs,
    save_graphs,
)
from sopool.data.division import Division
from sopool.data.features.encoder import Encoder
from sopool.estimator import GraphClassifier, GraphRegressor
from sopool.estimator.base import GraphEstimator
from sopool.objectives import METRICS, Objective, objective_for, truth_of
from sopool.report.grid import NONE, Cell, Grid
from sopool.report.papers import grid_markdown
from sopool.report.scores import score_text

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "features.jsonl"
SPLITS = {
    "ESOL": "random",
    "BBBP": "scaffold",
    "SIDER": "scaffold",
    "Tox21": "scaffold",
    "HIV": "scaffold",
    "ZINC-29k": "column:split",
}
"""What the molecules of each data set are divided by."""
FOLDS = 10
NETWORKS = 3


class Level(NamedTuple):
    """What a network sees of a molecule."""

    features: str
    gnn: str
    walks: bool = False
    descriptors: tuple[str, ...] = ()


LEVELS = {
    "element": Level("element", "gin-0"),
    "element + bond type": Level("element", "gine"),
    "+ charge": Level("charge", "gin-0"),
    "atoms": Level("atoms", "gin-0"),
    "atoms + bonds": Level("all", "gine"),
    "atoms + bonds + walks": Level("all", "gine", walks=True),
    "atoms + bonds + descriptors": Level("all", "gine", descriptors=("rdkit2d",)),
}


def compute(name: str, levels: list[str], args: Namespace) -> Iterator[dict[str, Any]]:
    """Yield the scores of a data set at each level."""
    for label in levels:
        level = LEVELS[label]
        graphs = molecules(name, level, args)
        train, held, test = parts_of(graphs)
        objective = objective_for(graphs)
        kind = GraphRegressor if objective.task == "regression" else GraphClassifier
        metric = "mae" if name == "ZINC-29k" else objective.metric if objective.task == "regression" else "roc_auc"
        model = kind(
            n_models=NETWORKS,
            gnn=level.gnn,
            encoder=encoder_of(graphs) if level.walks else None,
            metric=metric,
            random_state=0,
            device=args.device,
        )
        start = time.process_time()
        model.fit(graphs[train])
        spent = time.process_time() - start
        found = {
            part: scores(model, graphs[some], objective, metric) for part, some in (("held", held), ("test", test))
        }
        yield {
            "data": name,
            "level": label,
            "split": SPLITS[name],
            "device": args.device,
            "metric": metric,
            "graphs": {"train": len(train), "held": len(held), "test": len(test)},
            **found,
            "megabytes": round(sum(tensor.nbytes for tensor in graphs.tensors().values()) / 1e6, 1),
            "cpu_seconds": round(spent, 1),
        }


def molecules(name: str, level: Level, args: Namespace) -> PackedGraphs:
    """Return the molecules of a data set as a level reads them."""
    kept = None
    if args.stores is not None:
        kept = args.stores / f"{'-'.join((name, level.features, *level.descriptors))}.graphs"
        if kept.exists():
            return load_graphs(kept)
    path = args.molecules / f"{name}.csv.gz"
    with gzip.open(path, "rt") as file:
        header = next(csv.reader(file))
    targets = [column for column in header if column not in ("id", "smiles", "split")]
    goal = {"target_columns": targets} if len(targets) > 1 or name == "ESOL" else {"label_column": targets[0]}
    graphs = load(path, features=level.features, descriptors=level.descriptors, split=SPLITS[name], **goal)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        save_graphs(graphs, kept)
    return graphs


def encoder_of(graphs: PackedGraphs) -> Encoder:
    """Return an encoder of all that atoms are and of their return probabilities."""
    parts: list[Encoder] = [NodeLabelEncoder(), RandomWalkEncoder()]
    return ConcatEncoder(parts if graphs.node_categories is None else [*parts, CategoryEncoder()])


def parts_of(graphs: PackedGraphs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the molecules to train on, to choose by and to test on."""
    division = Division.of(graphs)
    train, test = division.folds(len(graphs), None, FOLDS)[0]
    if division.parts is not None:
        return *division.holdout(train, None), test
    inner = division.take(train) if division.arrays else division
    rest, held = inner.folds(len(train), None, FOLDS)[0]
    return train[rest], train[held], test


def scores(model: GraphEstimator, graphs: PackedGraphs, objective: Objective, metric: str) -> dict[str, Any]:
    """Return the score of each network alone, and of all together."""
    truth = truth_of(graphs, objective.task).numpy()
    ensemble = model.ensemble_
    each = ensemble.scores(graphs, ensemble.encode(graphs)).cpu().double().numpy()
    alone = [
        one.score(one.outputs(some), truth, [metric])[metric]
        for one, some in zip(ensemble.objectives, each, strict=True)
    ]
    return {"alone": np.round(alone, 4).tolist(), "together": round(model.scores(graphs, metrics=[metric])[metric], 4)}


def figures(path: Path = FIGURES) -> list[dict[str, Any]]:
    """Return the results of a file, none if there is no file."""
    return results_in(path)


def grid(found: list[dict[str, Any]], part: str = "held") -> Grid:
    """Return a table with a line for each level and a column for each data set."""
    by_place = {(one["data"], one["level"]): one for one in found}
    names = [name for name in SPLITS if any(name == data for data, _ in by_place)]
    metrics = {one["data"]: one["metric"] for one in found}
    rows = [[Cell(label), *(_cell(by_place.get((name, label)), part) for name in names)] for label in LEVELS]
    headings = [f"{name}, {METRICS[metrics[name]].title}" for name in names]
    return Grid("What networks see of molecules", ["atoms and bonds", *headings], rows, 1)


def _cell(one: dict[str, Any] | None, part: str) -> Cell:
    if one is None:
        return NONE
    alone = one[part]["alone"]
    low, high = (score_text(one["metric"], some) for some in (min(alone), max(alone)))
    return Cell(f"{score_text(one['metric'], float(np.mean(alone)))} ({low} to {high})", float(np.mean(alone)))


def main() -> None:
    """Compute what the file does not have, and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--molecules", type=Path, default=Path(), help="folder of the files NAME.csv.gz")
    parser.add_argument("--stores", type=Path, help="folder for the molecules of each level")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file that the results are appended to")
    parser.add_argument("--part", choices=("held", "test"), default="held", help="the scores to print")
    parser.add_argument("--print", action="store_true", help="show the scores of the file, without training")
    args = parser.parse_args()
    known = {(one["data"], one["level"]) for one in figures(args.figures)}
    for name in () if args.print else args.data:
        for one in compute(name, [label for label in args.levels if (name, label) not in known], args):
            with args.figures.open("a") as file:
                print(json.dumps(one), file=file)
            print(one["data"], one["level"], one["held"]["alone"], f"{one['cpu_seconds']} s", flush=True)
    print(grid_markdown(grid(figures(args.figures), args.part)))


if __name__ == "__main__":
    main()
