"""One store, one file: safetensors (arrays, memory-mapped) with the names as JSON in its header. No pickle."""

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from sopool.data.errors import DataError
from sopool.data.names import Names
from sopool.data.store import PackedGraphs, check_values
from sopool.data.whole_file import whole_file

FORMAT = "sopool graphs 1"
NAMES = ("classes", "node_label_names", "edge_label_names")
DTYPES = {
    "node_ptr": torch.int64,
    "edge_ptr": torch.int64,
    "edge_index": torch.int32,
    "labels": torch.int64,
    "node_labels": torch.int32,
    "node_attributes": torch.float32,
    "edge_labels": torch.int32,
    "edge_attributes": torch.float32,
    "edge_weights": torch.float32,
}


def save_graphs(store: PackedGraphs, path: str | Path) -> None:
    """Write ``store`` to one file: whole or not at all, also if interrupted."""
    header = {"format": FORMAT, "name": store.name}
    header |= {name: json.dumps(list(getattr(store, name))) for name in NAMES}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in store.tensors().items()}
    with whole_file(path) as temporary:
        save_file(tensors, temporary, metadata=header)


def load_graphs(path: str | Path, check: bool = True) -> PackedGraphs:
    """Read a store written by :func:`save_graphs`. The arrays stay on disk until they are used.

    ``check`` looks at every value once (an edge to a node that does not exist, a label without a name); leave it out
    only for a file that this process or its cache has written.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("there is no such file.", path)
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                found = header.get("format", "no format name")
                raise DataError(f"expected {FORMAT!r}, found {found!r}: written by another version or program.", path)
            arrays = list(file.keys())
            unknown = sorted(set(arrays) - set(DTYPES))
            if unknown:
                raise DataError(f"unknown arrays {unknown}.", path)
            content: dict[str, Any] = {name: file.get_tensor(name) for name in arrays}
    except SafetensorError as error:
        raise DataError(f"not a whole file of graphs ({error}). Build it again from its source.", path) from error
    for name, tensor in content.items():
        if tensor.dtype != DTYPES[name]:
            raise DataError(f"{name} has type {tensor.dtype}, expected {DTYPES[name]}.", path)
    try:
        content |= {name: _names(header.get(name, "[]")) for name in NAMES}
        store = PackedGraphs(**content, name=header.get("name", path.stem))
        if check:
            check_values(store)
    except (TypeError, ValueError, json.JSONDecodeError) as error:
        raise DataError(f"not a store of graphs: {error}", path) from error
    return store


def _names(text: str) -> Names:
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str | int) for name in names):
        raise ValueError("names must be a list of strings or integers.")
    return tuple(names)


assert set(DTYPES) | set(NAMES) | {"name"} == {item.name for item in fields(PackedGraphs)}


def content_key(store: PackedGraphs) -> str:
    """A key of everything in a store but its name: equal for equal graphs, wherever they came from."""
    digest = hashlib.sha256(json.dumps([list(getattr(store, name)) for name in NAMES]).encode())
    for name, tensor in sorted(store.tensors().items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
