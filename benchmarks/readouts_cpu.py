"""Compare readouts on a CPU with two common implementations: time and memory of forward + backward to node features.

    python -m benchmarks.readouts_cpu [--threads 2] [--rounds 3] [--json FILE] [--plot FILE]

Each implementation runs in a separate process, in alternation and several times, because the speed of an allocation
depends on what was freed before. The time is the median over all rounds. The memory is the peak growth of the process,
after the inputs are allocated and the libraries were used once.
"""

import argparse
import json
import resource
from pathlib import Path
from statistics import median

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.common import make_parser, run_alone, seconds, versions
from benchmarks.rivals.readouts import index_add_attn, looped_bimap, padded_bimap
from benchmarks.sizes import draw_sizes
from sopool.nn import AttentionalSecondOrderAggregation, BilinearSecondOrderAggregation

CHANNELS = 160
RANK = 32
BATCHES = {"MUTAG": 32, "NCI1": 2048, "PROTEINS": 1024, "REDDIT-BINARY": 128}


def contenders(bimap, attn):
    return {
        "bimap: sopool, ptr": lambda x, ptr, batch: bimap(x, ptr=ptr),
        "bimap: sopool, sorted index": lambda x, ptr, batch: bimap(x, batch),
        "bimap: to_dense_batch + bmm": lambda x, ptr, batch: padded_bimap(x, bimap.weight, batch),
        "bimap: loop over graphs": lambda x, ptr, batch: looped_bimap(x, bimap.weight, ptr),
        "attn: sopool, ptr": lambda x, ptr, batch: attn(x, ptr=ptr),
        "attn: sopool, sorted index": lambda x, ptr, batch: attn(x, batch),
        "attn: index_add": lambda x, ptr, batch: index_add_attn(x, attn.query, batch, ptr.numel() - 1),
        "H @ W: any bimap's least": lambda x, ptr, batch: x @ bimap.weight,
        "H @ W, forward only": lambda x, ptr, batch: x.detach() @ bimap.weight.detach(),
    }


def run_one(like: str, name: str, threads: int) -> dict:
    """Time one implementation in this process."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    sizes = torch.from_numpy(draw_sizes(like, BATCHES[like]))
    ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    batch = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    bimap = BilinearSecondOrderAggregation(CHANNELS, RANK)
    attn = AttentionalSecondOrderAggregation(CHANNELS)
    run = contenders(bimap.requires_grad_(False), attn.requires_grad_(False))[name]
    few = ptr[:9]
    step(run, torch.randn(int(few[-1]), CHANNELS, requires_grad=True), few, batch[: int(few[-1])])
    x = torch.randn(len(batch), CHANNELS, requires_grad=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(run, x, ptr, batch)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    repeats = 9 if len(batch) > 10_000 else 200
    times = [1e3 * seconds(lambda: step(run, x, ptr, batch)) for _ in range(repeats)]
    return {"ms": times, "peak_mb": peak / 1024}


def step(run, x, ptr, batch) -> None:
    out = run(x, ptr, batch)
    if out.requires_grad:
        torch.autograd.grad(out, x, torch.ones_like(out))


def measure(threads: int, rounds: int) -> dict:
    results: dict = {}
    for _ in range(rounds):
        for like in BATCHES:
            for name in contenders(None, None):
                one = run_alone(__spec__.name, "--one", like, name, "--threads", threads)
                best = results.setdefault(like, {}).setdefault(name, one | {"ms": []})
                best["ms"] += one["ms"]
                best["peak_mb"] = max(best["peak_mb"], one["peak_mb"])
    return results


def show(results: dict, threads: int) -> None:
    table = Table(title=f"forward + backward to H, f = {CHANNELS}, rank {RANK}, float32, {threads} threads")
    table.add_column("", no_wrap=True)
    for like, graphs in BATCHES.items():
        table.add_column(f"{like}\n{graphs}\nms", justify="right", no_wrap=True)
        table.add_column("\n\nratio", justify="right", no_wrap=True)
        table.add_column("\n\nMB", justify="right", no_wrap=True)
    for name in next(iter(results.values())):
        cells = []
        for one in results.values():
            ours = one.get(f"{name.split(':')[0]}: sopool, ptr")
            own = median(ours["ms"]) if ours else None
            ms = median(one[name]["ms"])
            cells += [f"{ms:.3g}", f"{ms / own:.2f}" if own else "", f"{one[name]['peak_mb']:.0f}"]
        table.add_row(name, *cells)
    Console(width=140).print(table)
    print("Under each name: number of graphs. ratio: time / that of sopool with ptr. MB: what the process grew by.")
    print(versions())


def plot(results: dict, path: Path) -> None:
    import matplotlib.pyplot as plt

    shown = {like: one for like, one in results.items() if BATCHES[like] > 32}  # the small batch needs its own scale
    colours = {"sopool, ptr": "#1b6ca8", "to_dense_batch + bmm": "#c9c9c9", "loop over graphs": "#9a9a9a"}
    colours["index_add"] = "#c9c9c9"
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), width_ratios=[3, 2], layout="constrained")
    for axis, kind in zip(axes, ("bimap", "attn"), strict=True):
        names = [n for n in next(iter(results.values())) if n.startswith(kind) and n.split(": ")[1] in colours]
        for i, name in enumerate(names):
            label = name.split(": ")[1]
            heights = [median(one[name]["ms"]) for one in shown.values()]
            places = [j + 0.8 * (i - (len(names) - 1) / 2) / len(names) for j in range(len(heights))]
            bars = axis.bar(places, heights, 0.8 / len(names), color=colours[label], label=label.split(",")[0])
            axis.bar_label(bars, fmt="%.0f", fontsize=7)
        axis.set_xticks(range(len(shown)), [f"{like}\n{BATCHES[like]} graphs" for like in shown], fontsize=7)
        axis.set_title(f"sopool-{kind}: forward + backward, ms", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=7)
    figure.savefig(path)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    parser.add_argument("--plot", type=Path, help="draw the times into this file (.svg, .png)")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(*args.one, args.threads)))
        return
    results = measure(args.threads, args.rounds)
    show(results, args.threads)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    if args.plot:
        plot(results, args.plot)


if __name__ == "__main__":
    main()
