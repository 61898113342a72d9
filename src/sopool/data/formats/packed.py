"""Read and write a store of graphs as one safetensors file, with names as JSON in its header."""

import hashlib
import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from weakref import WeakKeyDictionary

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from sopool._files.atomic import whole_file
from sopool._files.sealed import check_sealed_file, write_sealed
from sopool.data.formats.json_graph import check_names
from sopool.data.graphs import CATEGORIES, PackedGraphs, check_values
from sopool.data.names import CategoryColumn
from sopool.errors import DataError

FORMAT = "sopool graphs 1"
NAMES = ("classes", "node_label_names", "edge_label_names")
LATER_NAMES = ("target_names", *CATEGORIES.values(), "graph_attribute_names", "split_columns")
"""Names that the first files did not have; they are left out where they are empty, so that keys stay the same."""
SMALL = (torch.uint8, torch.int16, torch.int32)
DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    "node_ptr": (torch.int64,),
    "edge_ptr": (torch.int64,),
    "edge_index": (torch.int32,),
    "labels": (torch.int64,),
    "targets": (torch.float64,),
    "node_labels": (torch.int32,),
    "node_categories": SMALL,
    "node_attributes": (torch.float32,),
    "edge_labels": (torch.int32,),
    "edge_categories": SMALL,
    "edge_attributes": (torch.float32,),
    "edge_weights": (torch.float32,),
    "graph_attributes": (torch.float32,),
    "split_values": (torch.float64,),
}


class StoredFile(NamedTuple):
    """The path of a file that graphs were read from, and what identifies its content."""

    path: Path
    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path, found: os.stat_result) -> "StoredFile":
        """Create it from the result of ``stat`` for ``path``."""
        return cls(path.absolute(), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


# Not a field of the store, because copies, subsets and changed versions of a store differ from the file.
_files: WeakKeyDictionary[PackedGraphs, StoredFile] = WeakKeyDictionary()


def save_graphs(store: PackedGraphs, path: str | Path) -> None:
    """Write a store to one ``.graphs`` file with a checksum; if interrupted, the old file stays as it was.

    Args:
        store: The graphs.
        path: The file to write.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import load, load_graphs, save_graphs
        >>> with TemporaryDirectory() as folder:
        ...     save_graphs(load("MUTAG"), f"{folder}/mutag.graphs")
        ...     print(len(load_graphs(f"{folder}/mutag.graphs")))
        188
    """
    with whole_file(path) as temporary, temporary.open("wb") as file:
        write_graphs(store, file)


def write_graphs(store: PackedGraphs, file: BinaryIO, **more: str) -> None:
    """Write what :func:`save_graphs` writes to an open file, with the entries ``more`` added to its header."""
    header = {"format": FORMAT, "name": store.name} | more
    header |= {name: json.dumps(list(getattr(store, name))) for name in _names_of(store)}
    write_sealed(file, store.tensors(), header)


def load_graphs(path: str | Path, check: bool = True) -> PackedGraphs:
    """Read a store that :func:`save_graphs` wrote.

    The arrays are memory-mapped: they are read from disk when they are used, and must not be written to.

    Args:
        path: The ``.graphs`` file.
        check: Whether to verify the checksum (files of older versions have none) and all values, such as the ends of
            edges. Use False only for a file that was checked before. Default: True.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import load, load_graphs, save_graphs
        >>> with TemporaryDirectory() as folder:
        ...     save_graphs(load("MUTAG"), f"{folder}/mutag.graphs")
        ...     print(len(load_graphs(f"{folder}/mutag.graphs")))
        188
    """
    return read_graphs(Path(path), check)[0]


def read_graphs(path: Path, check: bool = True) -> tuple[PackedGraphs, dict[str, str]]:
    """Return the store in a file, as :func:`load_graphs` does, and the header of the file."""
    if not path.is_file():
        raise DataError("there is no such file.", path)
    before = StoredFile.of(path, path.stat())
    header, tensors = _mapped(path)
    if check and "digest" in header:
        with path.open("rb") as file:
            check_sealed_file(file, path)
    store = _store(header, tensors, path, check)
    if StoredFile.of(path, path.stat()) != before:
        raise DataError("the file was replaced by another one while it was read. Try again.", path)
    _files[store] = before
    return store, header


def renamed(store: PackedGraphs, name: str) -> PackedGraphs:
    """Return the same graphs under another name, without losing the file that :func:`open_file` finds."""
    other = replace(store, name=name)
    if store in _files:
        _files[other] = _files[store]
    return other


def open_file(store: PackedGraphs) -> BinaryIO | None:
    """Open the file that ``store`` was read from; return None if there is none or it has changed."""
    known = _files.get(store)
    if known is None or any(map(_may_differ, store.tensors().values())):
        return None
    try:
        file = known.path.open("rb")
    except OSError:
        return None
    if StoredFile.of(known.path, os.fstat(file.fileno())) == known:
        return file
    file.close()
    return None


def _may_differ(tensor: Tensor) -> bool:
    """Return whether an array may have been written to since it was read, as far as PyTorch can tell."""
    return tensor.is_inference() or tensor._version > 0


def _mapped(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the header and the memory-mapped arrays of a file, with names and types checked."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                found = header.get("format", "no format name")
                raise DataError(
                    f"expected the format {FORMAT!r}, found {found!r}: written by another version or program.", path
                )
            names = list(file.keys())
            unknown = sorted(set(names) - set(DTYPES))
            if unknown:
                raise DataError(f"unknown arrays {unknown}, expected only {', '.join(DTYPES)}.", path)
            tensors = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise DataError(
            f"truncated, damaged or not a .graphs file ({error}). Create it again from its source.", path
        ) from error
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES[name]:
            expected = " or ".join(map(str, DTYPES[name]))
            raise DataError(f"{name} has type {tensor.dtype}, expected {expected}.", path)
    return header, tensors


def _store(header: dict[str, str], tensors: dict[str, Tensor], path: Path, check: bool) -> PackedGraphs:
    try:
        every = (*NAMES, *LATER_NAMES)
        content: dict[str, Any] = {name: _names(header.get(name, "[]"), name) for name in every}
        content |= tensors
        store = PackedGraphs(**content, name=header.get("name", path.stem))
        if check:
            check_values(store)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the file does not hold valid graphs: {error}", path) from error
    return store


def _names(text: str, what: str) -> tuple[Any, ...]:
    names = json.loads(text)
    if not isinstance(names, list):
        raise DataError(f"{what} must be a list.")
    if what in CATEGORIES.values():
        return tuple(_column(column, what) for column in names)
    check_names(names, what)
    return tuple(names)


def _column(saved: Any, what: str) -> CategoryColumn:
    if not (isinstance(saved, list) and len(saved) == 2 and isinstance(saved[1], list)):
        raise DataError(f"{what} must be pairs of a name and a list of values.")
    check_names(saved[1], what)
    return CategoryColumn(saved[0], tuple(saved[1]))


def _names_of(store: PackedGraphs) -> list[str]:
    """Return the fields with names that identify a store."""
    return [*NAMES, *(name for name in LATER_NAMES if getattr(store, name))]


assert {*DTYPES, *NAMES, *LATER_NAMES, "name"} == {item.name for item in fields(PackedGraphs)}


def content_key(store: PackedGraphs) -> str:
    """Return a hash of everything in a store except its name and its split; equal graphs have equal hashes."""
    store = replace(store, split_values=None, split_columns=())
    digest = hashlib.sha256(json.dumps([list(getattr(store, name)) for name in _names_of(store)]).encode())
    for name, tensor in sorted(store.tensors().items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
