"""Open a file for reading only if it is a regular file of a bounded size.

Reading a device such as ``/dev/zero`` may never end, and opening a pipe may block.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from sopool.errors import DataError


def open_regular(path: str | Path, most: int) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes; raise a ``DataError`` for others, else ``OSError`` as usual."""
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 (handed to the caller, who closes it)
    found = os.fstat(file.fileno())
    try:
        if not stat.S_ISREG(found.st_mode):
            raise DataError("this is a pipe or a device, expected a regular file. Copy its content to one.", path)
        if found.st_size > most:
            raise DataError(f"the file has {found.st_size:,} bytes, expected at most {most:,}.", path)
    except DataError:
        file.close()
        raise
    return file


def read_regular(path: str | Path, most: int) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes; the errors are those of :func:`open_regular`."""
    with open_regular(path, most) as file:
        return file.read(most)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without blocking, even if it is a pipe to which nobody writes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
