"""``sopool runs``: what is in a run store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sopool.cli.console import out
from sopool.cli.help_text import EXAMPLES, epilog
from sopool.cli.once import Command
from sopool.cli.options import AsJson
from sopool.cli.output import print_result

if TYPE_CHECKING:
    from sopool.training.runs.info import RunInfo
    from sopool.training.runs.store import RunStore

app = typer.Typer(
    help="List, compare and clean up the runs of evaluations.",
    epilog=epilog(EXAMPLES["runs"]),
    no_args_is_help=False,
)

Folder = Annotated[Path | None, typer.Option("--runs", metavar="DIR", help="The folder of runs.", show_default="runs")]
Every = Annotated[bool, typer.Option("--all", help="Each run on a line of its own, with its key.")]


@app.callback(invoke_without_command=True)
def runs(context: typer.Context, folder: Folder = None, every: Every = False, as_json: AsJson = False) -> None:
    """List, compare and clean up the runs of evaluations. Without a command: list."""
    context.obj = folder
    if context.invoked_subcommand is None:
        _list(_store(context, folder), every, as_json)


@app.command("list", cls=Command, epilog=epilog(EXAMPLES["runs list"]))
def list_runs(context: typer.Context, folder: Folder = None, every: Every = False, as_json: AsJson = False) -> None:
    """List the runs: those that belong together on one line, or each with its key. JSON has each."""
    _list(_store(context, folder), every, as_json)


@app.command(cls=Command, epilog=epilog(EXAMPLES["runs compare"]))
def compare(
    context: typer.Context,
    a: Annotated[str, typer.Argument(help="The key of a run, or how it begins.")],
    b: Annotated[str, typer.Argument(help="The key of another.")],
    folder: Folder = None,
) -> None:
    """Show where two runs differ, and what came out."""
    from sopool.report.terminal.runs import pair_table

    store = _store(context, folder)
    differences = store.compare(a, b)
    infos = {info.key: info for info in store.list()}
    pair = [infos[store.find(prefix)] for prefix in (a, b)]
    loaded = [store.load(info.config) if info.config else None for info in pair]
    out().print(pair_table(pair[0], pair[1], differences, loaded[0], loaded[1]))


@app.command(cls=Command, epilog=epilog(EXAMPLES["runs clean"]))
def clean(context: typer.Context, folder: Folder = None) -> None:
    """Delete interrupted runs, with their checkpoints, and what killed processes left. Finished runs stay."""
    store = _store(context, folder)
    keys = store.clean()
    out().print(f"{len(keys)} interrupted {_runs(len(keys))} deleted from {store.folder}.")


@app.command(cls=Command, epilog=epilog(EXAMPLES["runs remove"]))
def remove(
    context: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys of runs, or how they begin.")],
    folder: Folder = None,
) -> None:
    """Delete runs, finished or not."""
    store = _store(context, folder)
    found = dict.fromkeys(store.find(prefix) for prefix in keys)
    store.remove(found)
    out().print(f"{len(found)} {_runs(len(found))} deleted from {store.folder}.")


def _store(context: typer.Context, folder: Path | None) -> "RunStore":
    from sopool.training.runs.store import RunStore

    return RunStore(folder or context.obj or Path("runs"))


def _list(store: "RunStore", every: bool, as_json: bool) -> None:
    from sopool.report.terminal.runs import groups_table, runs_table

    infos = store.list()
    if not infos and not as_json:
        out().print(f"There are no runs in {store.folder}.")
        return
    table = runs_table if every else groups_table
    print_result(as_json, lambda: [_to_json(info) for info in infos], lambda: table(infos))


def _to_json(info: "RunInfo") -> dict[str, Any]:
    return info._asdict() | {
        "config": info.config.to_json() if info.config else None,
        "state": info.state,
        "when": info.when.isoformat(),
    }


def _runs(count: int) -> str:
    return "run was" if count == 1 else "runs were"
