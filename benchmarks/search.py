"""Forms of second-order pooling, judged on held-out training graphs: the test folds are not looked at.

    python benchmarks/search.py --data PROTEINS [--device cuda] [--runs FOLDER] [--json FILE]
    python benchmarks/search.py --data PROTEINS --forms "normed;sum-avg, normed" --final
    python benchmarks/search.py --read FILE ...

From the paper's setting (GIN-0, bimap, hidden 32, batch 32, dropout on the scores) one thing is changed at a time, then
several. A tenth of each training fold is held out, `--repeats` times over. The figure of a fold is the accuracy on its
held-out graphs at the epoch that is best for the *other* folds: the best epoch of a fold itself would flatter forms
whose curves jump. `--read` puts the figures of several data sets side by side, each form against Sum/Avg and against
the paper's bimap, paired by fold, with the corrected interval of `sopool evaluate`.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import softmax

from sopool.data import PackedGraphs, load
from sopool.experiments.comparison import corrected_paired_test
from sopool.experiments.evaluation import FINAL_RUNS, Evaluator, Request
from sopool.experiments.executors.local import train_all
from sopool.training.protocols import PROTOCOLS
from sopool.training.record import Run
from sopool.training.run_store import RunStore

ROOT = Path(__file__).resolve().parents[2] / "shared" / "data"
BIMAP, SUM = "bimap (paper)", "sum-avg (paper)"


@dataclass(frozen=True)
class Form:
    """What differs from the paper's setting."""

    pool: str = "sopool-bimap"
    options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)


NORM, AFTER = {"pooled_norm": True}, {"dropout_on": "embedding"}


def normed(pool: str = "sopool-bimap", options: dict | None = None, run: dict | None = None, **model: Any) -> Form:
    """A batch norm of the graph embedding and dropout after it, instead of on the scores."""
    return Form(pool, options or {}, NORM | AFTER | model, run or {})


FORMS = {
    SUM: Form("sum-avg"),
    BIMAP: Form(),
    "size": Form(options={"normalize": "size"}),
    "trace": Form(options={"normalize": "trace"}),
    "sqrt": Form(options={"normalize": "sqrt"}),
    "matrix-sqrt": Form(options={"normalize": "matrix-sqrt"}),
    "triangle": Form(options={"triangle": True}),
    "moments 1, 2": Form(options={"moments": (1, 2)}),
    "rank 4": Form(options={"rank": 4}),
    "rank 16": Form(options={"rank": 16}),
    "rank 64": Form(options={"rank": 64}),
    "dropout on embedding": Form(model=AFTER),
    "no dropout": Form(run={"dropout": 0.0}),
    "weight decay 1e-4": Form(run={"weight_decay": 1e-4}),
    "weight decay 1e-3": Form(run={"weight_decay": 1e-3}),
    "batch norm": Form(model=NORM),
    "hidden layer": Form(model={"head_hidden": 32}),
    "per layer": Form(model={"join": "per-layer"}),
    "lr 0.001": Form(run={"lr": 0.001}),
    "batch 128": Form(run={"batch_size": 128}),
    "hidden 64": Form(model={"hidden": 64}),
    "attn": Form("sopool-attn"),
    "m_attn, 8 heads": Form("sopool-m-attn"),
    "m_attn, 32 heads": Form("sopool-m-attn", {"heads": 32}),
    "covpool": Form("covpool"),
    "sum-avg, dropout on embedding": Form("sum-avg", model=AFTER),
    "sum-avg, normed": normed("sum-avg"),
    "normed": normed(),
    "normed, no dropout": normed(run={"dropout": 0.0}),
    "normed, per layer": normed(join="per-layer"),
    "normed, moments 1, 2": normed(options={"moments": (1, 2)}),
    "normed, per layer, moments 1, 2": normed(options={"moments": (1, 2)}, join="per-layer"),
    "normed, trace": normed(options={"normalize": "trace"}),
    "normed, sqrt": normed(options={"normalize": "sqrt"}),
    "normed, matrix-sqrt": normed(options={"normalize": "matrix-sqrt"}),
    "normed, rank 16": normed(options={"rank": 16}),
    "normed, hidden layer": normed(head_hidden=32),
    "normed, hidden 64": normed(hidden=64),
    "normed, weight decay 1e-4": normed(run={"weight_decay": 1e-4}),
    "normed, batch 128": normed(run={"batch_size": 128}),
    "normed, lr 0.003": normed(run={"lr": 0.003}),
    "normed attn": normed("sopool-attn"),
    "normed m_attn, 8 heads": normed("sopool-m-attn"),
    "normed covpool": normed("covpool"),
}


def trained_runs(store: PackedGraphs, form: Form, args: argparse.Namespace) -> list[Run]:
    """One for each fold and repeat, which holds out other graphs; under `--final` they look at the test folds, once."""
    request = Request([form.pool], epochs=args.epochs, preset="paper", pool_options=form.options)
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
    """What `fair` reports of the first three runs of each fold, and what all of them reach by the mean probability."""
    trained, labels = trained_runs(store, form, args), store.labels.numpy()
    found = PROTOCOLS["fair"].outcome([run for run in trained if run.config.repeat <= FINAL_RUNS], labels)
    return {"folds": list(found.folds), "ensemble_folds": [vote(trained, fold, labels) for fold in range(10)]}


def vote(trained: Sequence[Run], fold: int, labels: np.ndarray) -> float:
    """The accuracy of the runs of a fold together."""
    runs = [run.predictions for run in trained if run.config.fold == fold]
    chances = sum(softmax(one["test_logits"], axis=1) for one in runs)
    return float((chances.argmax(1) == labels[runs[0]["test_graphs"]]).mean())


def held_out(store: PackedGraphs, form: Form, args: argparse.Namespace) -> dict[str, Any]:
    """The accuracy of each fold on its held-out graphs, at the epoch that is best for the other folds."""
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


def show(results: Sequence[dict[str, Any]]) -> None:
    """A table over all data sets."""
    found = {(one["data"], one["form"]): one for one in results}
    sets, forms = (
        list(dict.fromkeys(one["data"] for one in results)),
        list(dict.fromkeys(one["form"] for one in results)),
    )
    for against in (SUM, BIMAP):
        table = Table("form", *sets, "mean", title=f"accuracy, per cent, and the gain over {against}")
        for form in forms:
            cells, gains = [], []
            for data in sets:
                one, base = found.get((data, form)), found.get((data, against))
                if one is None or base is None:
                    cells.append("")
                    continue
                test = corrected_paired_test(np.array(one["folds"]), np.array(base["folds"]))
                gains.append(100 * test.difference)
                low, high = 100 * test.low, 100 * test.high
                cells.append(f"{100 * np.mean(one['folds']):.1f} {gains[-1]:+.1f} [{low:+.1f}, {high:+.1f}]")
            table.add_row(form, *cells, f"{np.mean(gains):+.2f}" if gains else "")
        Console(width=180).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["PROTEINS"])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--forms", help="only these, separated by semicolons")
    parser.add_argument("--part", default="1/1", help="of the forms: 2/4 is the second of four parts")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--final", action="store_true", help="the fair protocol, and 5 runs as an ensemble: reads the test folds"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further form after so many")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--json", type=Path, help="add the figures to this file, a line each")
    parser.add_argument("--read", type=Path, nargs="+", help="train nothing: show what these files hold")
    args = parser.parse_args()
    if args.final:
        args.epochs, args.repeats = 350, 5
    if args.read:
        show([json.loads(line) for path in args.read for line in path.read_text().splitlines()])
        return
    results, start = [], time.monotonic()
    part, parts = map(int, args.part.split("/"))
    forms = (args.forms.split(";") if args.forms else list(FORMS))[part - 1 :: parts]
    for data in args.data:
        store = load(data, args.root)
        for form in forms:
            if time.monotonic() - start > 60 * args.minutes:
                break
            judge = final if args.final else held_out
            results.append({"data": data, "form": form} | judge(store, FORMS[form], args))
            print(data, form, f"{100 * np.mean(results[-1]['folds']):.1f}", results[-1], flush=True)
            if args.json:
                with args.json.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    show(results)


if __name__ == "__main__":
    main()
