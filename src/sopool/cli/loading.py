"""Loading the data set of a command, with a progress bar while it is downloaded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import DownloadColumn, Progress, TimeRemainingColumn

from sopool.cli.options import MAX_ATOMS, column_names
from sopool.cli.output import STDIN, error_console, print_message
from sopool.errors import DataError, OnError, SettingError

if TYPE_CHECKING:
    from sopool.data.formats.molecule_features import MoleculeFeatures
    from sopool.data.graphs import PackedGraphs
    from sopool.estimator import GraphEstimator


@dataclass(frozen=True)
class Reader:
    """Reads the graphs of sources with the options of a command."""

    root: Path | None = None
    smiles_column: str | None = None
    label_column: str | None = None
    on_error: OnError = "skip"
    max_atoms: int = MAX_ATOMS
    target_columns: Sequence[str] = ()
    features: "str | MoleculeFeatures | None" = None
    descriptors: Sequence[str] = ()

    def load(self, source: str | Sequence[str], split: str | None = None) -> "PackedGraphs":
        """Load the graphs of a named data set or a path, or of several."""
        from sopool._runtime.out_of_memory import advise
        from sopool.data.sources.catalogue import load

        if STDIN in ([source] if isinstance(source, str) else source):
            raise DataError(
                "- is standard input, which only sopool predict and sopool explain can read. Give the name of a data "
                "set, or the path of a file or folder of graphs."
            )
        smaller = "Split the data, or remove the largest graphs."
        with advise(f"to read {shown_source(source)}", lambda: smaller), _download_bar() as progress:
            return load(
                source,
                self.root,
                smiles_column=self.smiles_column,
                label_column=self.label_column,
                target_columns=self.target_columns,
                on_error=self.on_error,
                max_atoms=self.max_atoms,
                features=self.features,
                descriptors=self.descriptors,
                progress=progress,
                split=split,
            )

    def places(self, source: str, graphs: Sequence[int]) -> list[str]:
        """Return where some of the loaded graphs are in their source, such as ``"line 7"``; a file is read again.

        Args:
            source: The name of a data set, or a path.
            graphs: The numbers of the graphs, from 0 and increasing.
        """
        from sopool.data.formats.rows import row_options
        from sopool.data.sources.stream import place_of, rows_of

        options = row_options(self.smiles_column, self.label_column, self.target_columns, self.max_atoms)
        rows = rows_of(source, options) if Path(source).is_file() else None  # a pipe can be read only once
        if rows is None:
            return [f"graph {graph}" for graph in graphs]
        wanted = set(graphs)
        read = (row.number for row in rows if row.graph is not None)
        numbers = [number for graph, number in enumerate(islice(read, max(wanted) + 1)) if graph in wanted]
        return [f"{place_of(source).unit} {number}" for number in numbers]


def load_model_for(model: Path, source: str | Sequence[str], device: str) -> "GraphEstimator":
    """Load a model; if it is no model but a source is, the error says that they were exchanged."""
    from sopool.estimator import load_model

    try:
        return load_model(model, device)
    except DataError as error:
        for one in [source] if isinstance(source, str) else source:
            try:
                load_model(one, "cpu")
            except DataError:
                continue
            raise DataError(f"{error} {one} is a model: give the model first, and then the data.") from error
        raise


def own_columns(estimator: "GraphEstimator", text: str | None) -> list[str]:
    """Return the columns that hold the targets of a model, in the order of the model if they have the same names."""
    columns = column_names(text)
    targets = estimator.target_names_
    if columns and not targets:
        raise SettingError(f"--target-columns {text}: the model predicts one class, so use --label-column.")
    if columns and len(columns) != len(targets):
        raise SettingError(
            f"--target-columns {text}: {len(columns)} column{'s' * (len(columns) > 1)}, but the model predicts "
            f"{len(targets)} target{'s' * (len(targets) > 1)}: {', '.join(targets)}. "
            "Name one column for each, in this order."
        )
    if set(columns) == set(targets):
        return list(targets)
    if columns:
        pairs = ", ".join(f"{column} as {target}" for column, target in zip(columns, targets, strict=True))
        print_message("note", f"scored as targets of the model: {pairs}.")
    return columns


def print_copies_note(store: "PackedGraphs") -> None:
    """Print a note if many graphs have duplicates, which makes cross-validation too optimistic."""
    from sopool.data.analysis.refinement import caution_of_copies, duplicates
    from sopool.data.division import COPIES, Division

    division = Division.of(store)
    if COPIES in division.name.split("+"):
        return
    caution = caution_of_copies(duplicates(store), len(store))
    if caution is not None:
        is_given = division.times is not None or division.parts is not None
        print_message("note", caution if is_given else f"{caution} Otherwise, use --keep-copies-together.")


def shown_source(source: str | Sequence[str]) -> str:
    """Return the name of a source, or the names of several, for messages."""
    return source if isinstance(source, str) else ", ".join(source)


def source_files(source: str | Sequence[str], root: Path | None) -> list[str | Path]:
    """Return the files that a command reads for a source or several, which it must not overwrite."""
    from sopool.data.sources.catalogue import files_of

    every = [source] if isinstance(source, str) else source
    return [file for one in every for file in ([one] if one == STDIN else files_of(one, root))]


def stored_files(runs: Path, *targets: Path | None) -> list[Path]:
    """Return the targets that are files of a run store, which a command must not overwrite."""
    from sopool.training.runs.layout import is_kept

    folder = runs.resolve()  # not listed, because it may hold very many files
    places = [(path, path.resolve()) for path in targets if path is not None]
    return [path for path, place in places if folder in place.parents and is_kept(place)]


@contextmanager
def _download_bar() -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar on the error stream once a download starts."""
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
