"""Keep packed stores in the user's cache folder, keyed by the content of their source."""

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

# Part of every key: increase it when readers return something else for the same file, or the cache format changes.
READERS = 4

NOT_PLAIN = r"[^\w.-]"
MOST_LETTERS = 50

Kept = TypeVar("Kept")
Value = TypeVar("Value")


def cache_folder() -> Path:
    """Return the folder ``SOPOOL_CACHE``, or else ``sopool`` in the user's cache folder."""
    if own := os.environ.get("SOPOOL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sopool"


def cached(source: Path, name: str, read: Callable[[], PackedGraphs]) -> PackedGraphs:
    """Return what ``read`` returns for ``source``, from the cache if possible.

    A cache file is used only if its checksum and all indices in it are valid, it was made from this source, and only
    the user and root can have written it. A damaged file is replaced, with a warning. If the cache cannot be written,
    or others can write to it, a warning is issued. Processes that run at the same time may both read the source; each
    writes to a temporary file of its own and renames it.
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
    """Return the path of a cache file; unusual characters of ``name``, which may be hostile, are replaced."""
    return cache_folder() / f"{re.sub(NOT_PLAIN, '_', name)[:MOST_LETTERS]}-{key}.{kind}"


def downloaded(name: str) -> Path:
    """Return the path of a downloaded data set."""
    return cache_folder() / "downloads" / f"{name}.zip"


def kept(path: Path, load: Callable[[Path], Kept]) -> Kept | None:
    """Return what ``load`` returns for a cache file, or None if the file does not exist or cannot be trusted.

    A file with invalid content causes a warning. Problems of its folder are reported by :func:`keep`, which is called
    next.
    """
    if not is_private(path):
        return None
    try:
        return load(path)
    except OSError:
        return None
    except DataError as error:
        warnings.warn(f"{error} Creating it again.", stacklevel=3)
        return None


def keep(path: Path, what: str, value: Value, write: Callable[[Value, BinaryIO, str], None]) -> bool:
    """Write a cache file atomically with ``write``; return whether it succeeded, and warn if not."""
    try:
        make_private(path.parent)
        with whole_file(path) as temporary, temporary.open("wb") as file:
            write(value, file, path.name)
            make_unwritable(file)
            path.unlink(missing_ok=True)  # otherwise the new file would get the permissions of the old one
    except OSError as error:
        warnings.warn(
            f"{what} could not be written to the cache {path.parent} ({error}), so this will be repeated next time. "
            "Set SOPOOL_CACHE to a folder of your own that you can write to.",
            stacklevel=3,
        )
        return False
    return True


def _load(path: Path) -> PackedGraphs:
    store, header = read_graphs(path)
    if header.get("entry") != path.name or "digest" not in header:
        raise DataError("this cache file was not made from this source.", path)
    return store


def _write(store: PackedGraphs, file: BinaryIO, name: str) -> None:
    write_graphs(store, file, entry=name)


def fingerprint(source: Path) -> str:
    """Return a hash of a file, or of the names and contents of the text files in a folder."""
    digest = hashlib.sha256(f"{FORMAT} {READERS}".encode())
    for path in [source] if source.is_file() else _texts(source):
        digest.update(path.relative_to(source).as_posix().encode() + b"\0")
        try:
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
        except OSError as error:
            raise DataError(f"the file cannot be read ({error.strerror or error}).", path) from error
    return digest.hexdigest()[:16]


def _texts(folder: Path) -> list[Path]:
    with open_source(folder) as files:
        return [folder / name for name in not_hidden(files.names, ".txt")]
