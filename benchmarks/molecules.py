"""Compare the default model with chemprop and with fingerprints and descriptors, on molecules.

    python -m benchmarks.molecules --molecules FOLDER [--chemprop PYTHON] [--data ESOL BBBP] [--systems sopool forest]
    python -m benchmarks.molecules --print

A tenth of the molecules is the test set: drawn at random, or whole scaffolds; the seed draws both the test set and the
model. Every system learns from the other molecules as it does by default: chemprop and our networks hold out a tenth of
them, by the same kind of split, to choose their epoch. Each system runs in a process of its own with one thread, and
its time is the processor time of that process. Chemprop is not installed with this package: `--chemprop` names the
Python interpreter of an environment that has it.

Each result is appended to a file as it is found, and those that the file has are not computed again. The file also
holds the predictions for the test molecules, from which `--print` computes paired bootstrap intervals over seeds and
molecules.
"""

import base64
import csv
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import command, make_parser, results_in
from sopool.objectives import METRICS
from sopool.report.grid import NONE, Cell, Grid
from sopool.report.papers import grid_markdown
from sopool.report.scores import score_text

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "molecules.jsonl"
SPLITS = ("random", "scaffold")
DRAWS = 1_000
"""The number of bootstrap samples."""
MEAN = "sopool + forest"
"""The mean of the predictions of ours and of the forest, computed from theirs."""


class Set(NamedTuple):
    """A file of molecules."""

    metric: str
    seeds: int
    in_means: bool = True


SETS = {
    "BBBP": Set("roc_auc", 3),
    "SIDER": Set("roc_auc", 3),
    "Tox21": Set("roc_auc", 3),
    "HIV": Set("roc_auc", 1),
    "ClinTox": Set("roc_auc", 3, in_means=False),
    "ESOL": Set("rmse", 3),
    "ZINC-29k": Set("mae", 1),
}
"""The data sets. The labels of ClinTox follow from how its two sources write charges, so it is left out of means."""


class Molecules(NamedTuple):
    """The molecules that RDKit can read, and their targets ``[G, T]`` with NaN for missing ones."""

    smiles: list[str]
    targets: np.ndarray
    names: list[str]
    groups: list[str]
    """The scaffold of each molecule."""


class Task(NamedTuple):
    """What a system is given, and the molecules that it predicts."""

    data: str
    split: str
    seed: int
    metric: str
    molecules: Molecules
    train: np.ndarray
    test: np.ndarray
    chemprop: str

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted, and not labels."""
        return self.metric != "roc_auc"


class Result(NamedTuple):
    """What a system predicted for the test molecules of a seed."""

    metric: str
    score: float
    cpu_seconds: float
    spread: np.ndarray
    """The standard deviation of each target."""
    predictions: np.ndarray
    truth: np.ndarray

    def scored(self, rows: np.ndarray) -> float:
        """Return the score on some of the molecules."""
        return score(self.metric, self.predictions[rows], self.truth[rows], self.spread)


Results = dict[tuple[str, str], dict[str, dict[int, Result]]]


@cache
def read(folder: Path, name: str) -> Molecules:
    """Return the molecules of a file; rows without a known target are left out."""
    from rdkit import Chem, RDLogger

    from sopool.data.formats.scaffolds import scaffold_of

    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    with gzip.open(folder / f"{name}.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    columns = [place for place, column in enumerate(header) if column not in ("id", "smiles", "split")]
    smiles, targets, groups = [], [], []
    for row in rows:
        text = row[header.index("smiles")]
        values = [float(row[place] or "nan") for place in columns]
        molecule = Chem.MolFromSmiles(text)
        if molecule is not None and molecule.GetNumAtoms() and not np.isnan(values).all():
            smiles.append(text)
            targets.append(values)
            groups.append(scaffold_of(molecule) or text)
    return Molecules(smiles, np.array(targets), [header[place] for place in columns], groups)


def divide(molecules: Molecules, split: str, seed: int, rest: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Return about nine tenths and one tenth of the molecules, or of some of them."""
    from sopool.data.honest_splits import group_folds
    from sopool.data.splits import random_folds

    some = np.arange(len(molecules.smiles)) if rest is None else rest
    if split == "random":
        train, test = random_folds(len(some), 10, seed)[0]
    else:
        groups = np.unique(molecules.groups, return_inverse=True)[1][some]
        train, test = group_folds(groups, 10, seed)[seed]
    return some[train], some[test]


def predict_sopool(task: Task) -> np.ndarray:
    """Return the predictions of the default model of ``sopool fit``."""
    from sopool import GraphClassifier, GraphRegressor
    from sopool.data import with_split
    from sopool.data.formats.molecules import smiles_to_store

    store, bad = smiles_to_store(task.molecules.smiles, on_error="raise", max_atoms=10_000)
    assert not bad
    if task.split == "scaffold":
        store = with_split(store, groups=task.molecules.groups)
    model = (GraphRegressor if task.regression else GraphClassifier)(random_state=task.seed, device="cpu")
    truth = task.molecules.targets[task.train]
    single = truth.shape[1] == 1
    if task.regression or not single:
        model.fit(store[task.train], truth)
    else:
        model.fit(store[task.train], truth[:, 0].astype(int))
    if task.regression:
        return model.predict(store[task.test]).reshape(len(task.test), -1)
    found: np.ndarray = model.predict_proba(store[task.test])
    return found[:, 1:] if single else found


def predict_forest(task: Task) -> np.ndarray:
    """Return the predictions of random forests on Morgan fingerprints; for numbers with a third of the features."""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    features = np.stack([generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(one)) for one in task.molecules.smiles])
    kind = RandomForestRegressor if task.regression else RandomForestClassifier
    some: Any = 1 / 3 if task.regression else "sqrt"
    return _each_target(task, features.astype(np.float32), lambda: kind(200, max_features=some, random_state=task.seed))


def predict_boosting(task: Task) -> np.ndarray:
    """Return the predictions of gradient boosting on RDKit's descriptors."""
    from rdkit import Chem
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    from sopool.data.formats.descriptors import calculator, descriptor_names

    compute = calculator(descriptor_names(["rdkit2d"]))
    rows = [list(compute(Chem.MolFromSmiles(one)).values()) for one in task.molecules.smiles]
    features = np.array([[np.nan if value is None else value for value in row] for row in rows], float)
    kind = HistGradientBoostingRegressor if task.regression else HistGradientBoostingClassifier
    return _each_target(task, features, lambda: kind(random_state=task.seed))


def _each_target(task: Task, features: np.ndarray, make: Callable[[], Any]) -> np.ndarray:
    """Train a model for each target on the molecules whose value is known, and return all predictions."""
    columns = []
    for values in task.molecules.targets.T:
        known = task.train[~np.isnan(values[task.train])]
        truth = values[known]
        if task.regression:
            columns.append(make().fit(features[known], truth).predict(features[task.test]))
        elif np.ptp(truth):
            columns.append(make().fit(features[known], truth).predict_proba(features[task.test])[:, 1])
        else:
            columns.append(np.full(len(task.test), truth[0]))
    return np.stack(columns, axis=1)


def predict_chemprop(task: Task, networks: int = 1) -> np.ndarray:
    """Return the predictions of chemprop with its default settings, trained and asked by its own commands."""
    train, held = divide(task.molecules, task.split, task.seed, task.train)
    part = dict.fromkeys(train.tolist(), "train") | dict.fromkeys(held.tolist(), "val")
    names = [f"target {place}" for place in range(len(task.molecules.names))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "train.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["smiles", *names, "split"])
            for row in sorted(part):
                values = ["" if np.isnan(value) else value for value in task.molecules.targets[row]]
                writer.writerow([task.molecules.smiles[row], *values, part[row]])
        with (folder / "test.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([["smiles"], *([task.molecules.smiles[row]] for row in task.test)])
        run = [task.chemprop, "-c", "from chemprop.cli.main import main; main()"]
        kind = "regression" if task.regression else "classification"
        own = ["--num-workers", "0", "--accelerator", "cpu"]
        training = ["train", "-i", "train.csv", "-o", "model", "-s", "smiles", "--target-columns", *names]
        training += ["-t", kind, "--splits-column", "split", "--pytorch-seed", str(task.seed)]
        training += ["--ensemble-size", str(networks), *own]
        prediction = ["predict", "-i", "test.csv", "-o", "found.csv", "-s", "smiles", "--model-paths", "model", *own]
        for arguments in (training, prediction):
            subprocess.run([*run, *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        with (folder / "found.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
    return np.array([[float(row[name]) for name in names] for row in rows])


def predict_chemprop_5(task: Task) -> np.ndarray:
    """Return the predictions of five networks of chemprop."""
    return predict_chemprop(task, networks=5)


SYSTEMS: dict[str, Callable[[Task], np.ndarray]] = {
    "sopool": predict_sopool,
    "forest": predict_forest,
    "boosting": predict_boosting,
    "chemprop": predict_chemprop,
    "chemprop, 5 networks": predict_chemprop_5,
}
"""The systems: our default, random forests on Morgan fingerprints, gradient boosting on RDKit's descriptors, and
chemprop with one network, its default, and with five."""
COLUMNS = ("sopool", "forest", "boosting", MEAN, "chemprop", "chemprop, 5 networks")
"""The systems in the order of the tables."""
ONLY = {"chemprop, 5 networks": ("BBBP", "SIDER", "ESOL")}
"""The data sets of systems that do not run on all."""


def jobs(args: Namespace) -> Iterator[tuple[str, str, int, str]]:
    """Yield the data set, the split, the seed and the system of each result, the quick ones first."""
    for system, name, split in product(args.systems, args.data, SPLITS):
        if name in ONLY.get(system, SETS):
            yield from ((name, split, seed, system) for seed in range(SETS[name].seeds))


def run_job(name: str, split: str, seed: int, system: str, args: Namespace) -> dict[str, Any]:
    """Return a result; the predictions are made in a process of its own."""
    alone = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    job = json.dumps([name, split, seed, system])
    own = command("benchmarks.molecules", "--molecules", args.molecules.resolve(), "--chemprop", args.chemprop)
    before = _seconds()
    done = subprocess.run([*own, "--job", job], check=True, stdout=subprocess.PIPE, text=True, env=alone)
    found = json.loads(done.stdout.splitlines()[-1])
    facts = {"data": name, "split": split, "seed": seed, "system": system}
    return facts | {"cpu_seconds": round(_seconds() - before, 1)} | found


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answer(name: str, split: str, seed: int, system: str, args: Namespace) -> dict[str, Any]:
    """Return the predictions of a job and their scores."""
    molecules = read(args.molecules, name)
    train, test = divide(molecules, split, seed)
    task = Task(name, split, seed, SETS[name].metric, molecules, train, test, args.chemprop)
    found = SYSTEMS[system](task)
    truth = molecules.targets[test]
    spread = np.nanstd(molecules.targets[train], axis=0)
    scored = {"score": score(task.metric, found, truth, spread)}
    if not task.regression:
        scored["calibration_error"] = score("calibration_error", found, truth, spread)
    return scored | {
        "metric": task.metric,
        "graphs": {"train": len(train), "test": len(test)},
        "spread": spread.tolist(),
        "predictions": packed(found),
        "truth": packed(truth),
    }


def score(metric: str, found: np.ndarray, truth: np.ndarray, spread: np.ndarray) -> float:
    """Return the mean score of the targets, errors in standard deviations if there are several targets."""
    each = []
    for target, (values, true) in enumerate(zip(found.T, truth.T, strict=True)):
        known = ~np.isnan(true)
        if metric in ("rmse", "mae"):
            given = values[known], true[known]
        else:
            chance = np.clip(values[known], 1e-7, 1 - 1e-7)
            given = np.log(np.stack([1 - chance, chance], axis=1)), true[known].astype(int)
        one = METRICS[metric].compute(*given, None) if known.any() else None
        if one is not None:
            each.append(one / spread[target] if metric in ("rmse", "mae") and len(spread) > 1 else one)
    return float(np.mean(each))


def packed(values: np.ndarray) -> str:
    """Return numbers as text, in half the precision of float32."""
    return base64.b64encode(values.astype(np.float16).tobytes()).decode()


def unpacked(text: str, targets: int) -> np.ndarray:
    """Return the numbers ``[n, targets]`` of a text."""
    return np.frombuffer(base64.b64decode(text), np.float16).astype(float).reshape(-1, targets)


def figures(path: Path = FIGURES) -> list[dict[str, Any]]:
    """Return the results of a file, none if there is no file."""
    return results_in(path)


def with_means(found: list[dict[str, Any]]) -> Results:
    """Return the results by data set and split, by system and by seed, with the mean of ours and of the forest."""
    table: Results = {}
    for one in found:
        count = len(one["spread"])
        both = (unpacked(one[name], count) for name in ("predictions", "truth"))
        result = Result(one["metric"], one["score"], one["cpu_seconds"], np.array(one["spread"]), *both)
        table.setdefault((one["data"], one["split"]), {}).setdefault(one["system"], {})[one["seed"]] = result
    for systems in table.values():
        seeds = systems.get("sopool", {}).keys() & systems.get("forest", {}).keys()
        for seed in sorted(seeds):
            one, other = systems["sopool"][seed], systems["forest"][seed]
            predictions = (one.predictions + other.predictions) / 2
            own = score(one.metric, predictions, one.truth, one.spread)
            both = one._replace(predictions=predictions, score=own, cpu_seconds=one.cpu_seconds + other.cpu_seconds)
            systems.setdefault(MEAN, {})[seed] = both
    return table


def gain(some: dict[int, Result], others: dict[int, Result], draws: int = DRAWS) -> tuple[float, float, float]:
    """Return by how much a system is better than another one, and the 95 % interval of a paired bootstrap.

    Seeds are drawn with replacement, and for each of them its test molecules; both systems are scored on the same.
    """
    seeds = sorted(some.keys() & others.keys())
    sign = METRICS[some[seeds[0]].metric].sign
    gains = [sign * (some[seed].score - others[seed].score) for seed in seeds]
    draw = np.random.default_rng(0)
    drawn = []
    for _ in range(draws):
        each = []
        for seed in draw.choice(seeds, len(seeds)):
            rows = draw.integers(len(some[seed].truth), size=len(some[seed].truth))
            each.append(sign * (some[seed].scored(rows) - others[seed].scored(rows)))
        drawn.append(np.mean(each))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(np.mean(gains)), float(low), float(high)


def scores_grid(table: Results) -> Grid:
    """Return the scores of all systems, the mean over the seeds, and their means over data sets."""
    shown = [name for name in COLUMNS if any(name in systems for systems in table.values())]
    rows = []
    for (name, split), systems in table.items():
        cells = [_score_cell(systems.get(system, {})) for system in shown]
        rows.append([Cell(f"{name}, {split}"), Cell(METRICS[SETS[name].metric].title), *cells])
    for metric, split in product(("roc_auc", "error"), SPLITS):
        title = "mean ROC-AUC" if metric == "roc_auc" else "mean error"
        cells = [_mean_cell(table, system, metric, split) for system in shown]
        rows.append([Cell(f"all, {split}"), Cell(title), *cells])
    return Grid("Scores on test molecules", ["molecules, split", "metric", *shown], rows, 2)


def _score_cell(runs: dict[int, Result]) -> Cell:
    if not runs:
        return NONE
    metric = next(iter(runs.values())).metric
    each = [one.score for one in runs.values()]
    low, high = (score_text(metric, one) for one in (min(each), max(each)))
    text = score_text(metric, float(np.mean(each)))
    return Cell(text if len(each) == 1 else f"{text} ({low} to {high})")


def _mean_cell(table: Results, system: str, metric: str, split: str) -> Cell:
    """Return the mean over the data sets, errors in standard deviations; nothing if a result is missing."""
    names = [name for name, one in SETS.items() if one.in_means and (one.metric == "roc_auc") == (metric == "roc_auc")]
    each = []
    for name in names:
        runs = table.get((name, split), {}).get(system, {})
        if len(runs) < SETS[name].seeds:
            return NONE
        scales = [one.spread[0] if SETS[name].metric == "rmse" else 1.0 for one in runs.values()]
        each.append(np.mean([one.score / scale for one, scale in zip(runs.values(), scales, strict=True)]))
    return Cell(score_text(metric, float(np.mean(each))) if metric == "roc_auc" else f"{np.mean(each):.3f}")


def gains_grid(table: Results) -> Grid:
    """Return how much better our default is than each other system; in bold if the interval excludes 0."""
    others = [name for name in COLUMNS if name != "sopool" and any(name in systems for systems in table.values())]
    rows = []
    for (name, split), systems in table.items():
        if "sopool" in systems:
            cells = [_gain_cell(name, systems["sopool"], systems.get(other, {})) for other in others]
            rows.append([Cell(f"{name}, {split}"), *cells])
    return Grid("Gain of sopool", ["molecules, split", *(f"over {other}" for other in others)], rows, 1)


def _gain_cell(name: str, some: dict[int, Result], others: dict[int, Result]) -> Cell:
    if not some.keys() & others.keys():
        return NONE
    scale = 100 if SETS[name].metric == "roc_auc" else 1
    digits = 1 if scale == 100 else 3
    middle, low, high = (scale * one for one in gain(some, others))
    text = f"{middle:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"
    return Cell(text, middle, strong=not low <= 0 <= high)


def costs_grid(table: Results) -> Grid:
    """Return the processor seconds of each system, the mean over the seeds."""
    shown = [name for name in COLUMNS if any(name in systems for systems in table.values())]
    rows = []
    for (name, split), systems in table.items():
        each = [[one.cpu_seconds for one in systems.get(system, {}).values()] for system in shown]
        rows.append([Cell(f"{name}, {split}"), *(Cell(f"{np.mean(one):,.0f}") if one else NONE for one in each)])
    return Grid("Processor seconds", ["molecules, split", *shown], rows, 1)


def main() -> None:
    """Compute what the file does not have, and print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--molecules", type=Path, default=Path(), help="folder of the files NAME.csv.gz")
    parser.add_argument("--chemprop", default=sys.executable, help="Python interpreter of chemprop's environment")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file that the results are appended to")
    parser.add_argument("--print", action="store_true", help="show the scores of the file, without training")
    parser.add_argument("--job", help="compute one result and print it as JSON")
    args = parser.parse_args()
    if args.job is not None:
        print(json.dumps(answer(*json.loads(args.job), args)))
        return
    known = {(one["data"], one["split"], one["seed"], one["system"]) for one in figures(args.figures)}
    for job in () if args.print else jobs(args):
        if job not in known:
            one = run_job(*job, args)
            with args.figures.open("a") as file:
                print(json.dumps(one), file=file)
            print(*job, f"{one['metric']} {one['score']:.4f}", f"{one['cpu_seconds']} s", flush=True)
    table = with_means(figures(args.figures))
    for grid in (scores_grid(table), gains_grid(table), costs_grid(table)):
        print(grid_markdown(grid), end="\n\n")


if __name__ == "__main__":
    main()
