"""Compare the training time of cross-validation: seconds per model-epoch of the same model in several implementations.

    python -m benchmarks.cross_validation [--datasets MUTAG ...] [--threads 1 2] [--device cuda] [--json FILE]
    python -m benchmarks.cross_validation --check

The task is SOPool bimap on GIN-0 (the model is described in benchmarks/rivals/__init__.py): 50 steps of 32 graphs of
one of ten stratified folds, then the accuracy on all training and test graphs. The other implementations train the
first fold; sopool trains all ten, and its time is divided by ten. Each implementation runs in a separate process, in
alternation, several times and with each number of threads; its fastest number of threads counts. The time is the median
over the epochs of all rounds, without the first epochs of each process. Loading the data and building the model are not
timed.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Batch

from benchmarks.common import DATA, make_parser, run_alone, seconds
from benchmarks.rivals import BATCH, authors, pyg
from sopool.data import NodeFeatures, PackedGraphs, load, paper_encoder, stratified_folds
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.executors.local import train_all
from sopool.training.runs.store import RunStore

DATASETS = ("MUTAG", "IMDB-BINARY", "PROTEINS", "NCI1")
WARM_UP = 2
UNSTEADY = 1.25
"""If rounds differ by more than this factor, the machine was probably busy with something else."""

Timer = Callable[[str, Path, str, int], list[float]]
"""A function (data set, root, device, epochs) -> seconds per model-epoch of each epoch after warm-up."""


class Job(NamedTuple):
    """The input of a trainer."""

    store: PackedGraphs
    features: NodeFeatures
    labels: torch.Tensor
    train_ids: list[int]
    test_ids: list[int]


def prepare(name: str, root: Path) -> Job:
    store = load(name, root)
    if store.labels is None:
        sys.exit(f"{name} in {root} has no labels.")
    train, test = stratified_folds(store.labels)[0]
    features = paper_encoder(name, unknown=False).fit(store).transform(store)
    return Job(store, features, store.labels, train.tolist(), test.tolist())


def time_rival(trainer: Callable, name: str, root: Path, device: str, epochs: int) -> list[float]:
    """Time a trainer of one model. It returns accuracies as Python numbers, so it has synchronized with the device."""
    run = trainer(*prepare(name, root), seed=0, device=device)
    return [seconds(run.epoch) for _ in range(WARM_UP + epochs)][WARM_UP:]


def time_sopool(name: str, root: Path, device: str, epochs: int) -> list[float]:
    """Time all ten folds in banks, as ``sopool evaluate`` trains them; on a CPU, threads are worker processes."""
    workers = torch.get_num_threads() if device == "cpu" else 1
    with tempfile.TemporaryDirectory() as folder:
        runs = RunStore(folder)
        store = load(name, root)
        request = Request(["sopool-bimap"], ["per-fold-max"], epochs=WARM_UP + epochs, preset="paper")
        configs = Evaluator(store, request, runs).first_runs()
        train_all(store, runs, configs, device, workers)
        shares = [runs.load(config).curves["seconds"][WARM_UP:] for config in configs]
    return [mean(epoch) / workers for epoch in zip(*shares, strict=True)]


CONTENDERS: dict[str, Timer] = {
    "authors' way": partial(time_rival, authors.AuthorsTrainer),
    "PyG": partial(time_rival, pyg.PygTrainer),
    "sopool": time_sopool,
}


def measure(args: argparse.Namespace) -> dict:
    """Return the seconds of every epoch as data set -> implementation -> threads -> rounds."""
    results: dict = {}
    for turn in range(args.rounds):
        for name in args.datasets:
            for threads in args.threads:
                for contender in CONTENDERS:
                    print(f"round {turn + 1}/{args.rounds}: {name}, {contender}, threads: {threads}", file=sys.stderr)
                    times = in_a_process(name, contender, threads, args)
                    results.setdefault(name, {}).setdefault(contender, {}).setdefault(threads, []).append(times)
    return results


def in_a_process(name: str, contender: str, threads: int, args: argparse.Namespace) -> list[float]:
    given = ["--root", args.root, "--device", args.device, "--epochs", args.epochs]
    return run_alone(__spec__.name, "--one", name, contender, "--threads", threads, *given)


class Best(NamedTuple):
    """The time of an implementation with its fastest number of threads."""

    seconds: float
    threads: int
    steady: bool


def best(by_threads: dict[int, list[list[float]]]) -> Best:
    fastest, threads = min((median(chain(*rounds)), threads) for threads, rounds in by_threads.items())
    medians = [median(times) for times in by_threads[threads]]
    return Best(fastest, threads, max(medians) <= UNSTEADY * min(medians))


def summarise(results: dict) -> dict[str, dict[str, Best]]:
    return {name: {who: best(times) for who, times in row.items()} for name, row in results.items()}


def show(results: dict, device: str) -> None:
    table = Table(title=f"seconds per model-epoch, {device}")
    table.add_column("", no_wrap=True)
    for contender in CONTENDERS:
        table.add_column(f"{contender}\nseconds", justify="right", no_wrap=True)
        table.add_column("\nthreads", justify="right", no_wrap=True)
        table.add_column("\nratio", justify="right", no_wrap=True)
    summary = summarise(results)
    for name, row in summary.items():
        ours = row["sopool"].seconds
        cells = []
        for one in row.values():
            time = f"{one.seconds:.3g}{'' if one.steady else ' ~'}"
            cells += [time, str(one.threads), f"{one.seconds / ours:.2f}"]
        table.add_row(name, *cells)
    Console(width=140).print(table)
    print("ratio: time / that of sopool. Its threads are processes of one thread each.")
    if not all(one.steady for row in summary.values() for one in row.values()):
        print(f"~ Rounds differ by more than {UNSTEADY - 1:.0%}: the machine was busy, run it again.")
    print(", ".join(f"{value}" for value in machine(device).values()))


def machine(device: str) -> dict[str, str]:
    return {
        "system": f"{platform.machine()} {platform.system()}",
        "device": torch.cuda.get_device_name() if device == "cuda" else f"{os.cpu_count()} cores",
        "python": f"Python {platform.python_version()}",
        "torch": f"torch {torch.__version__}",
    }


def check(root: Path) -> None:
    """Raise an error unless all implementations are the same model and learn."""
    job = prepare("MUTAG", root)
    check_same_model(job)
    for trainer in (authors.AuthorsTrainer, pyg.PygTrainer):
        run = trainer(*job, seed=0)
        curve = [run.epoch() for _ in range(30)]
        train, test = (median(accuracies) for accuracies in zip(*curve[20:], strict=True))  # a single epoch is noisy
        print(f"{trainer.__name__}: accuracy, median of epochs 21 to 30: train {train:.3f}, test {test:.3f}")
        assert train > 0.85, "it does not learn"


def check_same_model(job: Job) -> None:
    """Check in float64, with equal weights, that training logits and gradients and evaluation logits are equal."""
    rows = job.features.rows().double()
    graphs = authors.make_graphs(job.store, rows, job.labels)[:BATCH]
    data = Batch.from_data_list(pyg.make_graphs(job.store, rows, job.labels)[:BATCH])
    torch.manual_seed(0)
    ours = authors.Model(job.features.width, 2).double()
    theirs = pyg.Model(job.features.width, 2).double()
    with torch.no_grad():
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            one.uniform_(-0.3, 0.3)  # including batch norms, which start as ones and zeros
            other.copy_(one)
    logits = []
    for model, given in ((ours, graphs), (theirs, data)):
        torch.manual_seed(1)  # the same dropout
        logits.append(model(given))
        F.cross_entropy(logits[-1], data.y).backward()
    gradients = [(one.grad, other.grad) for one, other in zip(ours.parameters(), theirs.parameters(), strict=True)]
    pairs = {
        "logits in training": [tuple(logits)],
        "gradients": gradients,
        "logits in evaluation": [(ours.eval()(graphs), theirs.eval()(data))],
    }
    for what, several in pairs.items():
        difference = max((one - other).abs().max().item() for one, other in several)
        print(f"{what}: largest difference {difference:.1e}")
        for one, other in several:
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, metavar="NAME")
    parser.add_argument("--root", type=Path, default=DATA, help="the folder with NAME.zip files (%(default)s)")
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads; the best one counts (1 2)"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=3, help="processes per implementation (%(default)s)")
    parser.add_argument("--epochs", type=int, default=5, help="timed epochs per process (%(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    parser.add_argument(
        "--check", action="store_true", help="check that all implementations agree and learn; no timing"
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads[0])
    if args.check:
        check(args.root)
        return
    if args.one:
        name, contender = args.one
        print(json.dumps(CONTENDERS[contender](name, args.root, args.device, args.epochs)))
        return
    results = measure(args)
    show(results, args.device)
    if args.json:
        args.json.write_text(json.dumps({"machine": machine(args.device), "seconds": results}, indent=1))


if __name__ == "__main__":
    main()
