"""Which kind of source a path or a name is, and all that depends on it: the one place that looks at suffixes."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from sopool.data.formats.archive import not_hidden, open_source
from sopool.data.formats.csv import smiles_rows, table_rows
from sopool.data.formats.gin import read_gin
from sopool.data.formats.jsonl import json_rows, read_jsonl
from sopool.data.formats.lines import is_packed, not_blank, number_lines, read_lines
from sopool.data.formats.packed import load_graphs
from sopool.data.formats.rows import GraphRow, RowOptions
from sopool.data.formats.sdf import sdf_rows
from sopool.data.formats.tu import read_tu
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, Place, SettingError

STDIN = "-"
STDIN_NAME = "standard input"


@dataclass(frozen=True)
class Kind:
    """A kind of source."""

    unit: Literal["line", "record", "graph"] = "graph"
    """What a row is called."""
    columns: tuple[str, ...] = ()
    """Which of ``smiles_column`` and ``label_column`` can be given."""
    rows: Callable[[Path, RowOptions], Iterator[GraphRow]] | None = None
    """Reads the graphs one after the other; None where they are read as a whole only."""
    whole: Callable[[Path], PackedGraphs] | None = None
    """Reads all graphs at once; None where they are packed from rows, of which some may be bad."""
    cached: bool = False
    """Whether what ``whole`` gives is worth keeping."""

    def place(self, source: str | Path) -> Place:
        """Return what errors say of a source of this kind."""
        return Place(self.unit, STDIN_NAME if self is STANDARD_INPUT else source)

    def check_columns(self, source: str | Path, smiles_column: str | None, label_column: str | None) -> None:
        """Raise for a column that was named of a source which has none: it would count for nothing."""
        for option, name in {"smiles_column": smiles_column, "label_column": label_column}.items():
            if name is not None and option not in self.columns:
                raise SettingError(
                    f"there are no columns here, so none can be {name!r} ({option}). Leave that out; or, if this is a "
                    "table of molecules, call it .csv.",
                    source,
                )


def kind_of(source: str | Path) -> Kind:
    """Return the kind of a source, by its suffix in upper or lower case if it is no folder."""
    path = Path(source)
    if str(source) == STDIN:
        return STANDARD_INPUT
    if path.is_dir():
        return COLLECTION
    return KINDS.get(suffix_of(path), UNKNOWN)


def suffix_of(path: Path) -> str:
    """Return the last suffix of a name, in lower case; the last two of one that is packed, such as ``.csv.gz``."""
    return "".join(path.suffixes[-2 if is_packed(path) else -1 :]).lower()


def _json_file(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    return json_rows(read_lines(path))


def _table_file(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    return table_rows(read_lines(path), path, options)


def _smiles_file(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    return smiles_rows(read_lines(path), path, options)


def _standard_input(path: Path, options: RowOptions) -> Iterator[GraphRow]:
    """Read JSON lines if the first line that is not blank is an object, else a file of SMILES."""
    lines = number_lines(sys.stdin.buffer, STDIN_NAME)
    head = not_blank(lines)
    every = lines if head is None else chain((head,), lines)
    if head is not None and head.text.lstrip().startswith("{"):
        return json_rows(every)
    return smiles_rows(every, STDIN_NAME, options)


def _read_collection(path: Path) -> PackedGraphs:
    """Read a folder or zip: TU files if there are edges among them, else the one GIN text."""
    with open_source(path) as source:
        texts = not_hidden(source.names, ".txt")
    if len(texts) != 1 or texts[0].endswith("_A.txt"):
        return read_tu(path)
    return read_gin(path / texts[0] if path.is_dir() else path)


def _read_gin_text(path: Path) -> PackedGraphs:
    """Read a GIN text; what is none may be a part of a TU data set, or a table."""
    try:
        return read_gin(path)
    except DataError as error:
        if any(path.name.startswith(edges.name.removesuffix("A.txt")) for edges in path.parent.glob("*_A.txt")):
            raise DataError(f"{error} It is one file of a TU data set: give their folder, {path.parent}.") from error
        if error.line != 1:
            raise
        raise DataError(f"{error} A .txt is read as GIN's text: call a table of molecules .csv.") from error


BOTH = ("smiles_column", "label_column")
STANDARD_INPUT = Kind("line", BOTH, rows=_standard_input)
COLLECTION = Kind(whole=_read_collection, cached=True)
"""TU files, or a GIN text, in a folder or a zip."""
NAME = Kind()
"""The name of a data set, not that of a file."""
UNKNOWN = Kind(columns=BOTH)
TEXTS = {
    ".jsonl": Kind("line", rows=_json_file, whole=read_jsonl, cached=True),
    ".csv": Kind("line", BOTH, rows=_table_file),
    ".tsv": Kind("line", BOTH, rows=_table_file),
    ".smi": Kind("line", BOTH, rows=_smiles_file),
    ".sdf": Kind("record", ("label_column",), rows=sdf_rows),
}
"""Files of rows, which may be packed."""
KINDS = {
    "": NAME,
    ".zip": COLLECTION,
    ".txt": Kind(whole=_read_gin_text, cached=True),
    ".graphs": Kind(whole=load_graphs),
    **TEXTS,
    **{f"{suffix}.gz": kind for suffix, kind in TEXTS.items()},
}
KNOWN = ".zip, a TU folder, .txt (GIN), .jsonl, .csv, .tsv, .smi, .sdf, .graphs"
"""The kinds of files, in words."""
