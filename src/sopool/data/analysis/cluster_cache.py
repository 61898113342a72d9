"""Keep the clusters of graphs in the user's cache folder."""

from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch

from sopool._files.bounds import check_pointers, first_outside
from sopool._files.sealed import read_sealed, write_sealed
from sopool.data.analysis.spectral import ClusterLevel, ClusterSpec, spectral_clusters
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs, check_values
from sopool.data.sources.cache import entry, keep, kept
from sopool.errors import DataError

METHOD = 2
"""Part of every file name: increase it when the clusters of a graph or the file format change."""
MOST_BYTES = 2**33
TYPES = {
    "rows": np.int32,
    "vectors": np.float32,
    "sizes": np.int64,
    "node_ptr": np.int64,
    "edges": np.int32,
    "edge_ptr": np.int64,
}


def clusters_of(store: PackedGraphs, spec: ClusterSpec) -> list[ClusterLevel]:
    """Return the spectral clusters of graphs, from the cache if possible; a damaged cache file is replaced."""
    path = entry(store.name, "-".join(str(fact) for fact in (content_key(store), *spec, METHOD)), "clusters")
    levels = kept(path, partial(_load, store=store, spec=spec))
    if levels is None:
        levels = spectral_clusters(store, spec)
        keep(path, f"the clusters of {store.name}", levels, _write)
    return levels


def _write(levels: list[ClusterLevel], file: BinaryIO, name: str) -> None:
    arrays = {f"{field}_{i}": array for i, level in enumerate(levels) for field, array in level._asdict().items()}
    write_sealed(file, arrays, {"entry": name})


def _load(path: Path, store: PackedGraphs, spec: ClusterSpec) -> list[ClusterLevel]:
    """Return the clusters in a file; raise a ``DataError`` if they cannot be those of the graphs."""
    _, found = read_sealed(path, MOST_BYTES, partial(_check_entry, name=path.name))
    try:
        arrays = {name: tensor.numpy() for name, tensor in found.arrays.items()}
        levels = [ClusterLevel(*(arrays[f"{name}_{i}"] for name in ClusterLevel._fields)) for i in range(spec.levels)]
        node_ptr = store.node_ptr.cpu()
        for level in levels:
            _check(level, node_ptr, spec.vectors)
            node_ptr = torch.from_numpy(level.node_ptr)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the file does not hold valid clusters: {error}", path) from error
    return levels


def _check_entry(header: dict[str, str], name: str) -> None:
    if header.get("entry") != name:
        raise DataError("the file holds the clusters of other graphs.")


def _check(level: ClusterLevel, below: torch.Tensor, vectors: int) -> None:
    """Raise a ``DataError`` unless all indices are valid for graphs with the node offsets ``below``."""
    for name, array in level._asdict().items():
        if array.dtype != TYPES[name]:
            raise DataError(f"{name} has type {array.dtype}, expected {np.dtype(TYPES[name])}.")
    rows, values, sizes, node_ptr, edges, edge_ptr = (torch.from_numpy(array) for array in level)
    nodes = int(below[-1])
    graphs = len(below) - 1
    if rows.shape != (nodes,) or values.shape != (nodes, vectors) or len(node_ptr) != graphs + 1 or sizes.ndim != 1:
        raise DataError("the array shapes do not match these graphs.")
    check_values(PackedGraphs(node_ptr, edge_ptr, edges))
    if first_outside(rows, below, below.diff()) is not None:
        raise DataError("rows must be node indices of their graphs.")
    ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    check_pointers("the cumulative sum of sizes", ends)
    if len(sizes) != int(node_ptr[-1]) or not torch.equal(ends[node_ptr], below):
        raise DataError("sizes must add up to the number of nodes of each graph.")
    if not bool(values.isfinite().all()):
        raise DataError("vectors must be finite.")
