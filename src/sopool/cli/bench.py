"""``sopool bench``."""

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sopool.cli.console import out, tell_in_place
from sopool.cli.loading import load_source, source_files
from sopool.cli.options import (
    LIST,
    AsJson,
    Device,
    Figures,
    Root,
    names,
    whole_numbers,
)
from sopool.cli.output import check_figures, give_figures, say
from sopool.cli.target import check_file
from sopool.cli.training import choose_device

if TYPE_CHECKING:
    from sopool.experiments.bench import Request, Results

ONLY_TO_MEASURE = ("device", "data", "models", "part", "scale", "quick", "profile", "output")


def bench(
    context: typer.Context,
    device: Device = "auto",
    data: Annotated[str, typer.Option(metavar=LIST, help="Data sets that the bank trains on.")] = "MUTAG",
    root: Root = None,
    models: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Models in a bank.", show_default="1,10 on a CPU, 1,10,60,240 on a GPU"),
    ] = None,
    part: Annotated[str, typer.Option(metavar=LIST, help="What to measure: readouts, bank.")] = "readouts,bank",
    scale: Annotated[
        str, typer.Option(metavar=LIST, help="What is varied in the bank: models, graphs, width, nodes.")
    ] = "models",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer graphs and repeats, for a first impression.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Show where the bank's training time goes.")] = False,
    output: Figures = None,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw the figures into this folder.")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Measure nothing: show what --output wrote.")
    ] = None,
) -> None:
    """Measure speed and memory here: readouts beside their floor, the bank beside other ways to train.

    A list is given with commas. graphs: those in a batch, 8 to 128. width: 16 to 128. nodes: random graphs, 10 to 300.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # before PyTorch is imported: its profiler talks
    if plot:
        _check_folder(plot)
    if source:
        _refuse_to_measure(context)
        results = _read(source)
        _show(results, None, as_json)
    else:
        from sopool.experiments.bench import FULL, QUICK, Request

        request = Request(
            choose_device(device),
            parts=names("--part", part),
            scales=names("--scale", scale),
            models=whole_numbers("--models", models) if models else None,
            effort=QUICK if quick else FULL,
            profile=profile,
        )
        check_figures(output, *(file for name in names("--data", data) for file in source_files(name, root)))
        stores = [load_source(name, root, None, None, "skip") for name in names("--data", data)]
        results = _measure(replace(request, stores=stores), output, as_json)
    if plot:
        from sopool.report.bench_plots import plot_bench

        plot.mkdir(exist_ok=True)
        drawn = plot_bench(results, plot)
        out(stderr=as_json).print(f"Drawn: {', '.join(map(str, drawn))}.")


def _measure(request: "Request", output: Path | None, as_json: bool) -> "Results":
    """Measure and show. Figures are written piece by piece: what stops it costs no more than the piece at hand."""
    import torch

    from sopool._files.atomic import is_stream
    from sopool.experiments.bench import Results, machine, run

    results = Results(machine(request.device))
    code = 0
    try:
        for results in run(request, tell_in_place):
            if output and not is_stream(output):
                give_figures(results.to_json(), output, as_json=False)
    except KeyboardInterrupt:
        code = 130
        say("note", "stopped. What was measured until then is shown.")
    except torch.OutOfMemoryError as error:
        code = 1
        say("error", f"not enough memory: try --quick, or fewer --models. {str(error).splitlines()[0]}")
    _show(results, output, as_json)
    if code:
        raise typer.Exit(code)
    return results


def _show(results: "Results", output: Path | None, as_json: bool) -> None:
    from sopool.report.bench import bank_tables, machine_line, readout_tables

    tell_in_place("")
    console = out(stderr=as_json)
    for table in () if as_json else (*readout_tables(results), *bank_tables(results)):
        console.print(table)
    for text in (*results.notes, *results.profiles, machine_line(results.machine)):
        console.print(text, soft_wrap=True)
    give_figures(results.to_json(), output, as_json)


def _read(path: Path) -> "Results":
    from sopool._files.schema import blamed_on, read_json
    from sopool.errors import DataError
    from sopool.experiments.bench import Results

    try:
        with blamed_on(path):
            return Results.from_json(read_json(path))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", path) from error


def _check_folder(folder: Path) -> None:
    from sopool.errors import DataError

    if folder.is_dir():
        check_file(folder / "readouts.svg")
    elif folder.exists():
        raise DataError("this is a file; a folder for the pictures is needed.", folder)
    else:
        check_file(folder)
    if find_spec("matplotlib") is None:
        raise DataError("drawing needs matplotlib: pip install 'sopool[report]', or leave --plot out.", folder)


def _refuse_to_measure(context: typer.Context) -> None:
    from sopool.errors import DataError

    sources = {name: context.get_parameter_source(name) for name in ONLY_TO_MEASURE}
    given = [f"--{name}" for name, one in sources.items() if one and one.name == "COMMANDLINE"]
    if given:
        raise DataError(
            f"--from shows what was measured before: it goes with --plot and --json, not with {', '.join(given)}."
        )
