"""Keep the pairs of nodes at each distance in the user's cache folder."""

from functools import partial

import torch

from sopool._files.bounds import first_outside
from sopool.data.analysis.distances import (
    MOST_PAIRS,
    PairLists,
    find_counts,
    is_undirected,
    pair_offsets,
    refuse_fewer,
    warn_of_fewer,
)
from sopool.data.graphs import PackedGraphs
from sopool.data.sources.array_cache import Arrays, kept_arrays
from sopool.errors import DataError

METHOD = 1
"""Part of every file name: increase it when the pairs of a graph or the file format change."""


def pairs_of(store: PackedGraphs, distances: int, most_pairs: int = MOST_PAIRS) -> PairLists:
    """Return the pairs of nodes of graphs, from the cache if possible; a damaged cache file is replaced.

    Args:
        store: The graphs, on a CPU.
        distances: The largest distance K, at least 1.
        most_pairs: The largest number of pairs of all graphs together, see
            :func:`~sopool.data.analysis.distances.pair_lists`. Default: ``MOST_PAIRS``.
    """
    lists = _kept_or_found(store, distances, most_pairs)
    warn_of_fewer(store, distances, lists.distances, most_pairs)
    return lists


def all_pairs_of(store: PackedGraphs, distances: int, most_pairs: int = MOST_PAIRS) -> PairLists:
    """Return the pairs of nodes of graphs, from the cache if possible; raise a ``SettingError`` if there are too many.

    Args:
        store: The graphs, on a CPU.
        distances: The largest distance K, at least 1.
        most_pairs: The largest number of pairs of all graphs together. Default: ``MOST_PAIRS``.
    """
    lists = _kept_or_found(store, distances, most_pairs)
    refuse_fewer(store, distances, lists.distances, most_pairs)
    return lists


def cache_key(distances: int, most_pairs: int = MOST_PAIRS) -> str:
    """Return the part of a cache file's name that says which pairs it holds."""
    return f"{distances}-{most_pairs}-{METHOD}"


def _kept_or_found(store: PackedGraphs, distances: int, most_pairs: int) -> PairLists:
    """Return the pairs in the cache, or find them up to the distance that ``most_pairs`` allows."""

    def find() -> Arrays:
        counts, nodes, _ = find_counts(store, distances, most_pairs)
        return {"counts": counts, "nodes": nodes}

    check = partial(_check, store=store, distances=distances)
    arrays = kept_arrays(store, cache_key(distances, most_pairs), "pairs", find, check)
    return PairLists.of(store, arrays["counts"], arrays["nodes"], is_undirected(store))


def _check(arrays: Arrays, store: PackedGraphs, distances: int) -> None:
    """Raise a ``DataError`` or ``KeyError`` if these cannot be the pairs of the graphs."""
    counts, nodes = (arrays[name] for name in ("counts", "nodes"))
    if counts.dtype != torch.int32 or counts.ndim != 2 or not 1 <= counts.shape[1] <= distances:
        raise DataError("counts has a wrong type or shape.")
    others = (store.sizes - 1).repeat_interleave(store.sizes)
    if len(counts) != len(others) or bool((counts < 0).any()) or bool((counts.sum(1) > others).any()):
        raise DataError("counts are not those of these graphs.")
    ptr = pair_offsets(store, counts)
    if nodes.dtype != torch.int32 or nodes.shape != (int(ptr[-1]),):
        raise DataError("nodes has a wrong type or shape.")
    if first_outside(nodes, ptr, store.sizes) is not None:
        raise DataError("nodes must be in their graphs.")
