"""The errors that a user's mistake raises, each with what was given, where, what was expected and what to do.

This module imports nothing but the standard library, so that any part of the package may import it at the top.
"""

import reprlib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

OnError = Literal["skip", "raise"]
"""What to do about a row of a file that cannot be read: leave it out with a warning, or stop there."""


class UserError(ValueError):
    """Something that the user gave cannot be used. The command line shows it without a traceback."""

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + message)
        self.path = path
        self.line = line


class DataError(UserError):
    """Something is wrong with graphs, labels or a file."""


class SettingError(UserError):
    """An option or an argument has a value that is not possible."""


class MissingPackageError(UserError):
    """An optional package that is needed is not installed."""


class ResourceError(UserError):
    """There is not enough memory, or a device or a cluster that was asked for is not there."""


class Place(NamedTuple):
    """Say what the rows of a source are called, and where it lies."""

    unit: Literal["line", "record", "molecule", "graph"]
    path: str | Path | None = None

    def error(self, row: int, reason: str) -> DataError:
        """Return the error for what is wrong with one row."""
        if self.unit == "line":
            return DataError(reason, self.path, row)
        return DataError(f"{self.unit} {row}: {reason}", self.path)


def check_kind(given: object, kind: type, needed: str) -> None:
    """Raise unless ``given`` is of a ``kind``; ``needed`` says what that is and how one comes by it."""
    if not isinstance(given, kind):
        raise SettingError(f"{needed}, not a {type(given).__name__}: {reprlib.repr(given)}.")


def check_name(kind: str, name: str, known: Collection[str]) -> None:
    """Raise unless ``name`` is among those ``known``, with a guess at what was meant."""
    if name not in known:
        raise SettingError(f"there is no {kind} {name!r}.{suggest(name, known)} Known: {', '.join(known)}.")


def suggest(given: str, known: Collection[str]) -> str:
    """Return a question that names the known word most like a misspelt one, or nothing if none is like it.

    Upper and lower case make no difference. Very long texts are not compared: that would take memory for each letter.
    """
    spelled = {name.lower(): name for name in known}
    longest = max(map(len, spelled), default=0)
    close = get_close_matches(given.lower(), spelled, n=1) if len(given) <= 2 * longest else []
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


def refuse_table(given: Any) -> None:
    """Raise for a data frame, which would be read as the names of its columns; one column of it is fine."""
    if hasattr(given, "columns") and hasattr(given, "iloc"):
        names = [str(name) for name in given.columns]
        wanted = repr(names[0]) if names else "NAME"
        raise DataError(f"a table was given: give one of its columns, such as table[{wanted}].")
