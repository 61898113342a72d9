"""``sopool runs``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sopool.cli.options import JsonOption
from sopool.cli.output import output_console, print_result
from sopool.cli.typer_app import EXAMPLES, Command, SafeGroup, epilog

if TYPE_CHECKING:
    from sopool.training.runs.store import RunStore

app = typer.Typer(
    cls=SafeGroup,
    help="List, compare and delete stored runs.",
    epilog=epilog(EXAMPLES["runs"]),
    no_args_is_help=False,
)

FolderOption = Annotated[
    Path | None, typer.Option("--runs", metavar="DIR", help="Folder in which the runs are stored.", show_default="runs")
]
EveryOption = Annotated[bool, typer.Option("--all", help="List each run on its own line, with its key.")]


@app.callback(invoke_without_command=True)
def runs(
    context: typer.Context, folder: FolderOption = None, every: EveryOption = False, as_json: JsonOption = False
) -> None:
    """List, compare and delete stored runs. Without a command, the runs are listed."""
    context.obj = folder
    if context.invoked_subcommand is None:
        _list(_store(context, folder), every, as_json)


@app.command("list", cls=Command, epilog=epilog(EXAMPLES["runs list"]))
def list_runs(
    context: typer.Context, folder: FolderOption = None, every: EveryOption = False, as_json: JsonOption = False
) -> None:
    """List the runs, one line for each experiment or, with --all, for each run."""
    _list(_store(context, folder), every, as_json)


@app.command(cls=Command, epilog=epilog(EXAMPLES["runs compare"]))
def compare(
    context: typer.Context,
    a: Annotated[str, typer.Argument(metavar="KEY", help="Key of a run, or the beginning of one.")],
    b: Annotated[str, typer.Argument(metavar="KEY", help="Key of another run, or the beginning of one.")],
    folder: FolderOption = None,
) -> None:
    """Show the differences between two runs, and their results."""
    from sopool.report.grids.runs import pair_grid

    store = _store(context, folder)
    differences = store.compare(a, b)
    infos = {info.key: info for info in store.list()}
    pair = [infos[store.find(prefix)] for prefix in (a, b)]
    loaded = [store.load(info.config) if info.config else None for info in pair]
    output_console().print(pair_grid(pair[0], pair[1], differences, loaded[0], loaded[1]))


@app.command(cls=Command, epilog=epilog(EXAMPLES["runs clean"]))
def clean(context: typer.Context, folder: FolderOption = None) -> None:
    """Delete interrupted runs, their checkpoints and files of killed processes; keep finished runs."""
    store = _store(context, folder)
    keys = store.clean()
    output_console().print(f"{len(keys)} interrupted {_runs(len(keys))} deleted from {store.folder}.")


@app.command(cls=Command, epilog=epilog(EXAMPLES["runs remove"]))
def remove(
    context: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys of runs, or the beginnings of keys.")],
    folder: FolderOption = None,
) -> None:
    """Delete runs, whether finished or not."""
    store = _store(context, folder)
    found = dict.fromkeys(store.find(prefix) for prefix in keys)
    store.remove(found)
    output_console().print(f"{len(found)} {_runs(len(found))} deleted from {store.folder}.")


def _store(context: typer.Context, folder: Path | None) -> "RunStore":
    from sopool.training.runs.store import RunStore

    return RunStore(folder or context.obj or Path("runs"))


def _list(store: "RunStore", every: bool, as_json: bool) -> None:
    from sopool.report.grids.runs import groups_grid, runs_grid

    infos = store.list()
    if not infos and not as_json:
        output_console().print(f"There are no runs in {store.folder}.")
        return
    grid = runs_grid if every else groups_grid
    print_result(as_json, lambda: [info.to_json() for info in infos], lambda: grid(infos))


def _runs(count: int) -> str:
    return "run was" if count == 1 else "runs were"
