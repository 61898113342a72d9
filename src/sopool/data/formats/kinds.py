"""Determine the kind of a source from its path or name; suffixes are looked at only here."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from reprlib import repr as show
from typing import Literal

from sopool.data.formats.archive import not_hidden, open_source
from sopool.data.formats.csv import csv_header, csv_rows, smiles_rows, table_rows, training_columns
from sopool.data.formats.gin import read_gin
from sopool.data.formats.jsonl import json_rows, read_jsonl
from sopool.data.formats.lines import is_packed, not_blank, number_lines, read_lines
from sopool.data.formats.molecule_features import ELEMENTS
from sopool.data.formats.packed import load_graphs
from sopool.data.formats.parquet import parquet_rows, parquet_training_columns
from sopool.data.formats.rows import GraphRow, RowOptions, TrainingColumns
from sopool.data.formats.sdf import sdf_rows, sdf_training_columns
from sopool.data.formats.tu import read_tu
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, Place, SettingError

STDIN = "-"
STDIN_NAME = "standard input"


@dataclass(frozen=True)
class Kind:
    """A kind of source, with the functions that read it."""

    unit: Literal["line", "record", "row", "graph"] = "graph"
    """The word for a row in error messages."""
    columns: tuple[str, ...] = ()
    """Which of the options in :data:`EVERY_COLUMN` may be given."""
    rows: Callable[[Path, RowOptions], Iterator[GraphRow]] | None = None
    """The function that reads graphs one by one; None if they can only be read together."""
    training: Callable[[Path, RowOptions], TrainingColumns] | None = None
    """The function that returns the columns that ``rows`` reads; None if there are no columns."""
    whole: Callable[[Path], PackedGraphs] | None = None
    """The function that reads all graphs at once; None if they are packed from rows, some of which may be invalid."""
    cached: bool = False
    """Whether to cache the result of ``whole``."""

    def place(self, source: str | Path) -> Place:
        """Return the name of a source of this kind and of its rows, for error messages."""
        return Place(self.unit, STDIN_NAME if self is STANDARD_INPUT else source)

    @property
    def may_be_molecules(self) -> bool:
        """Whether the source may hold molecules."""
        return bool(self.columns)

    def check_columns(self, source: str | Path, options: RowOptions) -> None:
        """Raise if columns, features or a split are given that a source does not have, as they would be ignored."""
        if options.split is not None and options.split.needs_molecules and not self.columns:
            raise SettingError(
                f"split={options.split.name} needs molecules in a table (.csv, .tsv, .smi, .parquet) or an .sdf file. "
                "In Python, sopool.data.with_split(graphs, groups=...) divides any graphs.",
                source,
            )
        for option in EVERY_COLUMN:
            given = getattr(options, option)
            if given not in (None, ()) and option not in self.columns:
                given = list(given) if isinstance(given, tuple) else given
                raise SettingError(
                    f"{option}={show(given)} was given, but this source has no columns. Leave {option} out or, if "
                    "this is a table of molecules, rename it to .csv.",
                    source,
                )
        if options.features not in (None, ELEMENTS) and not self.may_be_molecules:
            raise SettingError(
                "features of molecules were chosen, but this source has none that are read from SMILES or SDF. Leave "
                "them out.",
                source,
            )


def kind_of(source: str | Path) -> Kind:
    """Return the kind of a source; that of a file depends on its suffix, in upper or lower case."""
    path = Path(source)
    if str(source) == STDIN:
        return STANDARD_INPUT
    if path.is_dir():
        return COLLECTION
    return KINDS.get(suffix_of(path), UNKNOWN)


def suffix_of(path: Path) -> str:
    """Return the suffix of a file name in lower case; both suffixes of a compressed file, such as ``.csv.gz``."""
    return "".join(path.suffixes[-2 if is_packed(path) else -1 :]).lower()


def _json_file(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    return json_rows(read_lines(path))


def _table_file(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    return table_rows(read_lines(path), path, options)


def _table_columns(path: Path, options: RowOptions) -> TrainingColumns:
    return training_columns(csv_header(csv_rows(read_lines(path), path), path), path, options)


def _smiles_file(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    return smiles_rows(read_lines(path), path, options)


def _standard_input(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    """Read JSON lines if the first non-blank line starts with ``{``, else SMILES."""
    lines = number_lines(sys.stdin.buffer, STDIN_NAME)
    head = not_blank(lines)
    every = lines if head is None else chain((head,), lines)
    if head is not None and head.text.lstrip().startswith("{"):
        return json_rows(every)
    return smiles_rows(every, STDIN_NAME, options)


def _read_collection(path: Path) -> PackedGraphs:
    """Read a folder or zip: the GIN text if it has a single text file without TU edges, else TU files."""
    with open_source(path) as source:
        texts = not_hidden(source.names, ".txt")
    if len(texts) != 1 or texts[0].endswith("_A.txt"):
        return read_tu(path)
    return read_gin(path / texts[0] if path.is_dir() else path)


def _read_gin_text(path: Path) -> PackedGraphs:
    """Read a GIN text; if it is invalid, say whether it may be part of a TU data set, or a table."""
    try:
        return read_gin(path)
    except DataError as error:
        if any(path.name.startswith(edges.name.removesuffix("A.txt")) for edges in path.parent.glob("*_A.txt")):
            raise DataError(f"{error} It is one file of a TU data set: give the folder, {path.parent}.") from error
        if error.line != 1:
            raise
        raise DataError(f"{error} A .txt is read as GIN's text format: rename a table of molecules to .csv.") from error


EVERY_COLUMN = ("smiles_column", "label_column", "target_columns", "graph_columns", "id_column")
STANDARD_INPUT = Kind("line", EVERY_COLUMN, rows=_standard_input)
COLLECTION = Kind(whole=_read_collection, cached=True)
"""TU files or a GIN text in a folder or a zip."""
NAME = Kind()
"""The name of a data set instead of a path."""
UNKNOWN = Kind(columns=EVERY_COLUMN)
TEXTS = {
    ".jsonl": Kind("line", rows=_json_file, whole=read_jsonl, cached=True),
    ".csv": Kind("line", EVERY_COLUMN, rows=_table_file, training=_table_columns),
    ".tsv": Kind("line", EVERY_COLUMN, rows=_table_file, training=_table_columns),
    ".smi": Kind("line", EVERY_COLUMN, rows=_smiles_file, training=_table_columns),
    ".sdf": Kind("record", EVERY_COLUMN[1:], rows=sdf_rows, training=sdf_training_columns),
}
"""Text files of rows, which may be compressed with gzip."""
KINDS = {
    "": NAME,
    ".zip": COLLECTION,
    ".txt": Kind(whole=_read_gin_text, cached=True),
    ".graphs": Kind(whole=load_graphs),
    ".parquet": Kind("row", EVERY_COLUMN, rows=parquet_rows, training=parquet_training_columns),
    **TEXTS,
    **{f"{suffix}.gz": kind for suffix, kind in TEXTS.items()},
}
KNOWN = ".zip, a TU folder, .txt (GIN), .jsonl, .csv, .tsv, .smi, .sdf, .parquet, .graphs"
"""The supported file types, for error messages."""
