"""Go from a linear model on pair counts to a network with `sopool-pairs`, one change a step, on held-out graphs only.

    python -m benchmarks.bridge [--data PROTEINS NCI1] [--epochs 100] [--device cuda]
    python -m benchmarks.bridge --dry-run
    python -m benchmarks.bridge --print

Nodes have one label: their own together with their degree. Every step is run on ten folds for each of five fold seeds,
with a tenth of each training fold held out; test folds are never read. A step has several settings, the penalty C of a
support vector machine or the decoupled weight decay of a network. The score of a fold is the accuracy on its held-out
graphs, at the epoch and then with the setting that are best for the other folds of the same fold seed. Fold seeds 1
and 2 are left for the final comparison.

Each result is appended to a file as it is found, and those that the file has are not computed again. A GPU trains all
settings and fold seeds of a step together, a CPU one after the other. `--dry-run` lists what is missing and, from one
epoch of each step, how long it takes.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from benchmarks.common import DATA, appended, make_parser, results_in
from sopool.data import PackedGraphs, load
from sopool.data.analysis.distance_cache import all_pairs_of
from sopool.experiments import Evaluator, Request
from sopool.experiments.comparison import corrected_paired_test
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.models.config import Setting
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell, gain_words
from sopool.report.papers import grid_markdown
from sopool.training.bank.bank import Bank
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "bridge.jsonl"
FOLDS = 10
FOLD_SEEDS = (3, 4, 5, 6, 7)
BATCHES = 50
DISTANCES = 6
RANK = 24
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
DECAYS = (0.0, 0.1)


@dataclass(frozen=True)
class Step:
    """One step of the bridge: a support vector machine on ``features``, or else a network."""

    said: str
    before: str | None = None
    """The step that it is compared with."""
    features: Callable[[PackedGraphs], csr_array] | None = None
    pool: str = "sopool-pairs"
    options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    settings: Sequence[float] = DECAYS
    dropout: float = 0.0


def with_degrees(store: PackedGraphs) -> PackedGraphs:
    """Return the graphs with one label of each node, its own and its degree together, and nothing else."""
    owners = torch.arange(len(store)).repeat_interleave(store.edge_ptr.diff())
    degrees = torch.bincount(store.edge_index[0] + store.node_ptr[owners], minlength=store.num_nodes)
    own = torch.zeros_like(degrees) if store.node_labels is None else store.node_labels.long()
    each, codes = torch.stack([own, degrees], 1).unique(dim=0, return_inverse=True)
    names = tuple(f"{label} with {degree}" for label, degree in each.tolist())
    bare = {"node_attributes": None, "node_categories": None, "node_category_columns": ()}
    bare |= {"edge_labels": None, "edge_label_names": (), "edge_attributes": None}
    return replace(store, node_labels=codes.int(), node_label_names=names, **bare)


def label_counts(store: PackedGraphs) -> csr_array:
    """Return how often each label occurs in each graph ``[G, L]``."""
    return _counts(store, _graph_of(store), _labels(store), len(store.node_label_names))


def distance_counts(store: PackedGraphs) -> csr_array:
    """Return the number of pairs of nodes at each distance in each graph ``[G, K]``."""
    first, _, distance = _pairs(store)
    return _counts(store, _graph_of(store)[first], distance - 1, DISTANCES)


def pair_counts(store: PackedGraphs) -> csr_array:
    """Return how often each pair of labels occurs at each distance from 0 in each graph ``[G, (K + 1) L^2]``."""
    first, second, distance = _pairs(store)
    own = np.arange(store.num_nodes)
    first, second, distance = (
        np.concatenate(both) for both in ((own, first), (own, second), (np.zeros_like(own), distance))
    )
    kinds = len(store.node_label_names)
    labels = _labels(store)
    codes = (distance * kinds + labels[first]) * kinds + labels[second]
    return _counts(store, _graph_of(store)[first], codes, (DISTANCES + 1) * kinds**2)


def logarithms(counts: csr_array) -> csr_array:
    """Return log(1 + n) of each count."""
    return counts.log1p()


def _pairs(store: PackedGraphs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    every = torch.arange(len(store))
    pairs = all_pairs_of(store, DISTANCES).take(every, store.node_ptr, torch.arange(store.num_nodes))
    (first, second), distance = pairs.coordinates()
    return first.numpy(), second.numpy(), distance.numpy()


def _graph_of(store: PackedGraphs) -> np.ndarray:
    return np.repeat(np.arange(len(store)), store.sizes.numpy())


def _labels(store: PackedGraphs) -> np.ndarray:
    assert store.node_labels is not None
    return store.node_labels.long().numpy()


def _counts(store: PackedGraphs, graphs: np.ndarray, codes: np.ndarray, width: int) -> csr_array:
    places = graphs.astype(np.int32), codes.astype(np.int32)  # scikit-learn accepts no larger integers
    return csr_array((np.ones(len(codes)), places), shape=(len(store), width))


def _beside(*parts: csr_array) -> csr_array:
    from scipy.sparse import hstack

    return csr_array(hstack(parts))


ALONE = {"with_sum": False, "normalize": "norm", "distances": DISTANCES}
STEPS: dict[str, Step] = {
    "counts": Step("SVM on label counts", features=label_counts, settings=PENALTIES),
    "distances": Step(
        "the same, and the number of pairs at each distance",
        "counts",
        lambda store: _beside(label_counts(store), distance_counts(store)),
        settings=PENALTIES,
    ),
    "svm-log": Step(
        "SVM on logarithms of pair counts",
        "counts",
        lambda store: logarithms(pair_counts(store)),
        settings=PENALTIES,
    ),
    "svm": Step("SVM on pair counts", "counts", pair_counts, settings=PENALTIES),
    "head": Step("the same features, trained as a network's head", "svm", options=ALONE | {"rank": None, "layers": 1}),
    "random": Step(
        "a random W",
        "head",
        options=ALONE | {"rank": RANK, "layers": 1},
        model={"frozen": True},
    ),
    "learned": Step("a learned W", "random", options=ALONE | {"rank": RANK, "layers": 1}),
    "layer": Step("one GIN layer", "learned", options=ALONE | {"rank": RANK, "layers": None}),
    "four": Step("four GIN layers", "layer", options=ALONE | {"rank": RANK, "layers": None}, model={"layers": 4}),
    "sum": Step("Sum, one GIN layer", pool="sum", settings=(0.0,)),
    "sum-four": Step("Sum, four GIN layers", "sum", pool="sum", model={"layers": 4}, settings=(0.0,)),
}


def configs_of(store: PackedGraphs, step: Step, fold_seed: int, args: Any) -> list[RunConfig]:
    """Return one run for each fold, scored on held-out training graphs; pairs have a decay of 1."""
    options = step.options | ({"decay": 1.0} if step.pool == "sopool-pairs" else {})
    grid = [Setting(dropout=step.dropout)]
    request = Request(
        [step.pool], settings=grid, epochs=args.epochs, steps=BATCHES, pool_options=options, fold_seed=fold_seed
    )
    evaluator = Evaluator(store, request, RunStore(args.scratch))
    encoder = evaluator.encoders["validation"]
    return [
        replace(config, looks="validation", encoder=encoder, model=replace(config.model, **{"layers": 1} | step.model))
        for config in evaluator.final_runs()
        if config.repeat == 1
    ]


def network_scores(
    store: PackedGraphs, step: Step, wanted: Sequence[tuple[float, int]], args: Any
) -> list[dict[str, Any]]:
    """Return the held-out accuracy of each fold, at the epoch that is best for the other folds.

    The networks of all ``wanted`` settings and fold seeds are trained in one bank.
    """
    configs = [config for _, fold_seed in wanted for config in configs_of(store, step, fold_seed, args)]
    splitter = Splitter.of_store(store, configs[0])
    splits = [splitter(config) for config in configs]
    bank = Bank(tables_for(store, TableFacts.of(configs[0]), args.device), configs, splits)
    if bank.decays is not None:
        decays = torch.tensor([setting for setting, _ in wanted], device=bank.device, dtype=bank.dtype)
        bank.decays = bank.decays * decays.repeat_interleave(FOLDS).unsqueeze(1)
    held = [split.validation for split in splits]
    assert store.labels is not None
    truth = store.labels.numpy()
    curves = np.zeros((len(configs), args.epochs))
    start = time.perf_counter()
    for epoch in range(args.epochs):
        bank.run_epoch()
        for m, (scores, graphs) in enumerate(zip(bank.scores(held), held, strict=True)):
            curves[m, epoch] = (scores.argmax(1) == truth[graphs]).mean()
        if not epoch % 10:
            print(f"{step.said}: epoch {epoch + 1}, {time.perf_counter() - start:.0f} s", flush=True)
    seconds = (time.perf_counter() - start) / len(wanted)
    found = []
    for own in np.split(curves, len(wanted)):
        chosen = ((own.sum(0) - own) / (FOLDS - 1)).argmax(1)
        folds = np.round(own[np.arange(FOLDS), chosen], 6).tolist()
        epoch = int(np.median(chosen)) + 1
        found.append({"epochs": args.epochs, "folds": folds, "epoch": epoch, "seconds": round(seconds, 1)})
    return found


def machine_scores(store: PackedGraphs, step: Step, setting: float, fold_seed: int, args: Any) -> dict[str, Any]:
    """Return the held-out accuracy of each fold; the rows have unit length, and networks hold out the same graphs."""
    assert step.features is not None
    start = time.perf_counter()
    rows = normalize(step.features(store))
    labels = store.labels.numpy()
    folds = []
    for config in configs_of(store, step, fold_seed, args):
        split = Splitter.of_store(store, config)(config)
        machine = LinearSVC(C=setting, dual="auto", max_iter=20_000, random_state=0)
        machine.fit(rows[split.train], labels[split.train])
        folds.append(float((machine.predict(rows[split.validation]) == labels[split.validation]).mean()))
    return {"folds": np.round(folds, 6).tolist(), "seconds": round(time.perf_counter() - start, 1)}


def missing(args: Any) -> Iterator[tuple[str, str, float, int]]:
    """Yield the data set, the step, the setting and the fold seed of each result that the file does not have."""
    known = {(one["data"], one["step"], one["setting"], one["fold_seed"]) for one in figures(args.figures)}
    for data in args.data:
        for fold_seed in args.fold_seeds:
            for name in args.steps:
                for setting in STEPS[name].settings:
                    if (data, name, setting, fold_seed) not in known:
                        yield data, name, setting, fold_seed


def compute(args: Any) -> Iterator[dict[str, Any]]:
    """Yield the results that the file does not have."""
    stores = {data: with_degrees(load(data, args.root)) for data in args.data}
    for (data, name), group in groupby(sorted(missing(args)), key=lambda one: one[:2]):
        wanted = [(setting, fold_seed) for _, _, setting, fold_seed in group]
        facts = {"data": data, "step": name}
        each = len(wanted) if args.device != "cpu" else 1  # a CPU gains nothing from more networks in a bank
        for some in (wanted[first : first + each] for first in range(0, len(wanted), each)):
            if STEPS[name].features is None:
                found = network_scores(stores[data], STEPS[name], some, args)
            else:
                found = [machine_scores(stores[data], STEPS[name], *one, args) for one in some]
            for (setting, fold_seed), one in zip(some, found, strict=True):
                yield facts | {"setting": setting, "fold_seed": fold_seed} | one


def figures(path: Path = FIGURES) -> list[dict[str, Any]]:
    """Return the results of the file."""
    return results_in(path)


def plan(args: Any) -> Iterator[str]:
    """Yield what is missing, with the time that it takes by one epoch of ten networks."""
    counts: dict[tuple[str, str], int] = {}
    for data, name, _, _ in missing(args):
        counts[data, name] = counts.get((data, name), 0) + 1
    total = 0.0
    for (data, name), results in counts.items():
        step = STEPS[name]
        if step.features is not None:
            yield f"{data}, {name}: {results} results of {FOLDS} support vector machines"
            continue
        store = with_degrees(load(data, args.root))
        seconds = args.epochs * epoch_seconds(configs_of(store, step, args.fold_seeds[0], args), store, args)
        total += results * seconds
        yield f"{data}, {name}: {results} results of {FOLDS} networks, {results * seconds / 3600:.1f} h on one worker"
    yield f"all: {sum(counts.values())} results, {total / 3600:.1f} h on one worker"


def epoch_seconds(configs: Sequence[RunConfig], store: PackedGraphs, args: Any) -> float:
    """Return the time of the second epoch of all folds together, scores included."""
    tables = tables_for(store, TableFacts.of(configs[0]), args.device)
    splitter = Splitter.of_store(store, configs[0])
    splits = [splitter(config) for config in configs]
    bank = Bank(tables, configs, splits)
    bank.run_epoch()
    start = time.perf_counter()
    bank.run_epoch()
    bank.scores([split.validation for split in splits])
    return time.perf_counter() - start


def chosen_folds(found: Sequence[dict[str, Any]]) -> np.ndarray:
    """Return the score of each fold of one fold seed, with the setting that is best for the other folds."""
    each = np.array([one["folds"] for one in found])
    best = (each.sum(1, keepdims=True) - each).argmax(0)
    return each[best, np.arange(each.shape[1])]


def scores_of(found: Sequence[dict[str, Any]], data: str, step: str) -> dict[int, np.ndarray]:
    """Return the scores of the folds for each fold seed for which all settings are there."""
    own = [one for one in found if (one["data"], one["step"]) == (data, step)]
    seeds = {one["fold_seed"] for one in own}
    each = {seed: [one for one in own if one["fold_seed"] == seed] for seed in sorted(seeds)}
    return {seed: chosen_folds(some) for seed, some in each.items() if len(some) == len(STEPS[step].settings)}


def grid(found: Sequence[dict[str, Any]], data: str) -> Grid:
    """Return the table of a data set: the accuracy of each step, and its change from the step before."""
    rows = []
    for name, step in STEPS.items():
        own = scores_of(found, data, name)
        if not own:
            continue
        means = [float(folds.mean()) for folds in own.values()]
        cells = [accuracy_cell(float(np.mean(means)), float(np.std(means)))]
        before = {} if step.before is None else scores_of(found, data, step.before)
        shared = sorted(own.keys() & before.keys())
        change = NONE
        if shared:
            both = (np.concatenate([some[seed] for seed in shared]) for some in (own, before))
            test = corrected_paired_test(*both, FOLDS, len(shared))
            change = Cell(gain_words(test), test.difference, test.clear)
        rows.append(
            [Cell(step.said), Cell(str(len(own))), *cells, Cell("" if not shared else f"{step.before}"), change]
        )
    columns = ["step", "fold seeds", "held-out accuracy", "compared with", "change"]
    return Grid(f"The bridge on {data}", columns, rows, {0, 3})


def summary(found: Sequence[dict[str, Any]], names: Sequence[str] = ("PROTEINS", "NCI1")) -> Grid:
    """Return one table of several data sets: the accuracy of each step, and its change."""
    tables = [grid(found, data).rows for data in names]
    rows = [
        [first[0], *(cell for row in (first, *others) for cell in (row[2], row[4]))]
        for first, *others in zip(*tables, strict=True)
    ]
    columns = ["step", *(title for data in names for title in (data, "change"))]
    return Grid("The bridge", columns, rows, 1)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", default=["PROTEINS", "NCI1"])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--fold-seeds", nargs="+", type=int, default=list(FOLD_SEEDS))
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file that the results are appended to")
    parser.add_argument("--dry-run", action="store_true", help="list what is missing, and how long it takes")
    parser.add_argument("--print", action="store_true", help="show the tables of the file, without training")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.scratch = Path(folder)  # for stores of runs, in which nothing is stored
        if args.dry_run:
            for line in plan(args):
                print(line, flush=True)
            return
        for one in appended(args.figures, () if args.print else compute(args)):
            told = f"{one['data']}, {one['step']}, {one['setting']}, fold seed {one['fold_seed']}"
            print(f"{told}: {100 * np.mean(one['folds']):.1f} in {one['seconds']} s", flush=True)
    for data in args.data:
        print(grid_markdown(grid(figures(args.figures), data)))


if __name__ == "__main__":
    main()
