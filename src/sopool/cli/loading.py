"""Reading the data set that a command was given, with a bar while it is downloaded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import DownloadColumn, Progress, TimeRemainingColumn

from sopool.cli.options import MAX_ATOMS
from sopool.cli.output import STDIN, error_console, print_message
from sopool.errors import DataError, OnError

if TYPE_CHECKING:
    from sopool.data.graphs import PackedGraphs


def load_source(
    source: str,
    root: Path | None,
    smiles_column: str | None,
    label_column: str | None,
    on_error: OnError,
    max_atoms: int = MAX_ATOMS,
) -> "PackedGraphs":
    """The graphs of a name or path."""
    from sopool._runtime.out_of_memory import advise
    from sopool.data.sources.catalogue import load

    if source == STDIN:
        raise DataError(
            "- is the standard input, which only sopool predict and sopool explain read: give the name of a data set, "
            "or the path of a file or folder of graphs."
        )
    smaller = "Give it in parts, or leave out its largest graphs."
    with advise(f"to read {source}", lambda: smaller), _download_bar() as progress:
        return load(
            source,
            root,
            smiles_column=smiles_column,
            label_column=label_column,
            on_error=on_error,
            max_atoms=max_atoms,
            progress=progress,
        )


def print_copies_note(store: "PackedGraphs") -> None:
    """A note where many graphs look like another one: cross-validation is kinder there than it should be."""
    from sopool.data.analysis.refinement import caution_of_copies, duplicates

    caution = caution_of_copies(duplicates(store), len(store))
    if caution is not None:
        print_message("note", caution)


def source_files(source: str, root: Path | None) -> list[str | Path]:
    """The files that a command would read for a source, which it must not write to."""
    from sopool.data.sources.catalogue import files_of

    return [source] if source == STDIN else [*files_of(source, root)]


def stored_files(runs: Path, *targets: Path | None) -> list[Path]:
    """Those of the targets that are kept in a folder of runs: a command must not write its figures to them."""
    from sopool.training.runs.layout import is_kept

    folder = runs.resolve()  # not listed: it may hold very many
    places = [(path, path.resolve()) for path in targets if path is not None]
    return [path for path, place in places if folder in place.parents and is_kept(place)]


@contextmanager
def _download_bar() -> Iterator[Callable[[int, int | None], None]]:
    """A bar on the error stream, there once something is downloaded."""
    columns = (*Progress.get_default_columns()[:2], DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=error_console(), transient=True)

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
