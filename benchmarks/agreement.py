"""Compare accuracies with those of the authors' code: three poolings, preset `paper`, hidden 32, batch 32, same folds.

    python -m benchmarks.agreement [--datasets MUTAG PTC ...] [--pools sopool-bimap ...] [--seeds 3] [--device cuda]
                                   [--runs DIR] [--json FILE]

All seeds and folds of a data set are trained together, and each data set in a separate process. Runs that are already
in the store are not trained again. The authors' accuracies were measured with their code on these folds.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from benchmarks.common import DATA, command, make_parser
from sopool.data.sources.catalogue import load
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.executors.local import train_all
from sopool.models.config import Setting
from sopool.training.runs.store import RunStore
from sopool.training.trainer import TrainingProgress

PROTOCOLS = ("per-fold-max", "single-epoch")
DATASETS = ("MUTAG", "PTC", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI", "NCI1")
AUTHORS = {  # per-fold-max, single-epoch, in percent; IMDB-BINARY with hidden 64
    "sopool-bimap": {
        "MUTAG": (94.7, 88.8),
        "PTC": (74.7, 65.4),
        "PROTEINS": (79.4, 75.4),
        "IMDB-BINARY": (77.6, 72.6),
    },
    "sum-avg": {"MUTAG": (95.2, 88.3), "PTC": (73.8, 64.8), "PROTEINS": (79.3, 75.0)},
    "sopool-attn": {},
}


def evaluate(name: str, args: argparse.Namespace) -> list[list[dict]]:
    """Train all seeds of one data set, and return for each seed the results of all poolings."""
    store = load(name, args.root)
    runs = RunStore(args.runs)
    setting = Setting(hidden=64 if name == "IMDB-BINARY" else 32)
    requests = [
        Request(args.pools, PROTOCOLS, settings=[setting], epochs=args.epochs, seed=seed, preset="paper")
        for seed in range(args.seeds)
    ]
    evaluators = [Evaluator(store, request, runs) for request in requests]
    configs = [config for evaluator in evaluators for config in evaluator.first_runs()]
    done = 0
    total = args.epochs * len(configs)

    def report(progress: TrainingProgress) -> None:
        nonlocal done
        before = done
        done = done + progress.models * progress.epochs
        if done * 20 // total > before * 20 // total:
            print(f"{name}: {done / total:.0%}", file=sys.stderr, flush=True)
        for note in progress.stopped:
            print(note, file=sys.stderr, flush=True)

    train_all(store, runs, configs, args.device, args.workers, report)
    return [[one.to_json() for one in evaluator.evaluate(args.device)] for evaluator in evaluators]


def show(results: dict[str, list[list[dict]]]) -> None:
    table = Table(title="as in the authors' code: percent, mean over seeds (each seed), ten folds")
    for column in ("", "pooling", "protocol", "sopool", "authors' code", "difference"):
        table.add_column(column, justify="right" if column == "difference" else "left", no_wrap=True)
    lines = [
        (name, each, protocol)
        for name, seeds in results.items()
        for each in zip(*seeds, strict=True)
        for protocol in PROTOCOLS
    ]
    for name, seeds, protocol in lines:
        pool = seeds[0]["pool"]
        at = PROTOCOLS.index(protocol)
        each = [100 * one["protocols"][protocol]["mean"] for one in seeds]
        spread = mean(100 * one["protocols"][protocol]["std"] for one in seeds)
        theirs = AUTHORS.get(pool, {}).get(name)
        table.add_row(
            name,
            pool,
            protocol,
            f"{mean(each):.1f} +- {spread:.1f} ({', '.join(f'{one:.1f}' for one in each)})",
            "not measured" if theirs is None else f"{theirs[at]:.1f}",
            "" if theirs is None else f"{mean(each) - theirs[at]:+.1f}",
        )
    table.caption = "+-: deviation over folds (ddof 0), mean over seeds. per-fold-max is optimistic."
    Console(width=140).print(table)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--pools", nargs="+", default=list(AUTHORS))
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=350)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(evaluate(args.datasets[0], args)))
        return
    flags = ["--root", args.root, "--seeds", args.seeds, "--epochs", args.epochs, "--device", args.device]
    flags += ["--runs", args.runs, "--pools", *args.pools, *(["--workers", args.workers] if args.workers else [])]
    results = {}
    waiting = list(args.datasets)
    together = len(waiting) if args.device == "cuda" else 1
    while waiting:
        names = waiting[:together]
        waiting = waiting[together:]
        started = {
            name: subprocess.Popen(command(__spec__.name, "--one", "--datasets", name, *flags), stdout=subprocess.PIPE)
            for name in names
        }
        for name, process in started.items():
            out, _ = process.communicate()
            if process.returncode == 0:
                results[name] = json.loads(out.splitlines()[-1])
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    show(results)


if __name__ == "__main__":
    main()
