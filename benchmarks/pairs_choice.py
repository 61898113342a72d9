"""Choose the one setting of `sopool-pairs` that the final comparison has, on held-out training graphs only.

    python -m benchmarks.pairs_choice [--data PROTEINS NCI1] [--epochs 100] [--device cuda]
    python -m benchmarks.pairs_choice --print

Every candidate is the default model with other options of the pooling, run on ten folds for each fold seed with a tenth
of each training fold held out, as in `benchmarks.bridge`; test folds are never read. The score of a fold is the
accuracy on its held-out graphs at the epoch that is best for the other folds. The candidate and the decoupled weight
decay with the best mean over the data sets are chosen.
"""

import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bridge import Step, figures, network_scores
from benchmarks.common import DATA, appended, make_parser
from sopool.data import load
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell
from sopool.report.papers import grid_markdown

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "pairs_choice.jsonl"
FOLD_SEEDS = (3, 4)
DECAYS = (0.0, 0.1)


def candidate(said: str, **options: Any) -> Step:
    """Return the default model with some options of the pooling, otherwise with those that the first one has."""
    options = {"normalize": "log", "layers": 2} | options
    return Step(said, options=options, model={"layers": 4}, settings=DECAYS, dropout=0.5)


CANDIDATES = {
    "first": candidate("rank 16, K = 6, log, input and first layer, sum beside"),
    "norm": candidate("unit length", normalize="norm"),
    "sqrt": candidate("signed roots of unit length", normalize="sqrt"),
    "size": candidate("divided by the nodes", normalize="size"),
    "pairs": candidate("divided by the pairs", normalize="pairs"),
    "batch-norm": candidate("log, then batch norm", batch_norm=True),
    "norm-batch-norm": candidate("unit length, then batch norm", normalize="norm", batch_norm=True),
    "input": candidate("unit length, input alone in the pairs", normalize="norm", layers=1),
    "input-log": candidate("log, input alone in the pairs", layers=1),
    "all-layers": candidate("unit length, all layers in the pairs", normalize="norm", layers=None),
    "rank-8": candidate("log, rank 8", rank=8),
    "rank-32": candidate("log, rank 32", rank=32),
    "near": candidate("log, K = 3", distances=3),
    "rest": candidate("log, K = 3 and all other pairs", distances=3, rest=True),
    "slow": candidate("log, a tenth of the learning rate", lr_scale=0.1),
    "alone": candidate("unit length, without the sum", normalize="norm", with_sum=False),
    "sum": Step("the sum alone", pool="sum", model={"layers": 4}, settings=(0.0,), dropout=0.5),
}


def missing(args: Any) -> Iterator[tuple[str, str, float, int]]:
    """Yield the data set, candidate, decay and fold seed of each result that the file does not have."""
    known = {(one["data"], one["candidate"], one["decay"], one["fold_seed"]) for one in figures(args.figures)}
    for data in args.data:
        for name in args.candidates:
            for decay in CANDIDATES[name].settings:
                for fold_seed in args.fold_seeds:
                    if (data, name, decay, fold_seed) not in known:
                        yield data, name, decay, fold_seed


def compute(args: Any) -> Iterator[dict[str, Any]]:
    """Yield the results that the file does not have."""
    stores = {data: load(data, args.root) for data in args.data}
    for (data, name), group in groupby(missing(args), key=lambda one: one[:2]):
        wanted = [(decay, fold_seed) for _, _, decay, fold_seed in group]
        each = len(wanted) if args.device != "cpu" else 1
        for some in (wanted[first : first + each] for first in range(0, len(wanted), each)):
            found = network_scores(stores[data], CANDIDATES[name], some, args)
            for (decay, fold_seed), one in zip(some, found, strict=True):
                yield {"data": data, "candidate": name, "decay": decay, "fold_seed": fold_seed} | one


def scores_of(found: list[dict[str, Any]]) -> dict[tuple[str, float], dict[str, list[float]]]:
    """Return the mean accuracy for each fold seed, by candidate and decay and then by data set."""
    each: dict[tuple[str, float], dict[str, list[float]]] = {}
    for one in found:
        own = each.setdefault((one["candidate"], one["decay"]), {})
        own.setdefault(one["data"], []).append(float(np.mean(one["folds"])))
    return each


def best(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the options with the best mean over the data sets, of those that were run on all of them."""
    each = {key: scores for key, scores in scores_of(found).items() if CANDIDATES[key[0]].pool == "sopool-pairs"}
    names = {data for scores in each.values() for data in scores}
    means = {key: np.mean(list(map(np.mean, one.values()))) for key, one in each.items() if one.keys() == names}
    name, decay = max(means, key=lambda key: float(means[key]))
    return dict(CANDIDATES[name].options) | {"decay": decay}


def grid(found: list[dict[str, Any]], names: list[str]) -> Grid:
    """Return the accuracy of each candidate at each decay, the best mean over the data sets first."""
    rows = []
    for (name, decay), scores in scores_of(found).items():
        cells = [
            accuracy_cell(float(np.mean(scores[data])), float(np.std(scores[data]))) if data in scores else NONE
            for data in names
        ]
        mean = float(np.mean([np.mean(scores[data]) for data in names if data in scores]))
        about = [Cell(name), Cell(CANDIDATES[name].said), Cell(f"{decay:g}")]
        rows.append((mean, [*about, *cells, accuracy_cell(mean, None)]))
    rows.sort(key=lambda row: -row[0])
    return Grid("Candidates", ["candidate", "options", "decay", *names, "mean"], [row for _, row in rows], 3)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", default=["PROTEINS", "NCI1"])
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--fold-seeds", nargs="+", type=int, default=list(FOLD_SEEDS))
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file that the results are appended to")
    parser.add_argument("--print", action="store_true", help="show the table of the file, without training")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.scratch = Path(folder)  # for stores of runs, in which nothing is stored
        for one in appended(args.figures, () if args.print else compute(args)):
            print(*list(one.values())[:4], f"{100 * np.mean(one['folds']):.1f} in {one['seconds']} s", flush=True)
    print(grid_markdown(grid(figures(args.figures), args.data)))


if __name__ == "__main__":
    main()
