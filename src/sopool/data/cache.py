"""Packed stores kept in the user's cache folder, keyed by the content of what they were read from."""

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path

from sopool.data.archive import open_source, visible
from sopool.data.errors import DataError
from sopool.data.file import FORMAT, load_graphs, save_graphs
from sopool.data.store import PackedGraphs

# Part of every key: raise it when a reader gives something else for the same file.
READERS = 1


def cache_folder() -> Path:
    """``SOPOOL_CACHE``, else ``sopool`` in the user's cache folder."""
    if own := os.environ.get("SOPOOL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sopool"


def cached(source: Path, name: str, read: Callable[[], PackedGraphs]) -> PackedGraphs:
    """What ``read`` gives for ``source``, from the cache if it is there.

    A cache file that is damaged or of another version is built anew; one that cannot be written costs a warning. Two
    processes at once may both read the source; each writes under a name of its own, and renames.
    """
    path = cache_folder() / f"{name}-{fingerprint(source)}.graphs"
    if path.is_file():
        try:
            return load_graphs(path, check=False)
        except DataError:
            path.unlink(missing_ok=True)
    store = read()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_graphs(store, path)
        return load_graphs(path, check=False)
    except OSError as error:
        warnings.warn(
            f"{name} was read but could not be kept in {path.parent} ({error}): it will be read again next time. "
            "Set SOPOOL_CACHE to a folder that can be written.",
            stacklevel=3,
        )
        return store


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
        return [folder / name for name in visible(files.names, ".txt")]
