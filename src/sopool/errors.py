"""The one error that bad data raises."""

import reprlib
from pathlib import Path
from typing import Any, Literal, NamedTuple


class DataError(ValueError):
    """Something is wrong with the user's data: where, what was found, what was expected, what to do."""

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + message)
        self.path = path
        self.line = line


class Place(NamedTuple):
    """What the rows of a source are called, and where it lies."""

    unit: Literal["line", "record", "molecule", "graph"]
    path: str | Path | None = None

    def error(self, row: int, reason: str) -> DataError:
        """For what is wrong with one of them."""
        if self.unit == "line":
            return DataError(reason, self.path, row)
        return DataError(f"{self.unit} {row}: {reason}", self.path)


def check_kind(given: object, kind: type, needed: str) -> None:
    """Raise unless ``given`` is of a ``kind``; ``needed`` says what that is and how one comes by it."""
    if not isinstance(given, kind):
        raise DataError(f"{needed}, not a {type(given).__name__}: {reprlib.repr(given)}.")


def refuse_table(given: Any) -> None:
    """Raise for a data frame, which would be read as the names of its columns; one column of it is fine."""
    if hasattr(given, "columns") and hasattr(given, "iloc"):
        names = [str(name) for name in given.columns]
        wanted = repr(names[0]) if names else "NAME"
        raise DataError(f"a table was given: give one of its columns, such as table[{wanted}].")
