"""``sopool reproduce``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from sopool.cli.loading import Reader, source_files, stored_files
from sopool.cli.options import (
    LIST,
    TRAINING,
    AddressOption,
    DeviceOption,
    ExecutorOption,
    FiguresOption,
    GroupedJsonOption,
    RootOption,
    RunsOption,
    WorkersOption,
    names,
    whole_numbers,
    with_flags,
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
        typer.Argument(metavar="TABLE", help="What to reproduce: table1 to table5, or figure2."),
    ],
    datasets: Annotated[
        str | None, typer.Option(metavar=LIST, help="Data sets of the table, e.g. MUTAG,PTC.", show_default="all")
    ] = None,
    pools: Annotated[
        str | None,
        typer.Option(
            metavar=LIST,
            help="Poolings of the table, or others to add.",
            show_default="all, unless --systems is given",
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar=LIST,
            help="Systems to run for the quoted rows of table1, e.g. wl,dgcnn.",
            show_default="all, unless --pools is given",
        ),
    ] = None,
    gnns: Annotated[
        str | None, typer.Option(metavar=LIST, help="GNNs of the table, e.g. gin-0.", show_default="all")
    ] = None,
    protocol: Annotated[
        str, typer.Option(metavar=LIST, help="How epoch and hyperparameters are selected.")
    ] = "per-fold-max,single-epoch,fair",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be trained and an estimate of the time; train nothing.")
    ] = False,
    hidden: Annotated[
        str | None,
        typer.Option(
            metavar=LIST,
            help="Widths of the hidden layers in the grid.",
            show_default="as in the paper",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    batch_size: Annotated[
        str | None,
        typer.Option(
            metavar=LIST, help="Batch sizes in the grid.", show_default="as in the paper", rich_help_panel=TRAINING
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of epochs of each run.", rich_help_panel=TRAINING)
    ] = 350,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of batches per epoch.",
            show_default="as in the paper",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(min=2, metavar="N", help="Number of cross-validation folds.", rich_help_panel=TRAINING),
    ] = 10,
    seeds: Annotated[
        str,
        typer.Option(metavar=LIST, help="Random seeds; results are averaged over them.", rich_help_panel=TRAINING),
    ] = "0",
    controls: Annotated[
        bool,
        typer.Option(
            "--controls/--no-controls", help="Also run the controls, see sopool controls.", rich_help_panel=TRAINING
        ),
    ] = True,
    device: DeviceOption = "auto",
    workers: WorkersOption = None,
    executor: ExecutorOption = "local",
    address: AddressOption = None,
    runs: RunsOption = Path("runs"),
    output: FiguresOption = None,
    as_json: GroupedJsonOption = False,
    root: RootOption = None,
) -> None:
    """Reproduce a table or figure of the paper, and show our results beside it.

    Without options, the whole table is run as in the paper, which takes long; try --dry-run first. If the command is
    interrupted, run it again to continue; finished runs are not trained again.
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
        None if systems is None else names("--systems", systems),
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
        console.print()
    for note in reproduction_notes(found):
        console.print(note)
    console.print(f"{summary(tally, runs)} The results are in {kept}.")
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
    """Load the data sets; unless asked for, those that cannot be loaded are left out, with the reason."""
    stores: dict[str, PackedGraphs] = {}
    not_run: dict[str, str] = {}
    for name in selection.data:
        try:
            stores[name] = Reader(root).load(name)
        except UserError as error:
            if asked:
                raise
            not_run[name] = " ".join([*filter(None, [selection.table.unavailable.get(name)]), str(error)])
    _print_skipped(not_run)
    if not stores:
        raise DataError(f"none of the data sets of {selection.table.name} was found, so there is nothing to run.")
    return stores, not_run


def _print_skipped(not_run: dict[str, str]) -> None:
    """Print the data sets that are skipped; those with the same reason share a note, which gives it for the first."""
    alike: dict[str, list[str]] = {}
    for name, reason in not_run.items():
        alike.setdefault(reason.replace(name, ""), []).append(name)
    for skipped in alike.values():
        verb = "is" if len(skipped) == 1 else "are"
        print_message("note", with_flags(f"{', '.join(skipped)} {verb} skipped. {not_run[skipped[0]]}"))


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
        f"The time is an estimate from a few training steps on this machine ({device}). It assumes that nothing else "
        "runs here, and leaves out controls, kernels and the clustering of EigenPool. Stored runs are not trained "
        "again. Nothing was trained."
    )
    console.print(text)
