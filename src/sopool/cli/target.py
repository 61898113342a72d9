"""Where a command writes what it found: a file, or the standard output."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, TypeVar

from sopool.cli.console import data_stream

Name = TypeVar("Name", bound=str)

STDIN = "-"
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def is_stdout(path: Path) -> bool:
    """Whether it names the standard output. A name of it is no file: what was there already must stay."""
    return str(path) in STDOUT


def format_of(path: Path, *known: Name) -> Name:
    """What to write there, by its name; to the standard output the first of those known."""
    from sopool.errors import DataError

    if is_stdout(path):
        return known[0]
    for name in known:
        if path.suffix == f".{name}":
            return name
    names = ", ".join(f".{name}" for name in known[:-1])
    raise DataError(f"call it {names} or .{known[-1]}, or say which with --format.", path)


def check_target(path: Path, *inputs: str | Path) -> None:
    """Raise a ``DataError`` now for a file that could not be written later, or that is among what is to be read."""
    from sopool.errors import DataError

    if not is_stdout(path):
        _check_place(path)
    for one in inputs:
        if _same_file(path, one):
            known = "the standard input" if str(one) == STDIN else str(one)
            raise DataError(f"the same file as {known}, which is to be read and would be lost. Write to another.", path)


def check_file(path: Path, *inputs: str | Path, instead: str = "") -> None:
    """Likewise, of what the standard output cannot take; ``instead``: what can be printed there, and how."""
    from sopool.errors import DataError

    if is_stdout(path):
        raise DataError(f"this is the standard output; the name of a file is needed.{instead}", path)
    check_target(path, *inputs)


@contextmanager
def open_target(path: Path) -> Iterator[TextIO]:
    """To write text to: whole, to a file, or as it comes."""
    from sopool._files.atomic import whole_file

    if is_stdout(path):
        yield data_stream(sys.stdout)
        return
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        yield data_stream(file)


def write_target(path: Path, text: str) -> None:
    """All of it at once."""
    with open_target(path) as file:
        file.write(text)


def _check_place(path: Path) -> None:
    from sopool._files.atomic import is_stream
    from sopool.errors import DataError

    if path.is_dir():
        raise DataError("this is a folder; the name of a file is needed.", path)
    try:
        if is_stream(path):
            return
    except OSError as error:
        raise DataError(f"{error.strerror}: the name of a file is needed.", path) from error
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        known = folder if path.is_symlink() else path.parent
        raise DataError(f"there is no folder {known} to write to. Make it first.", path)
    if not os.access(folder, os.W_OK):
        raise DataError(f"the folder {path.parent} cannot be written to.", path)
    if path.exists() and not os.access(path, os.W_OK):
        raise DataError("this file may not be written to. Write to another, or have it allowed.", path)


def _same_file(target: Path, source: str | Path) -> bool:
    """By what the system says of them, whatever they are called; terminals and pipes may serve both ways."""
    try:
        written = os.fstat(sys.stdout.fileno()) if is_stdout(target) else target.stat()
        read = os.fstat(sys.stdin.fileno()) if str(source) == STDIN else Path(source).stat()
    except (OSError, ValueError):  # not there, or no files of the system
        return False
    return stat.S_ISREG(written.st_mode) and os.path.samestat(written, read)
