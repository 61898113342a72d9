"""Packed stores kept in the user's cache folder, keyed by the content of what they were read from."""

import hashlib
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from sopool._files.atomic import whole_file
from sopool._files.private import is_private, make_private, make_unwritable
from sopool.data.formats.archive import not_hidden, open_source
from sopool.data.formats.packed import FORMAT, read_graphs, write_graphs
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError

# Part of every key: raise it when a reader gives something else for the same file, or when files are kept otherwise.
READERS = 2

NOT_PLAIN = r"[^\w.-]"
MOST_LETTERS = 50

Kept = TypeVar("Kept")
Value = TypeVar("Value")


def cache_folder() -> Path:
    """``SOPOOL_CACHE``, else ``sopool`` in the user's cache folder."""
    if own := os.environ.get("SOPOOL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sopool"


def cached(source: Path, name: str, read: Callable[[], PackedGraphs]) -> PackedGraphs:
    """What ``read`` gives for ``source``, from the cache if it is there.

    A file of the cache is used only if its digest is right, every index in it is in range, it was made of this source,
    and nobody but the user and root can have written it. One that is damaged is built anew, with a warning. A cache
    that cannot be written, or that others can write to, costs a warning. Two processes at once may both read the
    source; each writes under a name of its own, and renames.
    """
    path = entry(name, fingerprint(source), "graphs")
    found = kept(path, _load)
    if found is not None:
        return found
    store = read()
    if keep(path, name, store, _write):
        found = kept(path, _load)
    return store if found is None else found


def entry(name: str, key: str, kind: str) -> Path:
    """Return the path of a file of the cache: ``name``, which may come from a hostile file, says only what it is of."""
    return cache_folder() / f"{re.sub(NOT_PLAIN, '_', name)[:MOST_LETTERS]}-{key}.{kind}"


def downloaded(name: str) -> Path:
    """Return where a data set that was downloaded is kept."""
    return cache_folder() / "downloads" / f"{name}.zip"


def kept(path: Path, load: Callable[[Path], Kept]) -> Kept | None:
    """Return what ``load`` gives for a file of the cache; None if it is not there or cannot be trusted.

    A file whose content is not what was written costs a warning. What is wrong with its folder is
    reported by :func:`keep`, which comes next.
    """
    if not is_private(path):
        return None
    try:
        return load(path)
    except OSError:
        return None
    except DataError as error:
        warnings.warn(f"{error} It is made anew.", stacklevel=3)
        return None


def keep(path: Path, what: str, value: Value, write: Callable[[Value, BinaryIO, str], None]) -> bool:
    """Have ``write`` write a file of the cache, whole or not at all; False, with a warning, if that fails."""
    try:
        make_private(path.parent)
        with whole_file(path) as temporary, temporary.open("wb") as file:
            write(value, file, path.name)
            make_unwritable(file)
            path.unlink(missing_ok=True)  # or the new file would be given the mode of the old one
    except OSError as error:
        warnings.warn(
            f"{what} could not be kept in {path.parent} ({error}): this will be done again next time. Set SOPOOL_CACHE "
            "to a folder of your own that can be written.",
            stacklevel=3,
        )
        return False
    return True


def _load(path: Path) -> PackedGraphs:
    store, header = read_graphs(path)
    if header.get("entry") != path.name or "digest" not in header:
        raise DataError("not a file that the cache made of this source.", path)
    return store


def _write(store: PackedGraphs, file: BinaryIO, name: str) -> None:
    write_graphs(store, file, entry=name)


def fingerprint(source: Path) -> str:
    """A key of the bytes of a file, or of the text files of a folder with their names: those that readers look at."""
    digest = hashlib.sha256(f"{FORMAT} {READERS}".encode())
    for path in [source] if source.is_file() else _texts(source):
        digest.update(path.relative_to(source).as_posix().encode() + b"\0")
        try:
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error}).", path) from error
    return digest.hexdigest()[:16]


def _texts(folder: Path) -> list[Path]:
    with open_source(folder) as files:
        return [folder / name for name in not_hidden(files.names, ".txt")]
