"""Compare options of hierarchical models that the paper does not specify, on held-out training graphs only.

    python -m benchmarks.hierarchy_options [--data PROTEINS] [--epochs 40] [--device cuda] [--runs FOLDER]

Models have three blocks and preset `paper`, and a tenth of each training fold is held out. The table shows the accuracy
on the held-out graphs at the best epoch, as mean and standard deviation over ten folds. Every pooling has the same
number of options. Test folds are not used.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import DATA, make_parser
from sopool.data import PackedGraphs, load
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.executors.local import train_all
from sopool.training.runs.store import RunStore

OPTIONS = {
    "sopool-m-attn": [
        {"heads": 16, "normalize": "adjacency"},
        {"heads": 16, "normalize": "degree"},
        {"heads": 16, "normalize": None},
        {"heads": 8, "normalize": "adjacency"},
        {"heads": 32, "normalize": "adjacency"},
    ],
    "diffpool": [{"clusters": k} for k in (8, 16, 32, 48, 64)],
    "topkpool": [{"ratio": ratio} for ratio in (0.2, 0.35, 0.5, 0.65, 0.8)],
    "sagpool": [{"ratio": ratio} for ratio in (0.2, 0.35, 0.5, 0.65, 0.8)],
}


def held_out(store: PackedGraphs, request: Request, folder: Path, device: str = "cpu") -> np.ndarray:
    """Return the accuracy of each fold on its held-out graphs."""
    runs = RunStore(folder)
    evaluator = Evaluator(store, request, runs)
    configs = [
        replace(config, looks="validation", repeat=0, encoder=evaluator.encoders["validation"])
        for config in evaluator.final_runs()
        if config.repeat == 1
    ]
    train_all(store, runs, configs, device)
    trained = [runs.load(config) for config in configs]
    return np.array([run.curves["validation_accuracy"][run.chosen_epoch] for run in trained])


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", default="PROTEINS")
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pools", default=",".join(OPTIONS))
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    args = parser.parse_args()
    store = load(args.data, args.root)
    table = Table("pooling", "options", "held-out accuracy, %", title=f"{args.data}, 3 blocks, {args.epochs} epochs")
    for pool in args.pools.split(","):
        for options in OPTIONS[pool]:
            request = Request([pool], epochs=args.epochs, blocks=3, preset="paper", pool_options=options)
            folds = 100 * held_out(store, request, args.runs, args.device)
            said = ", ".join(f"{name}={value}" for name, value in options.items())
            table.add_row(pool, said, f"{folds.mean():.1f} ± {folds.std():.1f}")
            print(pool, said, folds.round(1).tolist(), flush=True)
    Console().print(table)


if __name__ == "__main__":
    main()
