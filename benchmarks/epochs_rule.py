"""Choose how many epochs large data sets are trained for: the score on held-out graphs, and the time, of some rules.

A tenth of the training graphs is held out from everything, so that no test graph is looked at: of PROTEINS and NCI1
from those of the first fold, of Tox21 from nine tenths of the molecules, of ZINC-29k from its own training part. The
figures are those of each network alone and of the networks together.

    python -m benchmarks.epochs_rule --root FOLDER --molecules FOLDER -o rule.jsonl

The table of the file is printed at the end.
"""

import argparse
import csv
import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.common import results_in
from sopool.data import PackedGraphs, load, stratified_folds
from sopool.estimator import GraphClassifier, GraphRegressor, fitting
from sopool.estimator.fitting import LEAST_STEPS, Schedule
from sopool.objectives import METRICS, objective_for, truth_of
from sopool.report.grid import Cell, Grid
from sopool.report.papers import grid_markdown
from sopool.report.scores import score_text

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "epochs_rule.jsonl"
SMALL = 1600
"""Up to this number of graphs, all rules are the same."""
DATASETS = ("PROTEINS", "NCI1", "Tox21", "ZINC-29k")
Passes = Callable[[int], float]
RULES: dict[str, Passes | None] = {
    "50 batches": None,
    "as many graphs": lambda graphs: 100 * SMALL / graphs,
    "root": lambda graphs: 100 * (SMALL / graphs) ** 0.5,
    "twice the root": lambda graphs: min(100, 200 * (SMALL / graphs) ** 0.5),
}
"""The passes over the graphs of each rule; None for epochs of at most 50 batches, as before there was a rule."""


def main() -> None:
    """Fit each data set by each rule that is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder of PROTEINS and NCI1")
    parser.add_argument("--molecules", type=Path, required=True, help="folder of Tox21.csv.gz and ZINC-29k.csv.gz")
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", "-o", type=Path, required=True, help="file that lines are appended to")
    args = parser.parse_args()
    there = {(row["dataset"], row["rule"], row["seed"]) for row in figures(args.output)}
    for name in args.datasets.split(","):
        wanted = [rule for rule in args.rules.split(",") if (name, rule, args.seed) not in there]
        for row in measure(name, wanted, args) if wanted else ():
            print(json.dumps(row), flush=True)
            with args.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(grid_markdown(grid(figures(args.output))))


def measure(name: str, rules: list[str], args: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield the row of each rule."""
    graphs = training_graphs(name, args)
    order = np.random.default_rng(1).permutation(len(graphs))
    held, train = (graphs[np.sort(some).tolist()] for some in np.split(order, [len(graphs) // 10]))
    objective = objective_for(graphs)
    truth = truth_of(held, objective.task).numpy()
    kind = GraphRegressor if objective.task == "regression" else GraphClassifier
    for rule in rules:
        model = kind(n_models=args.models, random_state=args.seed, device=args.device)
        with patch.object(fitting, "schedule_for", lambda count, batch, rule=rule: schedule(rule, count, batch)):
            start = time.process_time()
            model.fit(train)
            seconds = time.process_time() - start
        ensemble = model.ensemble_
        scores = ensemble.scores(held, ensemble.encode(held)).cpu().double().numpy()
        each = [one.outputs(some) for one, some in zip(ensemble.objectives, scores, strict=True)]
        alone = [objective.score(outputs, truth, [objective.metric])[objective.metric] for outputs in each]
        together = model.scores(held, metrics=[objective.metric])[objective.metric]
        yield {
            "dataset": name,
            "rule": rule,
            "seed": args.seed,
            "device": args.device,
            "graphs": len(train),
            **schedule(rule, len(train), model.about_["training"]["batch_size"])._asdict(),
            "metric": objective.metric,
            "alone": np.round(alone, 4).tolist(),
            "together": round(together, 4),
            "best_epochs": [epoch + 1 for epoch in model.best_epochs_],
            "cpu_seconds": round(seconds, 1),
        }


def training_graphs(name: str, args: argparse.Namespace) -> PackedGraphs:
    """Return the graphs of a data set that may be looked at."""
    if name in ("PROTEINS", "NCI1"):
        graphs = load(name, args.root)
        return graphs[stratified_folds(graphs.labels)[0][0].tolist()]
    path = args.molecules / f"{name}.csv.gz"
    with gzip.open(path, "rt") as file:
        header = next(csv.reader(file))
    targets = [column for column in header if column not in ("id", "smiles", "split")]
    if name == "Tox21":
        graphs = load(path, target_columns=targets)
        chosen = np.random.default_rng(0).permutation(len(graphs))[: 9 * len(graphs) // 10]
        return graphs[np.sort(chosen).tolist()]
    with TemporaryDirectory() as folder, gzip.open(path, "rt") as file:
        part = Path(folder) / "train.csv"
        rows = csv.DictReader(file)
        with part.open("w", newline="") as out:
            writer = csv.DictWriter(out, header)
            writer.writeheader()
            writer.writerows(row for row in rows if row["split"] == "train")
        return load(part, target_columns=targets)


def schedule(rule: str, graphs: int, batch_size: int) -> Schedule:
    """Return the schedule of a rule."""
    steps = max(LEAST_STEPS, -(-graphs // batch_size))
    passes = RULES[rule]
    if passes is None or graphs <= SMALL:
        return Schedule(min(50, steps), 100, 30, 50)
    epochs = round(passes(graphs))
    return Schedule(steps, epochs, round(0.3 * epochs), round(0.5 * epochs))


def figures(path: Path = FIGURES) -> list[dict[str, Any]]:
    """Return the rows of a file, none if there is no file."""
    return results_in(path)


def grid(found: list[dict[str, Any]]) -> Grid:
    """Return the table of all rows, those of a data set one after the other."""
    found = sorted(found, key=lambda row: (DATASETS.index(row["dataset"]), list(RULES).index(row["rule"])))
    columns = ["data set", "graphs", "rule", "batches", "epochs", "metric", "one network", "all networks"]
    return Grid("Rules of epochs", columns, [_cells(row) for row in found], words=(0, 2, 5))


def _cells(row: dict[str, Any]) -> list[Cell]:
    metric = row["metric"]
    sizes = [f"{row[name]:,}" for name in ("graphs", "steps", "epochs")]
    scores = [score_text(metric, score) for score in (float(np.mean(row["alone"])), row["together"])]
    texts = [row["dataset"], sizes[0], row["rule"], *sizes[1:], METRICS[metric].title, *scores]
    return [Cell(text) for text in texts]


if __name__ == "__main__":
    main()
