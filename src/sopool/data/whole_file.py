"""Files that are written whole or not at all."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LEFT_OVER = re.compile(r"\..+\.[0-9a-f]{16}")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it takes the place of ``path`` at the end, or goes away on any error.

    After a power failure, too, ``path`` has either what it had or all that was written: the content is on the disk
    before the name is, and the name is on the disk at the end of the block.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def left_overs(folder: Path) -> list[Path]:
    """What killed processes left of their :func:`whole_file`, and what running ones are writing."""
    return [path for path in folder.iterdir() if LEFT_OVER.fullmatch(path.name)]


def _flush_folder(folder: Path) -> None:
    # Windows and some network file systems cannot; the file is whole all the same.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
