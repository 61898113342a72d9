"""Keep arrays that were computed from graphs in the user's cache folder."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from torch import Tensor

from sopool._files.sealed import read_sealed, write_sealed
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.data.sources.cache import entry, keep, kept
from sopool.errors import DataError

MOST_BYTES = 2**33

Arrays = dict[str, Tensor]


def kept_arrays(
    store: PackedGraphs,
    key: str,
    kind: str,
    find: Callable[[], Arrays],
    check: Callable[[Arrays], None],
) -> Arrays:
    """Return arrays that were computed from graphs, from the cache if possible; a damaged file is replaced.

    Args:
        store: The graphs, of which the file's name has a hash.
        key: What is computed, and the version of the method.
        kind: What the arrays are, in messages and as the suffix of the file, such as ``"clusters"``.
        find: The function that computes the arrays.
        check: Raises a ``ValueError`` if arrays, which anyone may have written, cannot be those of the graphs. A
            ``KeyError`` or ``TypeError`` means the same.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.extras import kept_arrays
        >>> graphs = load("MUTAG")
        >>> def check(arrays):
        ...     if arrays["sizes"].shape != (len(graphs),):
        ...         raise ValueError("sizes has a wrong shape")
        >>> find = lambda: {"sizes": graphs.sizes}
        >>> len(kept_arrays(graphs, "1", "sizes", find, check)["sizes"])
        188
    """
    path = entry(store.name, f"{content_key(store)}-{key}", kind)
    arrays = kept(path, partial(_load, check=check, kind=kind))
    if arrays is None:
        arrays = find()
        keep(path, f"the {kind} of {store.name}", arrays, _write)
    return arrays


def _write(arrays: Arrays, file: BinaryIO, name: str) -> None:
    write_sealed(file, arrays, {"entry": name})


def _load(path: Path, check: Callable[[Arrays], None], kind: str) -> Arrays:
    """Return the arrays in a file; raise a ``DataError`` if they cannot be those of the graphs."""

    def check_entry(header: dict[str, str]) -> None:
        if header.get("entry") != path.name:
            raise DataError(f"the file holds the {kind} of other graphs.")

    _, found = read_sealed(path, MOST_BYTES, check_entry)
    try:
        check(found.arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the file does not hold valid {kind}: {error}", path) from error
    return found.arrays
