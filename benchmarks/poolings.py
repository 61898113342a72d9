"""Measure parameters, step time and memory of every pooling on real graphs, and of padded or dense implementations.

    python -m benchmarks.poolings [--data MUTAG,PROTEINS,DD] [--device cuda] [--threads 2] [--batch 128] [--json FILE]

Readouts: node features H of width 160 of a batch of graphs, forward and backward to H and the parameters. Hierarchies:
a whole model of 3 blocks, hidden 128, forward and backward. The batch includes the largest graph of the data set. On a
GPU, steps are also captured into a CUDA graph, as in a bank, which excludes the time of kernel launches. Memory is the
peak above that of the graphs; on a CPU it is the growth of a separate process, which requires Linux.
"""

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.common import DATA, command, make_parser, seconds, versions
from benchmarks.rivals.poolings import RIVALS, RefusedError, rival
from sopool.data import load
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.models import extras_for, make_model
from sopool.models.presets import edges_used, model_config
from sopool.nn import GRAPH_READOUTS, POOLINGS, READOUTS, make_readout
from sopool.nn.aggr.base import GraphReadout
from sopool.ops.message_passing.structure import GraphStructure
from sopool.training.bank.capture import capture, run_aside

CHANNELS = 160
HIDDEN = 128
BLOCKS = 3
STEPS = {"cpu": 20, "cuda": 50}


def contenders():
    flat = [f"{name}{kind}" for name in (*READOUTS, *GRAPH_READOUTS) for kind in ("", " (rival)")]
    flat = [name for name in flat if not name.endswith("(rival)") or name.split()[0] in RIVALS]
    return [*flat, *(f"{name}, {BLOCKS} blocks" for name in POOLINGS)]


def facts_of(config):
    """Return what determines the tables of a model that classifies."""
    return TableFacts(
        "test", tuple(extras_for(config).items()), edges_used(config), False, ("classification", "accuracy", None)
    )


def prepare(name, data, args):
    """Return a function that, for a number of graphs, returns the layer or model and a function that runs one step."""
    store = cached_load(data, args.root)
    blocks = BLOCKS if name.endswith("blocks") else 0
    pool = name.split(",")[0].split(" ")[0]
    config = model_config(store, "gcn" if blocks else "gin-0", pool, blocks=blocks)
    tables = tables_for(store, facts_of(config), args.device)
    order = torch.randperm(len(tables), generator=torch.Generator().manual_seed(0)).to(args.device)

    def make(graphs, largest=True):
        torch.manual_seed(0)
        chosen = order[:graphs].clone()
        if largest:
            chosen[0] = tables.node_ptr.diff().argmax()
        batch = tables.batch(chosen.view(1, -1))
        if blocks:
            model = make_model(replace(config, hidden=HIDDEN), tables.features.width, tables.goal[0].width).to(
                args.device
            )
            return model, lambda: step(model.classify(batch.x, batch.neighbors, batch.ptr), model)
        x = torch.randn(len(batch.x), CHANNELS, device=args.device).relu_().requires_grad_()
        if name.endswith("(rival)"):
            layer, call = rival(pool, CHANNELS, batch, config.pool_options, args.device)
            return layer, lambda: step(call(x), layer, x)
        layer = make_readout(pool, CHANNELS, **config.pool_options).to(args.device)
        graphs = GraphStructure(batch.ptr, batch.neighbors)
        if isinstance(layer, GraphReadout):
            return layer, lambda: step(layer.read(x, graphs), layer, x)
        return layer, lambda: step((layer(x, ptr=batch.ptr), None), layer, x)

    return make


def step(out, layer, *inputs):
    values, loss = out
    total = values.sum() if loss is None else values.sum() + loss.sum()
    torch.autograd.grad(total, [*inputs, *layer.parameters()])


cached_load = cache(load)


def run_one(name, data, args) -> dict:
    """Measure one implementation in this process."""
    torch.set_num_threads(args.threads)
    try:
        make = prepare(name, data, args)
        cuda = args.device != "cpu"
        make(4, largest=False)[1]()  # initializes the libraries
        layer, once = make(args.batch)
        if cuda:
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            once()
            torch.cuda.synchronize()
            peak = torch.cuda.max_memory_allocated() - before
        else:
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak
            before = memory("VmRSS")
            once()
            peak = memory("VmHWM") - before
        found = {"ms": timed(once, cuda), "peak_mb": peak / 2**20}
        # PyG's implementations synchronize with the device, and so do poolings that cannot be captured.
        if cuda and not name.endswith("(rival)") and all(getattr(one, "capturable", True) for one in layer.modules()):
            run_aside(once)
            found["captured_ms"] = timed(capture(once).replay, cuda)
    except RefusedError as error:
        return {"refused": str(error)}
    return found | {"parameters": sum(parameter.numel() for parameter in layer.parameters())}


def timed(once, cuda: bool) -> float:
    """Return the median time of several steps in milliseconds."""

    def finished() -> None:
        once()
        if cuda:
            torch.cuda.synchronize()

    return 1e3 * median(seconds(finished) for _ in range(STEPS["cuda" if cuda else "cpu"]))


def memory(kind: str) -> int:
    """Return the memory of this process in bytes: VmRSS (current) or VmHWM (peak)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(kind))


def measure(args) -> dict:
    results: dict = {}
    given = ["--device", args.device, "--threads", args.threads, "--batch", args.batch]
    for data in args.data.split(","):
        for name in args.only.split(";") if args.only else contenders():
            if args.device == "cpu":
                line = command(__spec__.name, "--one", data, name, *given, "--root", args.root)
                done = subprocess.run(line, capture_output=True, text=True)
                failed = {"refused": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
                found = failed if done.returncode else json.loads(done.stdout.splitlines()[-1])
            else:
                found = run_one(name, data, args)
            results.setdefault(data, {})[name] = found
            print(data, name, found, file=sys.stderr, flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=1))
    return results


def show(results: dict, args) -> None:
    where = torch.cuda.get_device_name() if args.device != "cpu" else f"{args.threads} threads of {platform.machine()}"
    table = Table(title=f"One step, forward + backward, {args.batch} graphs, float32, {where}")
    table.add_column("", no_wrap=True)
    table.add_column("parameters", justify="right")
    for data in results:
        table.add_column(f"{data}\nms", justify="right")
        table.add_column("\nMB", justify="right")
    for name in next(iter(results.values())):
        cells = []
        count = "-"
        for one in results.values():
            found = one[name]
            if "refused" in found:
                cells += ["-", found["refused"]]
            else:
                captured = f" ({found['captured_ms']:.3g})" if "captured_ms" in found else ""
                cells += [f"{found['ms']:.3g}{captured}", f"{found['peak_mb']:.0f}"]
                count = f"{found['parameters']:,}"
        table.add_row(name, count, *cells)
    Console(width=140).print(table)
    print(versions())


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", default="MUTAG,PROTEINS,DD")
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--only", help="names of implementations, separated by semicolons")
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    parser.add_argument("--one", nargs=2, metavar=("DATA", "NAME"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one[1], args.one[0], args)))
        return
    results = measure(args)
    show(results, args)


if __name__ == "__main__":
    main()
