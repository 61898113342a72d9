"""Compare the cost of pairs of nodes with that of bimap on a CPU: forward and backward pass to features and parameters.

    python -m benchmarks.pairs_cost [--root FOLDER] [--datasets MUTAG] [--threads 1 2] [--distances 6] [--json FILE]

FOLDER contains MUTAG.zip and others of the TU collection. The batches are the first graphs of each data set in random
order, with random features. Pairs are listed beforehand, as a data set keeps them, unless the form says that they are
searched. All forms take turns in one process, so that each round compares them under the same conditions. The time of a
form in a round is that of the fastest of several calls. The ratios are times divided by those of bimap in the same
round: the median over all rounds, and in brackets the 10% and 90% quantiles.

    python -m benchmarks.pairs_cost --memory

shows memory instead of time: the peak growth of a separate process for each form, after the inputs are allocated and
the libraries were used once.
"""

import argparse
import json
import resource
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.common import DATA, make_parser, processor, run_alone, seconds, versions
from benchmarks.readouts_cpu import Form, Times, ratio_of
from sopool.data import PackedGraphs, load
from sopool.data.analysis.distances import pair_lists
from sopool.nn import BilinearSecondOrderAggregation, PairSecondOrderAggregation
from sopool.ops import Pairs
from sopool.ops.segment.segments import Segments

RANK = 16
BATCHES = {"MUTAG": 32, "NCI1": 512, "PROTEINS": 256, "DD": 64, "COLLAB": 64}
SMALL = 2_000
"""The largest number of nodes for which a round makes many calls."""


class Batch(NamedTuple):
    """Graphs with random features, their edges and the pairs of their nodes."""

    x: Tensor
    edge_index: Tensor
    index: Tensor
    ptr: Tensor
    pairs: Pairs


def make_batch(store: PackedGraphs, graphs: int, channels: int, distances: int) -> Batch:
    """Return a batch of randomly chosen graphs."""
    some = store[torch.randperm(len(store))[:graphs]]
    batch = some.batch(range(len(some)))
    index = torch.repeat_interleave(torch.arange(len(some)), batch.ptr.diff())
    x = torch.randn(len(index), channels, requires_grad=True)
    return Batch(
        x, batch.edge_index, index, batch.ptr, pair_lists(some, distances).take(batch.graphs, batch.ptr, batch.nodes)
    )


def make_forms(batch: Batch, distances: int) -> dict[str, Form]:
    """Return all forms by name."""
    x, edges, index, ptr, pairs = batch
    graphs = ptr.numel() - 1
    channels = x.shape[1]
    bimap = BilinearSecondOrderAggregation(channels, RANK)
    plain, rest, walks = (
        PairSecondOrderAggregation(channels, RANK, distances, **options)
        for options in ({}, {"rest": True}, {"walks": True})
    )
    segments = Segments(ptr)
    return {
        "bimap": Form(lambda: bimap(x, ptr=ptr), [x, bimap.weight]),
        "pairs": Form(lambda: plain.pool(x, pairs, segments), [x, plain.weight]),
        "pairs and rest": Form(lambda: rest.pool(x, pairs, segments), [x, rest.weight]),
        "pairs, searched": Form(lambda: plain(x, edges, index, graphs), [x, plain.weight]),
        "walks": Form(lambda: walks(x, edges, index, graphs), [x, walks.weight]),
    }


def measure(batch: Batch, distances: int, rounds: int) -> Times:
    """Time all forms in turns."""
    forms = make_forms(batch, distances)
    calls = 20 if len(batch.x) < SMALL else 2
    times: Times = {name: [] for name in forms}
    for form in forms.values():
        form.step()
    for _ in range(rounds):
        for name, form in forms.items():
            times[name].append(1e3 * min(seconds(form.step) for _ in range(calls)))
    return times


def measure_memory(name: str, form: str, args: argparse.Namespace) -> float:
    """Return the megabytes by which this process grows in one step."""
    torch.set_num_threads(args.threads[0])
    torch.manual_seed(0)
    store = load(name, args.root)
    make_forms(make_batch(store, 2, args.channels, args.distances), args.distances)[form].step()
    step = make_forms(make_batch(store, BATCHES[name], args.channels, args.distances), args.distances)[form].step
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def show(title: str, times: Times) -> None:
    """Print the time of each form, beside that of bimap."""
    table = Table(title=title, title_justify="left")
    for column in ("form", "ms", "ratio"):
        table.add_column(column, justify="left" if column == "form" else "right", no_wrap=True)
    for name, own in times.items():
        table.add_row(name, f"{median(own):.3f}", ratio_of(own, times["bimap"]))
    Console(width=140).print(table)


def show_memory(threads: int, forms: list[str], args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Print and return the memory of each form."""
    options = ("--channels", args.channels, "--distances", args.distances, "--threads", threads, "--root", args.root)
    found: dict[str, dict[str, float]] = {}
    table = Table(title=f"peak growth in MB, f = {args.channels}, rank {RANK}, K = {args.distances}")
    for column in ("", *args.datasets):
        table.add_column(column, justify="right" if column else "left")
    for form in forms:
        found[form] = {name: run_alone(__spec__.name, "--one", name, form, *options) for name in args.datasets}
        table.add_row(form, *(f"{one:.0f}" for one in found[form].values()))
    Console(width=140).print(table)
    return found


def parse(given: list[str] | None = None) -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--datasets", nargs="+", choices=BATCHES, default=list(BATCHES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--distances", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--memory", action="store_true", help="measure memory instead of time")
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> None:
    args = parse(given)
    if args.one:
        print(measure_memory(*args.one, args))
        return
    torch.manual_seed(0)
    batches = {
        name: make_batch(load(name, args.root), BATCHES[name], args.channels, args.distances) for name in args.datasets
    }
    results: dict[str, Times | dict[str, dict[str, float]]] = {}
    for threads in args.threads:
        if args.memory:
            forms = list(make_forms(next(iter(batches.values())), args.distances))
            results[f"threads: {threads}"] = show_memory(threads, forms, args)
            continue
        torch.set_num_threads(threads)
        for name, batch in batches.items():
            title = f"{BATCHES[name]} graphs of {name}, {len(batch.x):,} nodes, {len(batch.pairs.nodes):,} pairs to "
            title += f"distance {args.distances}, f = {args.channels}, rank {RANK}, threads: {threads}"
            times = results[title] = measure(batch, args.distances, args.rounds)
            show(title, times)
    print(processor(), versions(), sep=", ")
    if args.json:
        args.json.write_text(json.dumps({"MB" if args.memory else "ms": results}, indent=1))


if __name__ == "__main__":
    main()
