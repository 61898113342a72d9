"""Compare `sopool-pairs`, with the setting that `benchmarks.pairs_choice` chose, and a sum on 21 data sets.

    python -m benchmarks.pairs_final --molecules FOLDER [--data ESOL PROTEINS] [--contenders pairs sum] [--device cuda]
    python -m benchmarks.pairs_final --print

The plan is docs/results/pairs_plan.md. On molecules, five seeds of three networks predict a fixed test set: that of
ZINC-29k, and a tenth of whole scaffolds of the others; the test is a paired bootstrap over seeds and molecules. On all
other graphs it is the corrected resampled t-test over the folds of `fair` with the fold seeds 1 and 2. All p-values are
adjusted together by Holm's method.

Each result is appended to a file as it is found, and those that the file has are not computed again.
"""

import csv
import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import pairs_choice
from benchmarks.bridge import figures
from benchmarks.common import DATA, appended, make_parser
from benchmarks.molecules import SETS as MOLECULES
from benchmarks.molecules import Result, divide, packed, read, score, unpacked
from sopool.data import load
from sopool.data.analysis.distances import MOST_PAIRS, affordable
from sopool.experiments import Evaluator, Request
from sopool.experiments.comparison import corrected_paired_test
from sopool.experiments.statistics import holm
from sopool.models.config import Setting
from sopool.objectives import METRICS
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell, gain_words, p_cell
from sopool.report.papers import grid_markdown
from sopool.report.scores import score_text
from sopool.training.runs.store import RunStore

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "pairs_final.jsonl"
ATTRIBUTED = ("Letter-low", "Letter-med", "ENZYMES", "COIL-RAG", "DHFR", "BZR", "Mutagenicity", "AIDS")
PLAIN = ("MUTAG", "PTC", "PROTEINS", "NCI1", "DD", "IMDB-BINARY", "IMDB-MULTI", "COLLAB", "REDDIT-BINARY")
FAMILIES = {"molecules": ("ZINC-29k", "ESOL", "Tox21", "HIV"), "attributed": ATTRIBUTED, "without attributes": PLAIN}
SEEDS = {"molecules": (0, 1, 2, 3, 4), "attributed": (1, 2), "without attributes": (1, 2)}
DRAWS = 10_000


class Contender(NamedTuple):
    """A pooling with its options; None for the chosen setting of pairs."""

    said: str
    pool: str
    options: dict[str, Any] | None = None
    hidden: int = 32


CONTENDERS = {
    "pairs": Contender("pairs", "sopool-pairs"),
    "sum": Contender("Sum", "sum", {}),
    "mean": Contender("Avg", "mean", {}),
    "bimap": Contender("bimap", "sopool-bimap", {}),
    "bimap, moments": Contender("bimap and sum", "sopool-bimap", {"moments": (1, 2)}),
    "sum, 64": Contender("Sum, 64 wide", "sum", {}, 64),
}


def options_of(contender: Contender, choice: Path) -> dict[str, Any]:
    """Return the options of a contender; those of pairs are the best candidate's."""
    if contender.options is not None:
        return contender.options
    return pairs_choice.best(figures(choice))


def graph_result(data: str, name: str, seed: int, args: Any) -> dict[str, Any]:
    """Return the test accuracy of each fold under `fair`."""
    contender = CONTENDERS[name]
    graphs = load(data, args.root)
    options = options_of(contender, args.choice)
    if "distances" in options:
        options |= {"distances": affordable(graphs, options["distances"], MOST_PAIRS)}
    setting = Setting(hidden=contender.hidden)
    request = Request([contender.pool], settings=[setting], epochs=100, pool_options=options, fold_seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        found = Evaluator(graphs, request, RunStore(folder)).evaluate(device=args.device)
        assert found is not None
        (one,) = found
        return {"folds": np.round(one.outcomes["fair"].folds, 6).tolist()}


def molecule_result(data: str, name: str, seed: int, args: Any) -> dict[str, Any]:
    """Return the predictions for the test molecules."""
    from sopool import GraphClassifier, GraphRegressor
    from sopool.data import with_split
    from sopool.data.formats.molecules import smiles_to_store

    molecules = read(args.molecules, data)
    train, test = _divided(data, args.molecules)
    store, bad = smiles_to_store(molecules.smiles, on_error="raise", max_atoms=10_000)
    assert not bad
    if data != "ZINC-29k":
        store = with_split(store, groups=molecules.groups)
    contender = CONTENDERS[name]
    regression = MOLECULES[data].metric != "roc_auc"
    kind = GraphRegressor if regression else GraphClassifier
    model = kind(
        pool=contender.pool,
        pool_options=options_of(contender, args.choice),
        hidden=contender.hidden,
        n_models=3,
        random_state=seed,
        device=args.device,
    )
    truth = molecules.targets[train]
    single = truth.shape[1] == 1 and not regression
    model.fit(store[train], truth[:, 0].astype(int) if single else truth)
    if regression:
        found = model.predict(store[test]).reshape(len(test), -1)
    else:
        found = model.predict_proba(store[test])
        found = found[:, 1:] if single else found
    spread = np.nanstd(molecules.targets[train], axis=0)
    truth = molecules.targets[test]
    return {
        "score": score(_metric(data), found, truth, spread),
        "spread": spread.tolist(),
        "predictions": packed(found),
        "truth": packed(truth),
    }


def _metric(data: str) -> str:
    """The plan compares errors by their root mean square."""
    return "roc_auc" if MOLECULES[data].metric == "roc_auc" else "rmse"


def _divided(data: str, folder: Path) -> tuple[np.ndarray, ...]:
    """Return the training and test molecules."""
    molecules = read(folder, data)
    if data != "ZINC-29k":
        return divide(molecules, "scaffold", 0)
    with gzip.open(folder / f"{data}.csv.gz", "rt", newline="") as file:
        parts = np.array([row["split"] for row in csv.DictReader(file)])
    assert len(parts) == len(molecules.smiles)
    return np.flatnonzero(parts != "test"), np.flatnonzero(parts == "test")


def family_of(data: str) -> str:
    """Return the family of a data set."""
    return next(family for family, names in FAMILIES.items() if data in names)


def compute(args: Any) -> Iterator[dict[str, Any]]:
    """Yield the results that the file does not have."""
    known = {(one["data"], one["contender"], one["seed"]) for one in figures(args.figures)}
    for name in args.contenders:
        for data in args.data:
            family = family_of(data)
            for seed in SEEDS[family] if args.seeds is None else args.seeds:
                if (data, name, seed) not in known:
                    judge = molecule_result if family == "molecules" else graph_result
                    yield {"data": data, "contender": name, "seed": seed} | judge(data, name, seed, args)


class Gain(NamedTuple):
    """The gain of pairs over the sum on a data set."""

    text: str
    p: float
    difference: float


def gain_of(data: str, mine: dict[int, Any], other: dict[int, Any]) -> Gain:
    """Test one of the declared comparisons."""
    seeds = sorted(mine)
    if family_of(data) != "molecules":
        both = (np.concatenate([some[seed]["folds"] for seed in seeds]) for some in (mine, other))
        test = corrected_paired_test(*both, repeats=len(seeds))
        return Gain(gain_words(test), test.p, test.difference)
    pairs = [(_result(data, mine[seed]), _result(data, other[seed])) for seed in seeds]
    sign = METRICS[_metric(data)].sign
    draw = np.random.default_rng(0)
    drawn = np.empty(DRAWS)
    for number in range(DRAWS):
        rows = draw.integers(len(pairs[0][0].truth), size=len(pairs[0][0].truth))
        each = (pairs[at] for at in draw.integers(len(pairs), size=len(pairs)))
        drawn[number] = np.mean([sign * (one.scored(rows) - two.scored(rows)) for one, two in each])
    low, high = np.quantile(drawn, [0.025, 0.975])
    p = min(1.0, 2 * max(1, min((drawn <= 0).sum(), (drawn >= 0).sum())) / DRAWS)
    mean = float(np.mean([sign * (one.score - two.score) for one, two in pairs]))
    scale, digits = (100, 1) if _metric(data) == "roc_auc" else (1, 3)
    text = f"{scale * mean:+.{digits}f} ({scale * low:+.{digits}f} to {scale * high:+.{digits}f})"
    return Gain(text, float(p), mean)


def _result(data: str, one: dict[str, Any]) -> Result:
    """Return a stored result, which is scored on some molecules at a time."""
    spread = np.array(one["spread"])
    both = (unpacked(one[name], len(spread)) for name in ("predictions", "truth"))
    return Result(_metric(data), one["score"], 0.0, spread, *both)


def grid(found: list[dict[str, Any]]) -> Grid:
    """Return the scores of all contenders and the comparisons, for data sets of which both have the same seeds."""
    table: dict[str, dict[str, dict[int, Any]]] = {}
    for one in found:
        table.setdefault(one["data"], {}).setdefault(one["contender"], {})[one["seed"]] = one
    gains = {
        data: gain_of(data, each["pairs"], each["sum"])
        for data, each in table.items()
        if {"pairs", "sum"} <= set(each) and each["pairs"].keys() == each["sum"].keys()
    }
    adjusted = dict(zip(gains, holm([one.p for one in gains.values()]), strict=True))
    shown = [name for name in CONTENDERS if any(name in each for each in table.values())]
    rows = []
    for data in (name for names in FAMILIES.values() for name in names if name in gains):
        cells = [_cell(data, table[data].get(name, {})) for name in shown]
        clear = adjusted[data] < 0.05
        tested = [Cell(gains[data].text, gains[data].difference, strong=clear), p_cell(adjusted[data])]
        rows.append([Cell(data), *cells, *tested])
    titles = [CONTENDERS[name].said for name in shown]
    return Grid("Pairs and a sum", ["data set", *titles, "pairs over Sum", "p (Holm)"], rows, 1)


def _cell(data: str, each: dict[int, Any]) -> Cell:
    """Return the mean over seeds, with its spread over folds or seeds."""
    if not each:
        return NONE
    if family_of(data) != "molecules":
        folds = np.concatenate([one["folds"] for one in each.values()])
        return accuracy_cell(float(folds.mean()), float(folds.std()))
    scores = [one["score"] for one in each.values()]
    return Cell(score_text(_metric(data), float(np.mean(scores))), float(np.mean(scores)))


def main() -> None:
    parser = make_parser(__doc__)
    every = [name for names in FAMILIES.values() for name in names]
    parser.add_argument("--data", nargs="+", choices=every, default=every)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=["pairs", "sum"])
    parser.add_argument("--seeds", nargs="+", type=int, help="some of the seeds of the plan")
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--molecules", type=Path, default=Path(), help="folder of the files NAME.csv.gz")
    parser.add_argument("--choice", type=Path, default=pairs_choice.FIGURES, help="results of benchmarks.pairs_choice")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file that the results are appended to")
    parser.add_argument("--print", action="store_true", help="show the table of the file, without training")
    args = parser.parse_args()
    for one in appended(args.figures, () if args.print else compute(args)):
        shown = np.mean(one["folds"]) if "folds" in one else one["score"]
        print(one["data"], one["contender"], one["seed"], f"{shown:.4f}", flush=True)
    print(grid_markdown(grid(figures(args.figures))))


if __name__ == "__main__":
    main()
