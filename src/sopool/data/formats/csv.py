"""Read molecules from CSV files, other tables and lists of SMILES, with bounded memory per row."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sopool.data.formats import limits
from sopool.data.formats.lines import SHOWN, TextLine, not_blank, too_long
from sopool.data.formats.molecule_rows import (
    LABEL_NAMES,
    LabelColumns,
    MoleculeText,
    check_not_predicted,
    find_name,
    find_names,
    molecule_rows,
    trained_columns,
)
from sopool.data.formats.rdkit import from_smiles
from sopool.data.formats.rows import Cells, GraphRow, RowOptions, TrainingColumns
from sopool.errors import DataError

SMILES_NAMES = ("smiles", "canonical_smiles", "smi")
ID_NAMES = ("id", "name")
"""The usual names of columns with SMILES and with ids."""
BARE_COLUMNS = ("smiles", "id")
"""What the columns of a list of SMILES are called, which has no column names."""


class CsvRow(NamedTuple):
    """A row of a CSV file, or the reason why it cannot be read."""

    number: int
    """The first line of the row, from 1."""
    cells: list[str]
    """The cells, or only the beginning of the text if the row cannot be read."""
    problem: str = ""
    values: tuple[Any, ...] | None = None
    """The cells as they are given, where that is not text."""


def table_rows(lines: Iterable[TextLine], path: str | Path, options: RowOptions) -> Iterator[GraphRow]:
    """Read the molecules of a CSV with a SMILES column, with labels and, if there is such a column, ids."""
    rows = csv_rows(iter(lines), path)
    return molecules_of_table(csv_header(rows, path), rows, path, options)


def molecules_of_table(
    header: list[str], rows: Iterable[CsvRow], path: str | Path, options: RowOptions
) -> Iterator[GraphRow]:
    """Yield the molecules in the rows of a table with these column names."""
    smiles_at = _smiles_column(header, options, path)
    label_at, columns = _label_columns(header, options, path)
    graph_at = find_names(header, options.graph_columns, path, "graph_columns")
    check_not_predicted([header[at] for at in graph_at], columns, path)
    id_at = _id_column(header, options, path)
    split = options.split.column if options.split is not None else ""
    split_at = find_name(header, split, (), f"split={options.split.name}", path) if options.split and split else None
    names = tuple(header)

    def molecule(row: CsvRow) -> MoleculeText:
        if row.problem:
            return MoleculeText(row.number, row.cells[0], "", problem=row.problem)
        extra = any(row.cells[len(header) :])
        problem = f"The line has {len(row.cells)} cells, but the first line has {len(header)}." if extra else ""
        cells = row.cells + [""] * len(header)
        smiles = cells[smiles_at]
        label = columns.cells([None if at is None else cells[at] for at in label_at])
        name, part = (None if at is None else cells[at] for at in (id_at, split_at))
        numbers = [cells[at] for at in graph_at]
        kept = Cells(names, row.values or tuple(cells[: len(header)])) if options.keep else None
        return MoleculeText(row.number, smiles, smiles, label, name, problem, numbers, part, kept)

    return molecule_rows(map(molecule, rows), from_smiles, options, columns)


def training_columns(header: list[str], path: str | Path, options: RowOptions) -> TrainingColumns:
    """Return the columns of a table that :func:`molecules_of_table` reads molecules and what is predicted from."""
    smiles = header[_smiles_column(header, options, path)]
    return _label_columns(header, options, path)[1].read_with(smiles)


def smiles_rows(lines: Iterable[TextLine], path: str | Path, options: RowOptions) -> Iterator[GraphRow]:
    """Read the molecules of a SMILES file: a CSV if the first line has column names, else one SMILES per line.

    A name may follow the SMILES on its line. If labels are required, there must be column names.
    """
    every = iter(lines)
    head = not_blank(every)
    if head is not None:
        every = chain((head,), every)
    cells = [cell.strip(' "').lower() for cell in re.split("[,;\t]", "" if head is None else head.text.strip())]
    named = options.smiles_column or options.target_columns or options.graph_columns or options.labels == "required"
    named = named or options.id_column or (options.split is not None and options.split.column)
    known = {name.lower() for name in (*SMILES_NAMES, options.training.smiles) if name}
    if named or not known.isdisjoint(cells):
        return table_rows(every, path, options)
    return molecule_rows((_bare(line, options.keep) for line in every if not line.blank), from_smiles, options)


def _bare(line: TextLine, keep: bool) -> MoleculeText:
    """Return the molecule on a line with a SMILES and an optional name."""
    smiles, *rest = line.text.strip().split(maxsplit=1) or [""]
    name = rest[0] if rest else None
    cells = Cells(BARE_COLUMNS, (smiles, name)) if keep else None
    return MoleculeText(line.number, smiles, smiles, None, name, line.problem, cells=cells)


def _smiles_column(header: list[str], options: RowOptions, path: str | Path) -> int:
    """Return the index of the column with the SMILES: the one that is named, that of the training, or a usual one."""
    trained = options.training.smiles
    usual = SMILES_NAMES if trained is None else tuple(dict.fromkeys((trained, *SMILES_NAMES)))
    return find_name(header, options.smiles_column, usual, "smiles_column", path, trained=trained)


def _id_column(header: list[str], options: RowOptions, path: str | Path) -> int | None:
    """Return the index of the column that identifies rows, if there is one."""
    if options.id_column is not None:
        return find_name(header, options.id_column, (), "id_column", path)
    known = [name.lower() for name in header]
    return next((known.index(name) for name in ID_NAMES if name in known), None)


def _label_columns(
    header: list[str], options: RowOptions, path: str | Path
) -> tuple[Sequence[int | None], LabelColumns]:
    """Return the indices of the columns of targets or of the label; none if there are none or none are wanted."""
    told = options.target_columns or options.label_column is not None
    if options.labels == "ignored":
        return [], LabelColumns()
    if not told and options.training.predicted:
        return trained_columns(header, options.training)
    if options.target_columns:
        at = find_names(header, options.target_columns, path)
    elif told or options.labels == "required" or not {name.lower() for name in header}.isdisjoint(LABEL_NAMES):
        at = [find_name(header, options.label_column, LABEL_NAMES, "label_column", path)]
    else:
        at = []
    return at, LabelColumns([header[place] for place in at], bool(options.target_columns), path)


class _TooLongError(Exception):
    """Raised when the current row is too long."""


class _Feed:
    """An iterator that passes lines to ``csv.reader`` and remembers facts about the current row."""

    def __init__(self, lines: Iterator[TextLine]) -> None:
        self.lines = lines
        self.start_row()

    def start_row(self) -> None:
        """Forget the previous row."""
        self.number = 0
        self.start = ""
        self.size = 0
        self.quotes = 0

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        self.number = self.number or line.number
        self.start = self.start or line.text[:SHOWN]
        self.size += len(line.text)
        self.quotes += line.quotes or line.text.count('"')
        if line.problem or self.size > limits.MAX_LINE:
            raise _TooLongError
        return line.text


def csv_rows(lines: Iterator[TextLine], path: str | Path) -> Iterator[CsvRow]:
    """Read the non-blank rows of a CSV.

    A single line that is too long, or has a cell that is too long, gives a row with a problem. If a quote is left open,
    the end of the row is unknown and a ``DataError`` is raised.
    """
    head = not_blank(lines)
    if head is None:
        return
    # Only the line of column names determines the delimiter reliably.
    delimiter = max(",;\t", key=head.text.count)
    feed = _Feed(chain((head,), lines))
    # Strict, because an open quote would otherwise put all following lines into one cell.
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    while (row := _next_row(reader, feed, path)) is not None:
        if row.problem or any(row.cells):
            yield row


def csv_header(rows: Iterator[CsvRow], path: str | Path) -> list[str]:
    """Return the column names, which are the first row."""
    if (first := next(rows, None)) is None:
        raise DataError("the file is empty.", path)
    if first.problem:
        raise DataError(f"The column names cannot be read. {first.problem}", path, first.number)
    return first.cells


def _next_row(reader: Iterator[list[str]], feed: _Feed, path: str | Path) -> CsvRow | None:
    """Return the next row, which may be blank, or None at the end."""
    feed.start_row()
    try:
        cells = next(reader)
        return CsvRow(feed.number, [cell.strip() for cell in cells])
    except StopIteration:
        return None
    except _TooLongError:
        problem = too_long("row", "Look for missing line ends and open quotes.")
    except csv.Error as error:
        if "field limit" not in str(error):
            message = f"not a valid CSV file ({error}): look for an open quote or an unusual line end."
            raise DataError(message, path, feed.number) from error
        # The limit is global, so it is not changed.
        problem = f"A cell has more than {csv.field_size_limit():,} characters. Look for open quotes, or shorten it."
    if feed.quotes % 2:
        raise DataError(f"{problem} A quote is left open there, so nothing after it can be read.", path, feed.number)
    return CsvRow(feed.number, [feed.start], problem)
