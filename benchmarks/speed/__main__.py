"""Measure speed and memory: readouts compared with a lower bound (floor), the bank with other implementations.

    python -m benchmarks.speed [--device cuda] [--quick] [--part readouts,bank] [--models 1,10] [--data MUTAG,NCI1]
                               [--scale models,graphs,width,nodes] [--profile] [-o FILE] [--json] [--plot FOLDER]
    python -m benchmarks.speed --from FILE [--plot FOLDER]

Lists are separated by commas. All figures are measured in this run, including the bandwidth and the arithmetic speed
that the floors are based on. Results are written after each part, so an interruption loses only the current part.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.speed.plots import plot_results
from benchmarks.speed.results import Results, machine
from benchmarks.speed.run import PARTS, Request, run
from benchmarks.speed.tables import bank_tables, machine_line, readout_tables
from benchmarks.speed.timing import FULL, QUICK
from sopool._files.atomic import whole_file
from sopool._runtime.devices import choose_device
from sopool.data import load
from sopool.errors import UserError

WIDTH = 160
"""The width of tables in a file or a pipe."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, or read earlier results; then print and draw them. Return the exit code."""
    parser = make_parser()
    args = parser.parse_args(arguments)
    code = 0
    try:
        if args.source:
            results = Results.from_json(json.loads(args.source.read_text()))
        else:
            stores = [load(name, args.root) for name in args.data.split(",")] if "bank" in args.part else []
            request = Request(
                choose_device(args.device),
                stores,
                args.part.split(","),
                args.scale.split(","),
                args.models,
                QUICK if args.quick else FULL,
                args.profile,
            )
            results, code = measure(request, args.output)
    except (UserError, OSError) as error:
        parser.error(str(error))
    show(results, args.json)
    if args.plot and code == 0:
        args.plot.mkdir(exist_ok=True)
        drawn = plot_results(results, args.plot)
        print(f"Drawn: {', '.join(map(str, drawn))}.", file=sys.stderr)
    return code


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--device", default="auto", help="auto, cpu or cuda")
    add("--data", default="MUTAG", help="data sets that the bank trains on (%(default)s)")
    add("--root", type=Path, help="folder in which named data sets are searched first")
    add("--models", type=whole_numbers, help="models in a bank (1,10 on a CPU, 1,10,60,240 on a GPU)")
    add("--part", default=",".join(PARTS), help="parts to measure (%(default)s)")
    add("--scale", default="models", help="quantities to vary in the bank: models, graphs, width, nodes (%(default)s)")
    add("--quick", action="store_true", help="use fewer graphs and repeats")
    add("--profile", action="store_true", help="show the slowest operators of training in the bank")
    add("-o", "--output", type=Path, help="write all figures to this file, as JSON")
    add("--json", action="store_true", help="print the figures as JSON instead of tables")
    add("--plot", type=Path, metavar="FOLDER", help="draw the figures into this folder")
    add("--from", type=Path, dest="source", metavar="FILE", help="measure nothing: show what --output wrote")
    return parser


def whole_numbers(text: str) -> list[int]:
    """Parse a list such as 1,10."""
    return [int(part) for part in text.split(",")]


def measure(request: Request, output: Path | None) -> tuple[Results, int]:
    """Measure and write the results after each part. Return the results and the exit code."""
    results = Results(machine(request.device))
    try:
        for results in run(request, lambda line: print(line, file=sys.stderr, flush=True)):
            if output:
                with whole_file(output) as temporary:
                    temporary.write_text(to_text(results))
    except KeyboardInterrupt:
        print("Interrupted. The results so far follow.", file=sys.stderr)
        return results, 130
    except torch.OutOfMemoryError as error:
        print(f"Not enough memory: try --quick, or fewer --models. {str(error).splitlines()[0]}", file=sys.stderr)
        return results, 1
    return results, 0


def show(results: Results, as_json: bool) -> None:
    """Print tables, skipped measurements, profiles and the machine; or all results as JSON."""
    if as_json:
        print(to_text(results))
        return
    console = Console(markup=False, emoji=False, highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for table in (*readout_tables(results), *bank_tables(results)):
        console.print(table)
    for text in (*results.notes, *results.profiles, machine_line(results.machine)):
        console.print(text, soft_wrap=True)


def to_text(results: Results) -> str:
    """Return the results as JSON text."""
    return json.dumps(results.to_json(), indent=2, allow_nan=False)


if __name__ == "__main__":
    sys.exit(main())
