"""Keep the pairs of nodes at each distance in the user's cache folder."""

from functools import partial
from pathlib import Path
from typing import BinaryIO

import torch

from sopool._files.bounds import first_outside
from sopool._files.sealed import read_sealed, write_sealed
from sopool.data.analysis.distances import (
    MOST_PAIRS,
    PairLists,
    find_lists,
    is_undirected,
    pair_offsets,
    refuse_fewer,
    warn_of_fewer,
)
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.data.sources.cache import entry, keep, kept
from sopool.errors import DataError

METHOD = 1
"""Part of every file name: increase it when the pairs of a graph or the file format change."""
MOST_BYTES = 2**33


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


def _kept_or_found(store: PackedGraphs, distances: int, most_pairs: int) -> PairLists:
    """Return the pairs in the cache, or find them up to the distance that ``most_pairs`` allows."""
    path = entry(store.name, f"{content_key(store)}-{distances}-{most_pairs}-{METHOD}", "pairs")
    lists = kept(path, partial(_load, store=store, distances=distances))
    if lists is None:
        lists = find_lists(store, distances, most_pairs)
        keep(path, f"the pairs of nodes of {store.name}", lists, _write)
    return lists


def _write(lists: PairLists, file: BinaryIO, name: str) -> None:
    write_sealed(file, {"counts": lists.counts, "nodes": lists.nodes}, {"entry": name})


def _load(path: Path, store: PackedGraphs, distances: int) -> PairLists:
    """Return the pairs in a file; raise a ``DataError`` if they cannot be those of the graphs."""
    _, found = read_sealed(path, MOST_BYTES, partial(_check_entry, name=path.name))
    try:
        counts, nodes = (found.arrays[name] for name in ("counts", "nodes"))
    except KeyError as error:
        raise DataError(f"the file does not hold valid pairs of nodes: {error} is missing.", path) from error
    if counts.dtype != torch.int32 or counts.ndim != 2 or not 1 <= counts.shape[1] <= distances:
        raise DataError("the file does not hold valid pairs of nodes: counts has a wrong type or shape.", path)
    others = (store.sizes - 1).repeat_interleave(store.sizes)
    if len(counts) != len(others) or bool((counts < 0).any()) or bool((counts.sum(1) > others).any()):
        raise DataError("the file does not hold valid pairs of nodes: counts are not those of these graphs.", path)
    ptr = pair_offsets(store, counts)
    if nodes.dtype != torch.int32 or nodes.shape != (int(ptr[-1]),):
        raise DataError("the file does not hold valid pairs of nodes: nodes has a wrong type or shape.", path)
    if first_outside(nodes, ptr, store.sizes) is not None:
        raise DataError("the file does not hold valid pairs of nodes: nodes must be in their graphs.", path)
    return PairLists(counts, nodes, ptr, is_undirected(store))


def _check_entry(header: dict[str, str], name: str) -> None:
    if header.get("entry") != name:
        raise DataError("the file holds the pairs of other graphs.")
