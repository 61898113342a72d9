"""Compare readouts on a CPU with hand-written forms: forward and backward pass to the features and the parameters.

    python -m benchmarks.readouts_cpu [--sizes MUTAG] [--threads 1 2] [--channels 32 160] [--json FILE] [--plot FILE]

All forms take turns in one process, so that each round compares them under the same conditions. The time of a form in a
round is that of the fastest of several calls. The ratios are times of sopool divided by those of the hand-written form
in the same round: the median over all rounds, and in brackets the 10% and 90% quantiles.

    python -m benchmarks.readouts_cpu --memory

shows memory instead of time: the peak growth of a separate process for each form, after the inputs are allocated and
the libraries were used once.
"""

import argparse
import importlib.util
import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple
from unittest import mock

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.common import make_parser, processor, run_alone, seconds, versions
from benchmarks.rivals.poolings import PADDED, Padded, covariance
from benchmarks.rivals.readouts import index_add_attn, looped_bimap, padded_bimap
from benchmarks.sizes import draw_sizes
from sopool.nn import (
    AttentionalSecondOrderAggregation,
    BilinearSecondOrderAggregation,
    CovarianceAggregation,
    MultiHeadSecondOrderAggregation,
)
from sopool.ops.numba import dispatch

RANK = 32
HEADS = 8
BATCHES = {"MUTAG": 32, "NCI1": 2048, "PROTEINS": 1024, "REDDIT-BINARY": 128}
SMALL = 2_000
"""The largest number of nodes for which a round makes many calls."""
OWN = {"sopool": False, "sopool with Numba": True}

Times = dict[str, list[float]]
"""The milliseconds of each round, by the names of readout and form."""


class Batch(NamedTuple):
    """Graphs with random features."""

    x: Tensor
    index: Tensor
    ptr: Tensor


class Form(NamedTuple):
    """One implementation of a readout, and the tensors whose gradients are computed."""

    run: Callable[[], Tensor]
    inputs: list[Tensor]

    def step(self) -> None:
        """Run the forward and the backward pass."""
        out = self.run()
        torch.autograd.grad(out, self.inputs, torch.ones_like(out))


def make_batch(like: str, channels: int, graphs: int) -> Batch:
    """Return the first graphs of a batch with sizes like those of a data set."""
    sizes = torch.from_numpy(draw_sizes(like, BATCHES[like]))[:graphs]
    ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    index = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    return Batch(torch.randn(len(index), channels, requires_grad=True), index, ptr)


def make_forms(batch: Batch) -> dict[str, Form]:
    """Return all forms of all readouts, named "readout: form"."""
    x, index, ptr = batch
    graphs = ptr.numel() - 1
    channels = x.shape[1]
    own = {
        "bimap": BilinearSecondOrderAggregation(channels, RANK),
        "attn": AttentionalSecondOrderAggregation(channels),
        "m_attn": MultiHeadSecondOrderAggregation(channels, HEADS),
        "covpool": CovarianceAggregation(channels),
    }
    heads = Padded(channels, *PADDED["sopool-m-attn"])
    covpool = Padded(channels, 0, covariance)
    w = own["bimap"].weight
    query = own["attn"].query
    forms = {
        f"{kind}: {name}": Form(lambda pool=pool: pool(x, index, dim_size=graphs), [x, *pool.parameters()])
        for (kind, pool), name in product(own.items(), OWN)
    }
    return forms | {
        "bimap: padding": Form(lambda: padded_bimap(x, w, index, graphs), [x, w]),
        "bimap: loop": Form(lambda: looped_bimap(x, w, ptr), [x, w]),
        "bimap: H W alone": Form(lambda: x @ w, [x, w]),
        "attn: index_add": Form(lambda: index_add_attn(x, query, index, graphs), [x, query]),
        "m_attn: padding": Form(lambda: heads(x, index), [x, heads.weight]),
        "covpool: padding": Form(lambda: covpool(x, index), [x]),
    }


@contextmanager
def numba_for(name: str) -> Iterator[None]:
    """Use compiled loops in the block only for forms with Numba."""
    needed = OWN.get(name.rpartition(": ")[2], False)
    with mock.patch.object(dispatch, "_installed", partial(bool, needed)):  # a Mock would take longer than a readout
        yield


def chosen_forms(like: str, channels: int, graphs: int) -> dict[str, Form]:
    """Return the forms to measure: on large batches not those that need no comparison there."""
    forms = make_forms(make_batch(like, channels, graphs))
    kinds = ("bimap", "attn", "m_attn", "covpool") if like == "MUTAG" else ("bimap", "attn")
    available = [name for name, needed in OWN.items() if not needed or importlib.util.find_spec("numba")]
    return {
        name: form
        for name, form in forms.items()
        if name.startswith(tuple(f"{kind}: " for kind in kinds))
        and (name.split(": ")[1] not in OWN or name.split(": ")[1] in available)
    }


def measure(like: str, channels: int, rounds: int) -> Times:
    """Time all forms in turns."""
    torch.manual_seed(0)
    forms = chosen_forms(like, channels, BATCHES[like])
    calls = 20 if sum(draw_sizes(like, BATCHES[like])) < SMALL else 2
    times: Times = {name: [] for name in forms}
    for name, form in forms.items():
        with numba_for(name):
            form.step()
    for _ in range(rounds):
        for name, form in forms.items():
            with numba_for(name):
                times[name].append(1e3 * min(seconds(form.step) for _ in range(calls)))
    return times


def measure_memory(like: str, name: str, channels: int, threads: int) -> float:
    """Return the megabytes by which this process grows in one step."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    with numba_for(name):
        make_forms(make_batch(like, channels, 8))[name].step()
        form = make_forms(make_batch(like, channels, BATCHES[like]))[name]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        form.step()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def show(like: str, title: str, times: Times) -> None:
    """Print the comparison of each readout with each hand-written form."""
    table = Table(title=f"{BATCHES[like]} graphs like {like}, {title}", title_justify="left")
    own = [name for name in OWN if f"bimap: {name}" in times]
    for column in ("readout", "form", "ms", *(f"{name}\nms" for name in own), *(f"{name}\nratio" for name in own)):
        table.add_column(column, justify="left" if column in ("readout", "form") else "right", no_wrap=True)
    for name, theirs in times.items():
        kind, form = name.split(": ")
        if form not in OWN:
            ours = [times[f"{kind}: {one}"] for one in own]
            ratios = [ratio_of(one, theirs) for one in ours]
            table.add_row(kind, form, f"{median(theirs):.3f}", *(f"{median(one):.3f}" for one in ours), *ratios)
    Console(width=140).print(table)


def ratio_of(ours: list[float], theirs: list[float]) -> str:
    """Return the ratio of two lists of times that were measured in turns, with its spread."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    if len(ratios) == 1:
        return f"{ratios[0]:.2f}"
    low, *_, high = quantiles(ratios, n=10, method="inclusive")
    return f"{median(ratios):.2f} ({low:.2f}-{high:.2f})"


def show_memory(names: list[str], channels: int, threads: int) -> dict[str, dict[str, float]]:
    """Print and return the memory of each form."""
    found: dict[str, dict[str, float]] = {}
    table = Table(title=f"peak growth in MB, f = {channels}, rank {RANK}, {threads} threads")
    for column in ("", *names):
        table.add_column(column, justify="right" if column else "left")
    for name in chosen_forms(names[-1], channels, 8):
        found[name] = {
            like: run_alone(__spec__.name, "--one", like, name, "--channels", channels, "--threads", threads)
            for like in names
        }
        table.add_row(name, *(f"{one:.0f}" for one in found[name].values()))
    Console(width=140).print(table)
    return found


def plot(results: dict[str, Times], path: Path) -> None:
    """Draw the times of the large batches."""
    import matplotlib.pyplot as plt

    colours = {"sopool with Numba": "#0b3c5d", "sopool": "#1b6ca8", "padding": "#c9c9c9", "loop": "#9a9a9a"}
    colours["index_add"] = "#c9c9c9"
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), width_ratios=[3, 2], layout="constrained")
    for axis, kind in zip(axes, ("bimap", "attn"), strict=True):
        names = [label for label in colours if f"{kind}: {label}" in next(iter(results.values()))]
        for i, label in enumerate(names):
            heights = [median(times[f"{kind}: {label}"]) for times in results.values()]
            places = [j + 0.8 * (i - (len(names) - 1) / 2) / len(names) for j in range(len(heights))]
            bars = axis.bar(places, heights, 0.8 / len(names), color=colours[label], label=label)
            axis.bar_label(bars, fmt="%.0f", fontsize=6)
        axis.set_xticks(range(len(results)), [f"{like}\n{BATCHES[like]} graphs" for like in results], fontsize=7)
        axis.set_title(f"sopool-{kind}: forward + backward, ms", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=7)
    figure.savefig(path)


def parse() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", nargs="+", choices=BATCHES, default=list(BATCHES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--channels", type=int, nargs="+", default=[32, 160])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--memory", action="store_true", help="measure memory instead of time")
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    parser.add_argument("--plot", type=Path, help="draw the last setting's times of large batches (.svg, .png)")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = parse()
    if args.one:
        print(measure_memory(*args.one, args.channels[0], args.threads[0]))
        return
    results: dict[str, dict[str, Times | dict[str, float]]] = {}
    for threads, channels in product(args.threads, args.channels):
        title = f"f = {channels}, rank {RANK}, {HEADS} heads, float32, threads: {threads}"
        if args.memory:
            results[title] = show_memory(args.sizes, channels, threads)
            continue
        torch.set_num_threads(threads)
        found = results[title] = {}
        for like in args.sizes:
            found[like] = measure(like, channels, args.rounds)
            show(like, title, found[like])
    print(processor(), versions(), sep=", ")
    if args.json:
        args.json.write_text(json.dumps({"ms": results}, indent=1))
    if args.plot:
        plot({like: times for like, times in found.items() if like != "MUTAG"}, args.plot)


if __name__ == "__main__":
    main()
