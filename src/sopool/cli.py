"""The command line: thin, over plain functions."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import DownloadColumn, Progress, TimeRemainingColumn

from sopool import __version__
from sopool.data.catalogue import list_datasets, load
from sopool.data.chem import OnError
from sopool.data.errors import DataError
from sopool.data.statistics import statistics
from sopool.data.statistics import warnings as cautions_about
from sopool.report.terminal import datasets_table, inspection

app = typer.Typer(
    help="Second-order pooling for graph neural networks.", no_args_is_help=True, pretty_exceptions_enable=False
)

Root = Annotated[
    Path | None,
    typer.Option(help="Where named data sets are looked for first.", envvar="SOPOOL_DATA", show_default="SOPOOL_DATA"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
def datasets(root: Root = None, as_json: AsJson = False) -> None:
    """List the known data sets: where each was found, its statistics beside the paper's."""
    listed = list_datasets(root)
    _print(as_json, lambda: [one.to_json() for one in listed], lambda: datasets_table(listed))


@app.command()
def inspect(
    source: Annotated[str, typer.Argument(help="A data set's name, or the path of a file or folder of graphs.")],
    root: Root = None,
    rounds: Annotated[int, typer.Option(min=0, help="Rounds of colour refinement.")] = 4,
    smiles_column: Annotated[str | None, typer.Option(help="The column of a CSV that holds the SMILES.")] = None,
    label_column: Annotated[
        str | None, typer.Option(help="The column of a CSV, or property of an SDF, to predict.")
    ] = None,
    on_error: Annotated[OnError, typer.Option(help="What to do about a molecule that cannot be read.")] = "skip",
    as_json: AsJson = False,
) -> None:
    """Look at a data set: sizes, classes, oddities, and what a network can tell apart at best."""
    with _progress() as progress:
        store = load(
            source,
            root,
            smiles_column=smiles_column,
            label_column=label_column,
            on_error=on_error,
            progress=progress,
        )
    found = statistics(store, rounds)
    cautions = cautions_about(found)
    _print(
        as_json,
        lambda: found.to_json() | {"cautions": cautions},
        lambda: inspection(found, store.sizes, cautions),
    )


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sopool {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _print(as_json: bool, plain: Callable[[], Any], pretty: Callable[[], Any]) -> None:
    if as_json:
        print(json.dumps(plain(), indent=2, allow_nan=False))
    else:
        console = Console()
        # Piped, a table keeps its natural width: half of it would be no use to the next program.
        (console if console.is_terminal else Console(width=160)).print(pretty())


@contextmanager
def _progress() -> Iterator[Callable[[int, int | None], None]]:
    """A bar on the error stream, there once something is downloaded."""
    columns = (*Progress.get_default_columns()[:2], DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)

    def report(done: int, total: int | None) -> None:
        if not bar.tasks:
            bar.start()
            bar.add_task("downloading", total=total)
        bar.update(bar.tasks[0].id, completed=done)

    try:
        yield report
    finally:
        if bar.tasks:
            bar.stop()


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    Console(stderr=True).print(f"[yellow]note:[/yellow] {message}", highlight=False)


def main() -> None:
    """Run the command line. A user's mistake gives a message and exit code 2, never a traceback."""
    warnings.showwarning = _show_warning
    try:
        app()
    except DataError as error:
        Console(stderr=True).print("[red]error:[/red]", str(error), markup=True, highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


if __name__ == "__main__":
    main()
