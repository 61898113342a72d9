"""Seconds per model-epoch of one bank in this process, and where they go.

    python benchmarks/bank.py [--data MUTAG] [--models 10] [--device cuda] [--threads 1] [--pool ...] [--profile]

A model-epoch: 50 steps of 32 graphs, then the scores of all graphs.
"""

import argparse
import platform
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

from sopool.data.catalogue import load
from sopool.experiments.local import tables_for
from sopool.experiments.presets import model_config
from sopool.training.bank import Bank
from sopool.training.config import RunConfig
from sopool.training.splits import Splitter

ROOT = Path(__file__).resolve().parents[2] / "shared" / "data"


def make_bank(args: argparse.Namespace) -> Bank:
    store = load(args.data, args.root)
    tables = tables_for(store, "test", args.device)
    model = model_config(store, args.gnn, args.pool, "paper")
    configs = [RunConfig(args.data, "", "", model, fold=m % 10, seed=m // 10) for m in range(args.models)]
    splitter = Splitter(tables.labels.cpu().numpy())
    return Bank(tables, configs, [splitter(config) for config in configs])


def time_epochs(bank: Bank, epochs: int) -> list[tuple[float, float]]:
    """Seconds (training, scoring) of each epoch, the first left out. Both end with numbers on the host."""
    times, graphs = [], [np.arange(len(bank.tables))] * len(bank.configs)
    for _ in range(epochs + 1):
        start = time.perf_counter()
        bank.run_epoch()
        trained = time.perf_counter()
        bank.scores(graphs)
        times.append((trained - start, time.perf_counter() - trained))
    return times[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="MUTAG")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--gnn", default="gin-0")
    parser.add_argument("--pool", default="sopool-bimap")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    bank = make_bank(args)
    trained, scored = (median(part) / args.models for part in zip(*time_epochs(bank, args.epochs), strict=True))
    where = torch.cuda.get_device_name() if args.device == "cuda" else f"{platform.machine()}, {args.threads} threads"
    print(
        f"{args.data}, {args.gnn}, {args.pool}, {args.models} models, {where}, torch {torch.__version__}: "
        f"{trained + scored:.5f} s per model-epoch ({trained:.5f} training, {scored:.5f} scoring)"
    )
    if args.profile:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if args.device == "cuda":
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profile:
            bank.run_epoch()
        by = "self_cuda_time_total" if args.device == "cuda" else "self_cpu_time_total"
        print(profile.key_averages().table(sort_by=by, row_limit=25, max_name_column_width=50))


if __name__ == "__main__":
    main()
