"""Open a file for reading only if it is a regular file of a bounded size.

A device such as ``/dev/zero`` never ends, and a pipe may never begin: files that are read as a whole must be neither.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from sopool.errors import DataError


def open_regular(path: str | Path, most: int) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes; ``DataError`` for another kind of file, ``OSError`` as usual."""
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 (handed to the caller, who closes it)
    found = os.fstat(file.fileno())
    try:
        if not stat.S_ISREG(found.st_mode):
            raise DataError("a pipe or a device was given, expected a regular file. Copy its content to one.", path)
        if found.st_size > most:
            raise DataError(f"{found.st_size:,} bytes long, expected at most {most:,}.", path)
    except DataError:
        file.close()
        raise
    return file


def read_regular(path: str | Path, most: int) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes, with the errors of :func:`open_regular`."""
    with open_regular(path, most) as file:
        return file.read(most)


def _without_waiting(path: str, flags: int) -> int:
    """Open a pipe, too, at once: otherwise that waits until somebody writes into it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
