"""Compare ways to choose the temperature of probabilities, on five test folds with the default classifier.

    python -m benchmarks.calibration MUTAG PTC --root FOLDER -o calibration.jsonl
    python -m benchmarks.calibration BBBP.csv.gz --split scaffold -o calibration.jsonl

The log loss and the calibration error are those of all test graphs (of several labels, averaged):

- as trained: without a temperature;
- own tenth: the temperature is fitted on the graphs that the networks of a fold held out to choose their epochs, each
  predicted by the networks that did not train on it;
- test folds: it is fitted on the test graphs of the other folds;
- where it helps: the same, if among these other folds it lowers the log loss. This is what `sopool fit` does.

At most 600 graphs are used, drawn at random. The table of the file is printed at the end.
"""

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.common import DATA, make_parser, results_in
from sopool.data import PackedGraphs, load
from sopool.estimator import GraphClassifier, base
from sopool.estimator.estimate import estimate_folds
from sopool.estimator.fitting import fit_ensemble, hold_out
from sopool.estimator.truth import KnownGraphs, known_graphs, part_of_data
from sopool.objectives import Objective
from sopool.objectives.calibration import MEASURED, cross_calibrate, fit_temperature
from sopool.report.grid import Cell, Grid
from sopool.report.papers import grid_markdown

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "calibration.jsonl"
WAYS = ("as trained", "own tenth", "test folds", "where it helps")
FOLDS = 5


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", nargs="+", help="names, or CSV files of molecules, whose columns of numbers are labels")
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--split", help="scaffold, for molecules")
    parser.add_argument("--graphs", type=int, default=600)
    parser.add_argument("--output", "-o", type=Path, required=True, help="file that lines are appended to")
    args = parser.parse_args()
    for name in args.data:
        row = {"data": Path(name).name.partition(".")[0], "split": args.split or "random"}
        row |= measure(known(graphs_of(name, args.root, args.split), args.graphs))
        with args.output.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print(grid_markdown(grid(figures(args.output))))


def graphs_of(name: str, root: Path, split: str | None) -> PackedGraphs:
    """Return a data set; of a table, all columns but the SMILES and the id are labels."""
    if not name.endswith(".csv.gz"):
        return load(name, root)
    with gzip.open(name, "rt") as file:
        columns = [column for column in next(csv.reader(file)) if column not in ("id", "smiles")]
    which = {"target_columns": columns} if len(columns) > 1 else {"label_column": columns[0]}
    return load(name, split=split, **which)


def known(store: PackedGraphs, most: int) -> KnownGraphs:
    """Return at most so many of the graphs."""
    if len(store) > most:
        store = store[np.sort(np.random.RandomState(0).permutation(len(store))[:most]).tolist()]
    return known_graphs(store, None, "classes")


def measure(graphs: KnownGraphs) -> dict[str, Any]:
    """Return the scores of each way."""
    objective, truth = graphs.objective(), graphs.truth
    folds = estimate_folds(graphs, FOLDS, 0, GraphClassifier())
    outputs, tenths = [], []
    for train, test in folds:
        model, held = fit(graphs.graphs[train.tolist()])
        outputs.append(model.outputs(graphs.graphs[test.tolist()]))
        tenths.append(fit_temperature(objective, *alone(model, graphs.graphs[train.tolist()], truth[train], held)))
    true = [truth[test] for _, test in folds]
    found, others = cross_calibrate(objective, outputs, true)
    each = {
        "as trained": outputs,
        "own tenth": [objective.tempered(own, temperature) for own, temperature in zip(outputs, tenths, strict=True)],
        "test folds": others,
        "where it helps": [
            tempered if helps(objective, outputs, true, fold) else plain
            for fold, (plain, tempered) in enumerate(zip(outputs, others, strict=True))
        ],
    }
    scores = {way: objective.score(np.concatenate(some), np.concatenate(true), MEASURED) for way, some in each.items()}
    return {"graphs": len(truth), "temperature": found.temperature, "tenths": tenths, "scores": scores}


def fit(graphs: PackedGraphs) -> tuple[GraphClassifier, list[np.ndarray]]:
    """Return a classifier with default settings and the graphs that each of its networks held out."""
    held: list[np.ndarray] = []

    def spy(tables: Any, encoder: Any, configs: Any, *more: Any) -> Any:
        objective, true = tables.goal
        held.extend(hold_out(one, objective, true.numpy(), tables.division).validation for one in configs)
        return fit_ensemble(tables, encoder, configs, *more)

    with patch.object(base, "fit_ensemble", spy), part_of_data():
        return GraphClassifier(random_state=0, device="cpu").fit(graphs), held


def alone(
    model: GraphClassifier, graphs: PackedGraphs, truth: np.ndarray, held: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the outputs for the held-out graphs by the networks that held them out, and what is true of them."""
    ensemble, objective = model.ensemble_, model.objective_
    scores = ensemble.scores(graphs, ensemble.encode(graphs)).numpy()
    out = np.zeros(scores.shape[:2], bool)
    for network, some in enumerate(held):
        out[network, some] = True
    which = np.flatnonzero(out.any(0))
    joint = [objective.joint(objective.combine(scores[out[:, one], one][:, None])) for one in which]
    return np.concatenate(joint), truth[which]


def helps(objective: Objective, outputs: Sequence[np.ndarray], true: Sequence[np.ndarray], fold: int) -> bool:
    """Return whether a temperature lowers the log loss of all folds but one."""
    rest = [other for other in range(len(outputs)) if other != fold]
    return cross_calibrate(objective, [outputs[one] for one in rest], [true[one] for one in rest])[0].helps


def figures(path: Path = FIGURES) -> list[dict[str, Any]]:
    """Return the rows of a file, none if there is no file."""
    return results_in(path)


def grid(rows: list[dict[str, Any]]) -> Grid:
    """Return the table: log loss / calibration error in percent."""

    def cell(scores: dict[str, float]) -> Cell:
        return Cell(f"{scores['log_loss']:.3f} / {100 * scores['calibration_error']:.1f}")

    lines = [
        [Cell(row["data"]), Cell(row["split"]), Cell(str(row["graphs"])), *(cell(row["scores"][way]) for way in WAYS)]
        for row in rows
    ]
    return Grid("Log loss / calibration error (percent)", ["data set", "split", "graphs", *WAYS], lines)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
