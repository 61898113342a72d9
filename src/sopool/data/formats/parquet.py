"""Read molecules from Parquet files as from a CSV, and write tables. Needs pyarrow (the extra ``parquet``)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from sopool._runtime.packages import require
from sopool.data.formats import limits
from sopool.data.formats.csv import CsvRow, molecules_of_table, training_columns
from sopool.data.formats.lines import SHOWN, too_long
from sopool.data.formats.rows import GraphRow, RowOptions, TrainingColumns
from sopool.errors import DataError

Kind = type[bool] | type[int] | type[float] | type[str]
"""What the values of a column become in Python."""
ROWS = 2**10
"""The number of rows that are converted at a time."""


def parquet_rows(path: str | Path, options: RowOptions) -> Iterator[GraphRow]:
    """Read the molecules of a Parquet file, with labels and, if there is such a column, ids."""
    return molecules_of_table(_column_names(path), _table_rows(path), path, options)


def parquet_training_columns(path: str | Path, options: RowOptions) -> TrainingColumns:
    """Return the columns of a Parquet file that :func:`parquet_rows` reads molecules and labels from."""
    return training_columns(_column_names(path), path, options)


@contextmanager
def _open(path: str | Path) -> Iterator[Any]:
    """Open a Parquet file; whatever pyarrow raises becomes a ``DataError``."""
    require("reading Parquet files", "pyarrow")
    arrow = import_module("pyarrow")
    parquet = import_module("pyarrow.parquet")
    try:
        with Path(path).open("rb") as source, parquet.ParquetFile(source) as file:
            _check_size(file.metadata, path)
            yield file
    except FileNotFoundError as error:
        raise DataError("there is no such file.", path) from error
    except DataError:
        raise
    except (arrow.ArrowException, OSError, OverflowError, ValueError) as error:
        raise DataError(f"truncated, damaged or not a Parquet file ({_first_line(error)}).", path) from error


def _check_size(metadata: Any, path: str | Path) -> None:
    """Raise if a row group is too large to be unpacked."""
    sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    if max(sizes, default=0) > limits.MAX_UNPACKED:
        raise DataError(
            f"a row group unpacks to {max(sizes):,} bytes, but {limits.MAX_UNPACKED:,} is the limit. Write the file "
            "with smaller row groups.",
            path,
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _column_names(path: str | Path) -> list[str]:
    with _open(path) as file:
        names: list[str] = list(file.schema_arrow.names)
    if not names:
        raise DataError("the file has no columns.", path)
    return names


def _table_rows(path: str | Path) -> Iterator[CsvRow]:
    """Yield the rows, numbered from 1; those without any value are left out, as blank lines are."""
    number = 0
    with _open(path) as file:
        for batch in file.iter_batches(ROWS, use_threads=False):
            columns = [column.to_pylist() for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                row = _row(number, values)
                if row.problem or any(row.cells):
                    yield row


def _row(number: int, values: tuple[Any, ...]) -> CsvRow:
    cells = [_text(value).strip() for value in values]
    if sum(map(len, cells)) > limits.MAX_LINE:
        return CsvRow(number, [next(filter(None, cells))[:SHOWN]], too_long("row", "Look for columns of large texts."))
    return CsvRow(number, cells, values=tuple(map(_plain, values)))


def _text(value: Any) -> str:
    """Return a value as a CSV file has it."""
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _plain(value: Any) -> Any:
    """Return a value as JSON can have it: numbers stay numbers, a missing one is None, and others become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else _text(value)


def column_kinds(path: str | Path) -> dict[str, Kind]:
    """Return the kind of the values of each column, as :func:`parquet_rows` reads them; that of dates is text."""
    with _open(path) as file:
        fields = list(file.schema_arrow)
    return merged_kinds([{field.name: _kind(field.type)} for field in fields], missing=False)


def merged_kinds(tables: Iterable[Mapping[str, Kind]], missing: bool = True) -> dict[str, Kind]:
    """Return the kinds of columns that hold the values of several tables.

    Args:
        tables: The kinds of the columns of each table.
        missing: Whether columns that a table does not name hold text. Default: True.
    """
    every = list(tables)
    found: dict[str, Kind] = {}
    for name in dict.fromkeys(name for table in every for name in table):
        kinds = {table.get(name, str) for table in every if missing or name in table}
        found[name] = kinds.pop() if len(kinds) == 1 else float if kinds == {int, float} else str
    return found


def _kind(given: Any) -> Kind:
    types = import_module("pyarrow").types
    if types.is_boolean(given):
        return bool
    if types.is_integer(given) and not types.is_uint64(given):  # which may be too large for int64
        return int
    return float if types.is_floating(given) else str


class ParquetTable:
    """A Parquet file to which rows are appended.

    Args:
        path: The file, which is written from its start.
    """

    def __init__(self, path: str | Path) -> None:
        require("writing Parquet files", "pyarrow")
        self._path = path
        self._kinds: Sequence[Kind] = ()
        self._file: Any = None

    def __enter__(self) -> "ParquetTable":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def begin(self, names: Sequence[str], kinds: Sequence[Kind]) -> None:
        """Name the columns and the kinds of their values."""
        arrow = import_module("pyarrow")
        types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
        schema = arrow.schema([(name, types[kind]) for name, kind in zip(names, kinds, strict=True)])
        self._kinds = kinds
        self._file = import_module("pyarrow.parquet").ParquetWriter(str(self._path), schema)

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Append rows; values are converted to the kinds of their columns, and None is a missing one."""
        if not rows:
            return
        arrow = import_module("pyarrow")
        columns = [
            [None if value is None else kind(value) for value in column]
            for kind, column in zip(self._kinds, zip(*rows, strict=True), strict=True)
        ]
        schema = self._file.schema
        arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        self._file.write_table(arrow.Table.from_arrays(arrays, schema=schema))
