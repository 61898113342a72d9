"""Every pooling, flat and in hierarchies, trained on a CUDA device as on the CPU, in double precision.

    python -m tests.check_cuda_poolings [DEVICE]

Needs a GPU, torch and torch-geometric; no test runner. Prints one line per model, and at the end fails if one is wrong.
"""

import sys

import numpy as np
import torch

from tests.helpers.model_cases import CASES, tables_for
from tests.helpers.training_graphs import bank_of, run_config

EPOCHS, LIMIT = 3, 1e-6


def train(tables, runs):
    """Losses of each epoch, then the scores of all graphs, and whether steps were captured."""
    bank = bank_of(tables, runs)
    losses = np.stack([bank.run_epoch() for _ in range(EPOCHS)])
    scores = bank.scores([np.arange(len(tables))] * len(runs))
    return np.concatenate([losses.ravel(), np.stack(scores).ravel()]), bank.captures


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    wrong = []
    for name, config in CASES.items():
        tables = tables_for(config)
        runs = [run_config(model=vars(config), fold=fold, seed=fold) for fold in range(2)]
        want, _ = train(tables, runs)
        try:
            got, captured = train(tables.to(device), runs)
            error = float(np.abs(got - want).max() / np.abs(want).max())
        except (RuntimeError, ValueError) as failure:
            print(f"{name:36s} {type(failure).__name__}: {str(failure).splitlines()[0]}", flush=True)
            wrong.append(name)
            if torch.cuda.is_available() and "CUDA error" in str(failure):
                break  # the device is of no use any more
            continue
        print(f"{name:36s} {error:.1e} {'captured' if captured else 'step by step'}", flush=True)
        if not error <= LIMIT:
            wrong.append(name)
    if wrong:
        raise SystemExit(f"wrong on {device}: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
