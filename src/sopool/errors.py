"""Define the errors that sopool raises for unusable data, settings or resources.

Each message says what was given, where, what was expected and what to do. This module imports only the standard
library, so that every part of the package can import it.
"""

import reprlib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

OnError = Literal["skip", "raise"]
"""What to do with a row of a file that cannot be read: skip it with a warning, or raise an error."""


class UserError(ValueError):
    """Base class of errors about the user's input; the command line shows them without a traceback.

    Args:
        message: What is wrong, and what to do.
        path: The file that the error is about, named at the start of the message. Default: None.
        line: The line of that file, from 1. Default: None.
    """

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + message)
        self.path = path
        self.line = line


class DataError(UserError):
    """The error for invalid graphs, labels or files; a ``ValueError``.

    Examples:
        >>> from sopool.data import DataError, Graph, pack
        >>> try:
        ...     pack([Graph(2, [(0, 5)])])
        ... except DataError as error:
        ...     print(error)
        graph 0: the edge [0, 5] leaves the graph, whose nodes are 0 to 1.
    """


class SettingError(UserError):
    """The error for an option or argument with an invalid value; a ``ValueError``."""


class MissingPackageError(UserError, ImportError):
    """The error for an optional package that is needed but not installed; also an ``ImportError``."""

    path: None  # this error is not about a file; an ImportError may have the path of a module here


class ResourceError(UserError):
    """The error for too little memory, or for a device or cluster that is not available."""


class Place(NamedTuple):
    """The name of a source and of its rows, for error messages."""

    unit: Literal["line", "record", "row", "molecule", "graph"]
    path: str | Path | None = None

    def of(self, row: int) -> str:
        """Return the name of one row."""
        return f"{self.unit} {row}" if self.path is None else f"{self.path}, {self.unit} {row}"

    def error(self, row: int, reason: str) -> DataError:
        """Return the error for one row."""
        if self.unit == "line":
            return DataError(reason, self.path, row)
        return DataError(f"{self.unit} {row}: {reason}", self.path)


def check_kind(given: object, kind: type, needed: str) -> None:
    """Raise unless ``given`` is an instance of ``kind``; ``needed``, what is expected, is the start of the message."""
    if not isinstance(given, kind):
        raise SettingError(f"{needed}, not a {type(given).__name__}: {reprlib.repr(given)}.")


def check_name(kind: str, name: str, known: Collection[str]) -> None:
    """Raise unless ``name`` is one of the ``known`` names; the message suggests a similar one."""
    check_kind(name, str, f"the {kind} must be given by its name")
    if name not in known:
        raise SettingError(f"there is no {kind} {name!r}.{suggest(name, known)} Known: {', '.join(known)}.")


def suggest(given: str, known: Collection[str]) -> str:
    """Return " Did you mean ...?" with the known name most similar to ``given``, or an empty string if none is similar.

    A name of which ``given`` is a whole word, as ``"gin"`` is of ``"gin-0"``, comes before names spelled similarly.
    Upper and lower case make no difference. Very long strings are not compared, because that takes too much memory.
    """
    spelled = {name.lower(): name for name in known}
    longest = max(map(len, spelled), default=0)
    close = [name for name in spelled if given.lower() in name.split("-")]
    if not close and len(given) <= 2 * longest:
        close = get_close_matches(given.lower(), spelled, n=1)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


def refuse_table(given: Any) -> None:
    """Raise for a data frame, which would be read as its column names; a single column is accepted."""
    if hasattr(given, "columns") and hasattr(given, "iloc"):
        names = [str(name) for name in given.columns]
        wanted = repr(names[0]) if names else "NAME"
        raise DataError(f"a data frame was given, expected one of its columns: pass one, such as table[{wanted}].")
