"""Compare variants of second-order pooling on held-out training graphs. Test folds are not used, except by `--final`.

    python -m benchmarks.search --data PROTEINS [--device cuda] [--runs FOLDER] [--json FILE]
    python -m benchmarks.search --data PROTEINS --forms "sum-avg, normed;normed" --final

Starting from the paper's setting (GIN-0, bimap, hidden 32, batch 32, dropout on the scores), one option is changed at a
time, then several. A tenth of each training fold is held out, `--repeats` times. The score of a fold is the accuracy on
its held-out graphs at the epoch that is best for the *other* folds; its own best epoch would favor variants with noisy
curves. `search_forms.py` defines the variants, `search_page.py` prints the tables.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from benchmarks.common import DATA, make_parser
from benchmarks.search_forms import BOTH, FORMS, STANDARDIZED, Form, form_of
from benchmarks.standardized import BothMomentsAggregation, StandardizedSecondOrderAggregation
from sopool.data import PackedGraphs, load
from sopool.experiments.evaluation import FINAL_RUNS, Evaluator, Request
from sopool.experiments.executors.local import train_all
from sopool.nn.registry import READOUTS
from sopool.training.protocols.protocols import PROTOCOLS
from sopool.training.runs.record import Run
from sopool.training.runs.store import RunStore

READOUTS[STANDARDIZED] = StandardizedSecondOrderAggregation
READOUTS[BOTH] = BothMomentsAggregation


def trained_runs(store: PackedGraphs, form: Form, args: argparse.Namespace) -> list[Run]:
    """Return one run for each fold and repeat; repeats hold out different graphs.

    With `--final`, the runs score the test folds, once.
    """
    request = Request([form.pool], epochs=args.epochs, seed=args.seed, preset="paper", pool_options=form.options)
    runs = RunStore(args.runs)
    evaluator = Evaluator(store, request, runs)
    looks = "chosen" if args.final else "validation"
    configs = [
        replace(
            config,
            looks=looks,
            encoder=evaluator.encoders[looks],
            model=replace(config.model, **form.model),
            repeat=repeat,
            **form.run,
        )
        for repeat in range(1, args.repeats + 1)
        for config in evaluator.final_runs()
        if config.repeat == 1
    ]
    train_all(store, runs, configs, args.device)
    return [run for config in configs if (run := runs.load(config)) is not None]


def final(store: PackedGraphs, form: Form, args: argparse.Namespace) -> dict[str, Any]:
    """Return the `fair` accuracy of the first three runs of each fold, and that of the ensemble of all (five) runs.

    With more than three runs, `mixed_folds` has the ensemble of these three and the later runs of the first given
    variant.
    """
    trained = trained_runs(store, form, args)
    labels = store.labels.numpy()
    three = [run for run in trained if run.config.repeat <= FINAL_RUNS]
    found = {
        "folds": list(PROTOCOLS["fair"].outcome(three, labels).folds),
        "ensemble_folds": [vote(trained, fold, labels) for fold in range(10)],
    }
    if args.repeats > FINAL_RUNS:
        first = trained if form == args.first else trained_runs(store, args.first, args)
        mixed = three + [run for run in first if run.config.repeat > FINAL_RUNS]
        found["mixed_folds"] = [vote(mixed, fold, labels) for fold in range(10)]
    return found


def vote(trained: Sequence[Run], fold: int, labels: np.ndarray) -> float:
    """Return the accuracy of the ensemble of the runs of a fold."""
    runs = [run.predictions for run in trained if run.config.fold == fold]
    probabilities = sum(softmax(one["test_logits"], axis=1) for one in runs)
    return float((probabilities.argmax(1) == labels[runs[0]["test_graphs"]]).mean())


def held_out(store: PackedGraphs, form: Form, args: argparse.Namespace) -> dict[str, Any]:
    """Return the accuracy of each fold on its held-out graphs, at the epoch that is best for the other folds."""
    trained = trained_runs(store, form, args)
    curves = np.array([run.curves["validation_accuracy"] for run in trained]).reshape(args.repeats, 10, -1).mean(0)
    others = (curves.sum(0) - curves) / 9
    chosen = others.argmax(1)
    seconds = sum(float(np.nansum(run.curves["seconds"])) for run in trained)
    return {
        "folds": curves[np.arange(10), chosen].tolist(),
        "own_best": float(np.mean([run.curves["validation_accuracy"].max() for run in trained])),
        "last": float(curves[:, -1].mean()),
        "epoch": int(np.median(chosen)) + 1,
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", default=["PROTEINS"])
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--forms", help="names of variants, separated by semicolons; default: all")
    parser.add_argument("--part", default="1/1", help="part of the variants: 2/4 is the second of four parts")
    parser.add_argument("--epochs", type=int, help="200; with --final 350")
    parser.add_argument("--repeats", type=int, help="2; with --final 5")
    parser.add_argument(
        "--final",
        action="store_true",
        help="score the test folds: the fair protocol, and the ensemble of all runs of a fold",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the runs; folds do not change")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further variant after this time")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--json", type=Path, help="append the results to this file, one line per variant")
    args = parser.parse_args()
    args.epochs = args.epochs or (350 if args.final else 200)
    args.repeats = args.repeats or (5 if args.final else 2)
    start = time.monotonic()
    part, parts = map(int, args.part.split("/"))
    names = (args.forms.split(";") if args.forms else list(FORMS))[part - 1 :: parts]
    try:
        forms = {name: form_of(name) for name in names}
    except KeyError as error:
        parser.error(f"{error} is not a variant: search_forms.py defines them.")
    args.first = forms[names[0]]
    for data in args.data:
        store = load(data, args.root)
        for name, form in forms.items():
            if time.monotonic() - start > 60 * args.minutes:
                break
            judge = final if args.final else held_out
            found = {"data": data, "form": name} | ({"seed": args.seed} if args.seed else {}) | judge(store, form, args)
            print(f"{data}, {name}: {100 * np.mean(found['folds']):.1f} %", flush=True)
            if args.json:
                with args.json.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
