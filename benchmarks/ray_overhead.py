"""Measure the overhead and the speed-up of the Ray executor on this machine, and the accuracy of its memory estimate.

    python -m benchmarks.ray_overhead [--part memory] [--epochs 20] [--banks 40] [--root FOLDER]

Overhead: many small banks with one short epoch on warm workers, compared with the same banks trained sequentially
in this process. Speed-up: ten folds of MUTAG (hidden 32, batch 32, 50 steps) with one, two and more workers. Memory:
the estimate for a bank, and the growth of a new process while it trains the bank for one epoch.
"""

import argparse
import logging
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import ray
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.common import DATA, make_parser, run_alone, seconds
from sopool.data.sources.catalogue import load
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.executors.local import TableFacts, Train, tables_for, train_all
from sopool.experiments.executors.needs import PROCESS, Needs, Resources
from sopool.experiments.executors.ray_executor import train_on_ray
from sopool.experiments.executors.run_server import BankAttempt, RunServer
from sopool.models.config import Setting
from sopool.training.bank.bank import Bank
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore

CASES = [
    ("MUTAG", "sopool-bimap", Setting()),
    ("MUTAG", "sopool", Setting(hidden=64, batch_size=128)),
    ("MUTAG", "diffpool", Setting(batch_size=128)),
    ("PROTEINS", "sopool-bimap", Setting(hidden=64, batch_size=128)),
    ("NCI1", "sopool-attn", Setting(hidden=64, batch_size=128)),
    ("DD", "sopool-bimap", Setting(batch_size=32)),
]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--epochs", type=int, default=20, help="epochs of the speed-up measurement")
    parser.add_argument("--banks", type=int, default=40, help="number of banks of the overhead measurement")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers; the first is the baseline"
    )
    parser.add_argument("--root", type=Path, default=DATA, help="folder with the data sets")
    parser.add_argument("--part", choices=PARTS, action="append", help="table to print; default: all")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(growth(*args.one, args.root))
        return
    os.environ.update(RAY_worker_niceness="0")  # the same niceness as local workers
    console = Console(width=120)
    for part in args.part or PARTS:
        console.print(PARTS[part](args))
    load_now = os.getloadavg()[0]
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {load_now:.1f}, Python {platform.python_version()}, "
        f"torch {torch.__version__}, Ray {ray.__version__}"
    )


def timed(train: Train, request: Request, data: str, root: Path, workers: int | None) -> float:
    """Return the seconds to train all first runs of a request into a new store."""
    with tempfile.TemporaryDirectory() as folder:
        evaluator = Evaluator(load(data, root), request, RunStore(folder))
        configs = evaluator.first_runs()
        start = time.perf_counter()
        assert train(evaluator.store, evaluator.runs, configs, "cpu", workers, lambda _: None, lambda: False)
        return time.perf_counter() - start


@contextmanager
def ray_of(cores: int) -> Iterator[None]:
    """Start a Ray cluster on this machine with the given number of cores."""
    ray.init("local", num_cpus=cores, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def overhead(args: argparse.Namespace) -> Table:
    """Measure the overhead per bank; settings with different batch sizes form separate banks."""
    settings = [Setting(hidden=4, batch_size=2 + number) for number in range(args.banks // 2)]
    request = Request(["sum"], ["single-epoch"], settings=settings, epochs=1, folds=2, steps=1)
    first = replace(request, settings=settings[:1])
    start = time.perf_counter()
    with ray_of(1):
        cluster = time.perf_counter() - start
        cold = timed(train_on_ray, first, "MUTAG", args.root, None)
        few = [timed(train_on_ray, first, "MUTAG", args.root, None) for _ in range(args.repeats)]
        many = [timed(train_on_ray, request, "MUTAG", args.root, None) for _ in range(args.repeats)]
    here = [timed(train_all, request, "MUTAG", args.root, 1) for _ in range(args.repeats)]
    banks = len(settings)
    table = Table(title="Overhead of the Ray executor, one worker, MUTAG", title_justify="left")
    for name in ("", "seconds"):
        table.add_column(name, justify="left" if not name else "right")
    per_bank = (median(many) - median(few)) / (banks - 1)
    local_bank = median(here) / banks
    rows = {
        "a cluster of this machine starts": cluster,
        "a first bank: server and worker start, import, compile": cold,
        "the same again: the server starts": median(few),
        f"each further bank, two models, one step, {banks} banks": per_bank,
        "such a bank trained here": local_bank,
        "overhead of a bank": per_bank - local_bank,
    }
    for name, taken in rows.items():
        table.add_row(name, f"{taken:.3f}")
    return table


def speed_up(args: argparse.Namespace) -> Table:
    request = Request(["sopool-bimap"], ["single-epoch"], epochs=args.epochs)
    table = Table(title=f"Ten folds of MUTAG, {args.epochs} epochs of 50 steps, seconds", title_justify="left")
    for name in ("workers", "local", "speed-up", "Ray", "speed-up", "Ray / local"):
        table.add_column(name, justify="right")
    base: tuple[float, float] | None = None
    for workers in args.workers:
        local = median(timed(train_all, request, "MUTAG", args.root, workers) for _ in range(args.repeats))
        with ray_of(workers):
            timed(train_on_ray, replace(request, epochs=1), "MUTAG", args.root, None)  # starts the workers
            on_ray = median(timed(train_on_ray, request, "MUTAG", args.root, None) for _ in range(args.repeats))
        base = base or (local, on_ray)
        cells = [f"{local:.1f}", f"{base[0] / local:.2f}", f"{on_ray:.1f}", f"{base[1] / on_ray:.2f}"]
        table.add_row(str(workers), *cells, f"{on_ray / local:.2f}")
    return table


def messages(args: argparse.Namespace) -> Table:
    """Time calls of the run server, directly and through Ray."""
    with tempfile.TemporaryDirectory() as folder, ray_of(1):
        request = Request(["sopool-bimap"], ["single-epoch"], epochs=2, steps=1, folds=2)
        evaluator = Evaluator(load("MUTAG"), request, RunStore(folder))
        evaluator.evaluate(workers=1)
        runs = [evaluator.runs.load(config) for config in evaluator.first_runs()]
        server = RunServer(folder, [[run.config for run in runs if run]], 20.0)
        actor = ray.remote(num_cpus=0)(RunServer).remote(folder, [[run.config for run in runs if run]], 20.0)
        attempt = BankAttempt(0, -1)
        arrays = {"values": torch.zeros(4, 40_000).numpy(), "logits": torch.zeros(350, 411, 2).numpy()}
        config = evaluator.first_runs()[0]
        ray.get(actor.news.remote())
        calls: dict[str, Callable[[], object]] = {
            "a worker says how far it is": lambda: ray.get(actor.pulse.remote(attempt, [])),
            "a checkpoint of 1.8 MB, written": lambda: server.save_checkpoint(attempt, config, arrays, {"epoch": 1}),
            "the same, sent by a worker": lambda: ray.get(
                actor.save_checkpoint.remote(attempt, config, arrays, {"epoch": 1})
            ),
        }
        table = Table(title="The server, one call after the other", title_justify="left")
        table.add_column("")
        table.add_column("ms", justify="right")
        for name, call in calls.items():
            table.add_row(name, f"{1000 * median(seconds(call) for _ in range(30)):.2f}")
        ray.kill(actor)
        return table


def memory(args: argparse.Namespace) -> Table:
    table = Table(title="A bank of ten models on a CPU, MB without libraries", title_justify="left")
    for name in ("data", "pool", "hidden", "batch", "estimated", "grew by", "estimated / grew by"):
        table.add_column(name, justify="left" if name in ("data", "pool") else "right")
    for data, pool, setting in CASES:
        grew = run_alone(__spec__.name, "--root", args.root, "--one", data, pool, setting.hidden, setting.batch_size)
        needs, bank = _needs(data, pool, setting, args.root)
        estimated = needs.bytes_of(bank) - PROCESS["cpu"]
        cells = [data, pool, str(setting.hidden), str(setting.batch_size)]
        table.add_row(*cells, f"{estimated / 1e6:.0f}", f"{grew / 1e6:.0f}", f"{estimated / grew:.2f}")
    return table


def _bank(data: str, pool: str, setting: Setting, root: Path) -> tuple[Evaluator, list[RunConfig]]:
    request = Request([pool], ["single-epoch"], settings=[setting], steps=10, epochs=1)
    evaluator = Evaluator(load(data, root), request, RunStore("unused"))
    return evaluator, evaluator.first_runs()


def _needs(data: str, pool: str, setting: Setting, root: Path) -> tuple[Needs, list[RunConfig]]:
    evaluator, configs = _bank(data, pool, setting, root)
    tables = tables_for(evaluator.store, TableFacts.of(configs[0]), "cpu")
    return Needs(Splitter(evaluator.store.labels.numpy()), lambda _: tables, "cpu", Resources(1e12, 0.0)), configs


def growth(data: str, pool: str, hidden: str, batch: str, root: Path) -> int:
    """Return the largest growth of this process in bytes, after the tables are built and the code is compiled."""
    torch.set_num_threads(1)
    evaluator, configs = _bank(data, pool, Setting(int(hidden), int(batch)), root)
    tables = tables_for(evaluator.store, TableFacts.of(configs[0]), "cpu")
    splitter = Splitter(tables.truth.numpy())
    small = [replace(config.with_setting(Setting(2, 2)), steps=1) for config in configs[:1]]
    _epoch(Bank(tables, small, [splitter(config) for config in small]), 4)
    before = _resident()
    _epoch(Bank(tables, configs, [splitter(config) for config in configs]), None)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before


def _epoch(bank: Bank, most: int | None) -> None:
    bank.run_epoch()
    bank.scores([split.train[:most] for split in bank.splits])


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


PARTS = {"overhead": overhead, "speed-up": speed_up, "messages": messages, "memory": memory}

if __name__ == "__main__":
    main()
