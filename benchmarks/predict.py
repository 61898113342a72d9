"""Measure predictions per second of a trained model, compared with a PyG ``DataLoader`` loop over ``Data`` objects.

    python -m benchmarks.predict [--device cuda] [--graphs 20000] [--threads 2] [--parts speed,command,memory]

speed    The same network (GIN-0, bilinear second-order pooling) on the same graphs, repetitions of MUTAG. The time of
         PyG excludes the creation of ``Data`` objects, and that of a packed store excludes packing; a separate row for
         a list of ``Data`` includes it. The best of PyG's batch sizes, threads and workers counts, with all networks
         applied to each batch.
command  The whole ``sopool predict`` command, on JSON lines and on a packed store.
memory   ``sopool predict`` on generated graphs from a pipe: the peak memory after several numbers of graphs.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch_geometric.loader import DataLoader

from benchmarks.common import make_parser, seconds
from benchmarks.rivals.pyg import Model, make_graphs
from sopool import GraphClassifier
from sopool._runtime.environment import device_name
from sopool._runtime.threads import cores, threads
from sopool.data import load, save_graphs, to_pyg
from sopool.data.formats.jsonl import write_jsonl
from sopool.data.graphs import PackedGraphs, concatenate

BATCHES = (64, 256, 1024)
MODELS = (1, 5)
STOPS = (10_000, 100_000, 1_000_000)
"""Numbers of graphs after which memory is measured."""
console = Console(width=None if sys.stdout.isatty() else 120)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--graphs", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument(
        "--workers", default="0", help="workers of PyG's DataLoader, separated by commas; the best counts"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default="speed")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    mutag = load("MUTAG")
    many = concatenate([mutag] * -(-given.graphs // len(mutag)))[: given.graphs]
    kind = f"{device_name('cpu')}, {cores()} cores, {given.threads} threads"
    kind += f"; {device_name(given.device)}" if given.device != "cpu" else ""
    console.print(f"{kind}; torch {torch.__version__}, Python {platform.python_version()}", highlight=False)
    models = {n: GraphClassifier(n_models=n, epochs=2, device=given.device, random_state=0).fit(mutag) for n in MODELS}
    for part in given.parts.split(","):
        if part == "speed":
            speed(models, mutag, many, given.device, [int(n) for n in given.workers.split(",")], given.rounds)
        else:
            with tempfile.TemporaryDirectory() as folder:
                for n, model in models.items():
                    model.save(Path(folder) / f"{n}.sopool")
                if part == "command":
                    whole_command(Path(folder), many, given)
                else:
                    memory(Path(folder), given)


def speed(
    models: dict[int, GraphClassifier],
    mutag: PackedGraphs,
    many: PackedGraphs,
    device: str,
    workers: list[int],
    rounds: int,
) -> None:
    """Print a table of all implementations, measured in alternation, with the best round of each."""
    features = models[1].encoder_.transform(many).rows()
    loaded = make_graphs(many, features, torch.zeros(len(many), dtype=torch.long))
    data = to_pyg(many)
    unpacked = GraphClassifier(n_models=1, epochs=1, device=device).fit(to_pyg(mutag))
    contenders: dict[str, Callable[[], object]] = {
        "1 network, packed store": lambda: models[1].predict_proba(many),
        "5 networks, packed store": lambda: models[5].predict_proba(many),
        "1 network, list of Data": lambda: unpacked.predict_proba(data),
    }
    for n, size, aside, count in product(MODELS, BATCHES, workers, sorted({1, torch.get_num_threads()})):
        networks = [Model(features.shape[1], 2).eval().to(device) for _ in range(n)]
        name = f"PyG, {n} network{'s' * (n > 1)}, batches of {size}, {count} thread{'s' * (count > 1)}, {aside} workers"
        contenders[name] = partial(by_pyg, networks, loaded, size, aside, count, device)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, work in contenders.items():
            before = time.process_time()
            wall_time = seconds(work)
            if turn:  # the first round is for warm-up
                times[name].append((wall_time, time.process_time() - before))
    wall = {name: len(many) / min(one for one, _ in each) for name, each in times.items()}
    cpu = {name: len(many) / min(one for _, one in each) for name, each in times.items()}
    table = Table("", "graphs/s", "of PyG's best", "graphs per second of a core", "of PyG's best")
    for name in contenders:
        rival = "PyG, 5" if name.startswith("5") or "5 networks" in name else "PyG, 1"
        cells = [name]
        for rates in (wall, cpu):
            best = max(rate for other, rate in rates.items() if other.startswith(rival))
            cells += [f"{rates[name]:,.0f}", f"{rates[name] / best:.1f} x"]
        table.add_row(*cells)
    console.print(table)


@torch.no_grad()
def by_pyg(networks: list[Model], graphs: list, size: int, workers: int, count: int, device: str) -> np.ndarray:
    """Predict with the usual PyG loop."""
    parts = []
    with threads(count):
        for batch in DataLoader(graphs, size, num_workers=workers, pin_memory=device != "cpu"):
            batch = batch.to(device, non_blocking=True)
            parts.append(torch.stack([network(batch).softmax(1) for network in networks]).mean(0))
        return torch.cat(parts).cpu().numpy()


def whole_command(folder: Path, many: PackedGraphs, given: argparse.Namespace) -> None:
    """Return graphs per second over the whole command, and as the command reports it, without its start-up time."""
    write_jsonl(many, folder / "many.jsonl")
    save_graphs(many, folder / "many.graphs")
    table = Table("sopool predict", "graphs/s, with its start", "seconds of a core", "what it says")
    for n, source in product(MODELS, ("many.jsonl", "many.graphs")):
        line = [*_command(folder, n, given), str(folder / source), "-o", str(folder / "out.csv")]
        subprocess.run(line, check=True, capture_output=True, env=_threads(given))  # fills all caches
        start = time.perf_counter()
        before = os.times()
        done = subprocess.run(line, check=True, capture_output=True, text=True, env=_threads(given))
        wall_time = time.perf_counter() - start
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        said = done.stderr.partition("note: ")[2].partition(" They are")[0]
        table.add_row(f"{n} networks, {source}", f"{len(many) / wall_time:,.0f}", f"{cpu:.1f}", said)
    console.print(table)


def memory(folder: Path, given: argparse.Namespace) -> None:
    """Measure memory while the command reads from a pipe, which keeps it close to its input. This requires Linux."""
    line = [*_command(folder, 5, given), "-"]
    table = Table("graphs so far", "most memory", "graphs/s")
    start = time.perf_counter()
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=_threads(given)) as process:
        assert process.stdin is not None
        for number, text in enumerate(generated(STOPS[-1]), 1):
            process.stdin.write(text)
            if number in STOPS:
                process.stdin.flush()
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = int(status.partition("VmHWM:")[2].split()[0]) / 1e3
                table.add_row(f"{number:,}", f"{peak:,.0f} MB", f"{number / (time.perf_counter() - start):,.0f}")
        process.stdin.close()
    console.print(table)


def generated(count: int) -> Iterator[bytes]:
    """Yield JSON lines of random trees with a few rings, with 10 to 26 nodes and the labels of MUTAG."""
    random = np.random.default_rng(0)
    names = np.array(["C", "C", "C", "N", "O", "F", "Cl"])
    for _ in range(count):
        nodes = int(random.integers(10, 27))
        earlier = np.maximum(np.arange(1, nodes) - random.integers(1, 4, nodes - 1), 0)
        edges = {(i, int(j)) for i, j in enumerate(earlier, 1)}
        edges |= {(nodes - 1, int(j)) for j in random.integers(0, 5, 2)}
        record = {"nodes": nodes, "edges": sorted(edges), "node_labels": random.choice(names, nodes).tolist()}
        yield json.dumps(record).encode() + b"\n"


def _command(folder: Path, models: int, given: argparse.Namespace) -> list[str]:
    return [sys.executable, "-m", "sopool", "predict", str(folder / f"{models}.sopool"), "--device", given.device]


def _threads(given: argparse.Namespace) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": str(given.threads)}


if __name__ == "__main__":
    main()
