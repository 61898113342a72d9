"""The rows of a CSV file, none of which takes more memory than a row may."""

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sopool.data.formats import limits
from sopool.data.formats.lines import SHOWN, Line, not_blank, too_long
from sopool.errors import DataError


class CsvRow(NamedTuple):
    """The cells of a row, or why it cannot be read."""

    number: int
    """The line that the row starts on, from 1."""
    cells: list[str]
    """The cells of a row; only the beginning of one that cannot be read."""
    problem: str = ""


class _TooLongError(Exception):
    """The row that is being read is too long."""


class _Feed:
    """Hand lines to ``csv.reader`` and remember those of the row that it is reading."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.lines = lines
        self.start_row()

    def start_row(self) -> None:
        """Forget the lines of the last row."""
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


def csv_rows(lines: Iterator[Line], path: str | Path) -> Iterator[CsvRow]:
    """Read the rows of a CSV that are not blank.

    A row of one line that is too long, or that has too long a cell, is a row with a problem. Where a quote is open
    there is no telling where the row ends, and a ``DataError`` ends the reading.
    """
    head = not_blank(lines)
    if head is None:
        return
    # A SMILES holds letters, digits and brackets in any number: only the line of names tells the delimiter safely.
    delimiter = max(",;\t", key=head.text.count)
    feed = _Feed(chain((head,), lines))
    # Strictly, since a quote that is left open would take all lines that follow into one cell.
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    while (row := _next_row(reader, feed, path)) is not None:
        if row.problem or any(row.cells):
            yield row


def csv_header(rows: Iterator[CsvRow], path: str | Path) -> list[str]:
    """The names of the columns, which come first."""
    if (first := next(rows, None)) is None:
        raise DataError("the file is empty.", path)
    if first.problem:
        raise DataError(f"The names of the columns cannot be read. {first.problem}", path, first.number)
    return first.cells


def _next_row(reader: Iterator[list[str]], feed: _Feed, path: str | Path) -> CsvRow | None:
    """The next row, which may be blank; None at the end."""
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
            message = f"not a CSV file ({error}): look for an open quote or an odd line end."
            raise DataError(message, path, feed.number) from error
        # The limit holds for the whole process, and for other programs' sake it stays as it is.
        problem = f"A cell has more than {csv.field_size_limit():,} characters. Look for open quotes, or shorten it."
    if feed.quotes % 2:
        raise DataError(
            f"{problem} A quote is left open there, so that nothing after it can be read.", path, feed.number
        )
    return CsvRow(feed.number, [feed.start], problem)
