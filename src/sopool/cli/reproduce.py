"""``sopool reproduce``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from sopool.cli.loading import load_source, source_files, stored_files
from sopool.cli.options import (
    LIST,
    AddressOption,
    DeviceOption,
    ExecutorOption,
    FiguresOption,
    JsonOption,
    RootOption,
    RunsOption,
    WorkersOption,
    names,
    whole_numbers,
)
from sopool.cli.output import check_figures, output_console, print_message, print_progress, write_figures
from sopool.cli.progress import Tally
from sopool.cli.training import summary, training_device, training_executor, watched
from sopool.errors import DataError, UserError

if TYPE_CHECKING:
    from sopool.data.graphs import PackedGraphs
    from sopool.experiments.reproduce.reproducer import Reproducer
    from sopool.experiments.reproduce.selection import TableSelection


def reproduce(
    what: Annotated[
        Literal["table1", "table2", "table3", "table4", "table5", "figure2"],
        typer.Argument(metavar="TABLE", help="table1 to table5, or figure2."),
    ],
    datasets: Annotated[
        str | None, typer.Option(metavar=LIST, help="Data sets of the table.", show_default="all")
    ] = None,
    pools: Annotated[
        str | None,
        typer.Option(
            metavar=LIST, help="Poolings of the table, or others to add to it.", show_default="all of the table"
        ),
    ] = None,
    gnns: Annotated[str | None, typer.Option(metavar=LIST, help="GNNs of the table.", show_default="all")] = None,
    protocol: Annotated[
        str, typer.Option(metavar=LIST, help="Any of per-fold-max, single-epoch, fair.")
    ] = "per-fold-max,single-epoch,fair",
    hidden: Annotated[
        str | None, typer.Option(metavar=LIST, help="Widths of the grid.", show_default="the paper's")
    ] = None,
    batch_size: Annotated[
        str | None, typer.Option(metavar=LIST, help="Batch sizes of the grid.", show_default="the paper's")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each run.")] = 350,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches in an epoch.", show_default="the paper's")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    seeds: Annotated[str, typer.Option(metavar=LIST, help="Seeds; several are averaged within folds.")] = "0",
    controls: Annotated[
        bool, typer.Option("--controls/--no-controls", help="Run the controls, too, or leave them out.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be trained and about how long it takes; train nothing.")
    ] = False,
    device: DeviceOption = "auto",
    workers: WorkersOption = None,
    executor: ExecutorOption = "local",
    address: AddressOption = None,
    runs: RunsOption = Path("runs"),
    output: FiguresOption = None,
    as_json: JsonOption = False,
    root: RootOption = None,
) -> None:
    """Run a table of the paper again: our figures beside the paper's, under three protocols, with tests and controls.

    Without options, the whole table as the paper has it; a list is given with commas. What was interrupted goes on
    where it was when the same command is given again; what is finished is not trained again.
    """
    console = output_console(stderr=as_json)
    if what == "figure2":
        check_figures(output)
        _figure2(console, output, as_json)
        return
    from sopool.experiments.reproduce.paper import read_tables
    from sopool.experiments.reproduce.reproducer import Reproducer
    from sopool.experiments.reproduce.selection import TableSelection
    from sopool.training.runs.store import RunStore

    selection = TableSelection(
        read_tables()[what],
        None if datasets is None else names("--datasets", datasets),
        None if pools is None else names("--pools", pools),
        None if gnns is None else names("--gnns", gnns),
        names("--protocol", protocol),
        None if hidden is None else whole_numbers("--hidden", hidden),
        None if batch_size is None else whole_numbers("--batch-size", batch_size),
        epochs,
        folds,
        whole_numbers("--seeds", seeds),
        steps,
        controls,
    )
    selection.check()
    read = [file for name in selection.data for file in source_files(name, root)]
    check_figures(output, *read, *stored_files(runs, output))
    train = training_executor(executor, address)
    place = training_device(device, "local" if dry_run else executor)
    stores, not_run = _load(selection, root, asked=datasets is not None)
    reproducer = Reproducer(selection, stores, RunStore(runs), not_run)
    if dry_run:
        _plan(reproducer, place, workers, console, output, as_json)
        return
    tally = Tally(reproducer.total_epochs, reproducer.total_runs)
    found = watched(
        lambda report, stop: reproducer.run(place, workers, report, stop, print_progress, train), tally, runs
    )
    kept = found.save(runs)
    from sopool.report.grids.reproduction import reproduction_grids, reproduction_notes

    for grid in () if as_json else reproduction_grids(found):
        console.print(grid)
    for note in reproduction_notes(found):
        console.print(note)
    console.print(f"{summary(tally, runs)} The figures are in {kept}.")
    write_figures(found.to_json(), output, as_json)


def _figure2(console: Console, output: Path | None, as_json: bool) -> None:
    from sopool.experiments.reproduce.paper.figure2 import compare_examples
    from sopool.report.grids.figure2 import figure2_grid

    verdicts = compare_examples()
    if not as_json:
        console.print(figure2_grid(verdicts))
    write_figures([one.to_json() for one in verdicts], output, as_json)


def _load(
    selection: "TableSelection", root: Path | None, asked: bool
) -> tuple[dict[str, "PackedGraphs"], dict[str, str]]:
    """Load the data sets; those of the whole table that cannot be had are left out, with the reason."""
    stores: dict[str, PackedGraphs] = {}
    not_run: dict[str, str] = {}
    for name in selection.data:
        try:
            stores[name] = load_source(name, root, None, None, "skip")
        except UserError as error:
            if asked:
                raise
            not_run[name] = str(error)
            print_message("note", f"{name} is not run. {error}")
    if not stores:
        raise DataError(f"none of the data sets of {selection.table.name} was found: there is nothing to run.")
    return stores, not_run


def _plan(
    reproducer: "Reproducer", device: str, workers: int | None, console: Console, output: Path | None, as_json: bool
) -> None:
    from sopool.experiments.reproduce.plan import plan_reproduction
    from sopool.report.grids.plan import plan_grid

    lines = plan_reproduction(reproducer, device, workers, print_progress)
    if not as_json:
        console.print(plan_grid(lines))
    write_figures([line.to_json() for line in lines], output, as_json)
    text = (
        f"The time is an estimate, from a few steps of small banks on this machine ({device}), for when nothing else "
        "runs here; controls and EigenPool's clusters are not in it. Runs in the store are not trained again. Nothing "
        "was trained."
    )
    console.print(text)
