"""Keep the clusters of graphs in the user's cache folder."""

from functools import partial

import numpy as np
import torch

from sopool._files.bounds import check_pointers, first_outside
from sopool.data.analysis.spectral import ClusterLevel, ClusterSpec, spectral_clusters
from sopool.data.graphs import PackedGraphs, check_values
from sopool.data.sources.array_cache import Arrays, kept_arrays
from sopool.errors import DataError

METHOD = 2
"""Part of every file name: increase it when the clusters of a graph or the file format change."""
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

    def find() -> Arrays:
        return _arrays(spectral_clusters(store, spec))

    arrays = kept_arrays(store, cache_key(spec), "clusters", find, partial(_check, store=store, spec=spec))
    return _levels(arrays, spec)


def cache_key(spec: ClusterSpec) -> str:
    """Return the part of a cache file's name that says which clusters it holds."""
    return "-".join(str(fact) for fact in (*spec, METHOD))


def _arrays(levels: list[ClusterLevel]) -> Arrays:
    """Return the arrays of all levels by name."""
    fields = ((i, field, array) for i, level in enumerate(levels) for field, array in level._asdict().items())
    return {f"{field}_{i}": torch.from_numpy(array) for i, field, array in fields}


def _levels(arrays: Arrays, spec: ClusterSpec) -> list[ClusterLevel]:
    """Return the levels of which these are the arrays."""
    return [ClusterLevel(*(arrays[f"{name}_{i}"].numpy() for name in ClusterLevel._fields)) for i in range(spec.levels)]


def _check(arrays: Arrays, store: PackedGraphs, spec: ClusterSpec) -> None:
    """Raise a ``ValueError`` or ``KeyError`` if these cannot be the clusters of the graphs."""
    node_ptr = store.node_ptr.cpu()
    for level in _levels(arrays, spec):
        _check_level(level, node_ptr, spec.vectors)
        node_ptr = torch.from_numpy(level.node_ptr)


def _check_level(level: ClusterLevel, below: torch.Tensor, vectors: int) -> None:
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
