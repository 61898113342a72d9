"""Count the pairs of nodes of each graph by their distance and by what their two nodes are."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from sopool.data.analysis.simple_graphs import graphs_at_once, simple_graphs
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError
from sopool.ops.message_passing.distances import count_distances, find_distances

AT_ONCE = 2**22
"""The number of pairs that are counted together, which bounds the memory, unless one graph has more."""
MOST_PAIRS = 2**28
"""The number of pairs of all graphs above which pairs are not counted by their nodes, because it takes minutes."""


class _Part(NamedTuple):
    """Some graphs as simple graphs, with the edges of all of them."""

    first: int
    ptr: np.ndarray
    edges: torch.Tensor


def count_pairs_at_distances(store: PackedGraphs, distances: int) -> np.ndarray:
    """Return the number of ordered pairs of nodes at distances 1, 2, ..., ``distances``, int64 ``[G, distances]``.

    Edges count in both directions. The time is that of a breadth-first search from each node.

    Args:
        store: The graphs.
        distances: The largest distance, at least 1.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.pair_counts import count_pairs_at_distances
        >>> count_pairs_at_distances(pack([Graph(3, [(0, 1), (1, 2)])]), 2).tolist()
        [[4, 2]]
    """
    found = np.zeros((len(store), _checked(distances)), np.int64)
    for part in _parts(store.to("cpu")):
        totals = count_distances(part.edges, int(part.ptr[-1]), distances).numpy()
        sums = np.concatenate([np.zeros((1, distances), np.int64), totals.cumsum(0)])
        found[part.first : part.first + len(part.ptr) - 1] = sums[part.ptr[1:]] - sums[part.ptr[:-1]]
    return found


def count_pairs(store: PackedGraphs, codes: np.ndarray, distances: int) -> Any:
    """Count the ordered pairs of nodes with each (code, code, distance), for all distances from 1 to ``distances``.

    Edges count in both directions. The memory is that of some graphs at a time, or of n^2 pairs of a larger graph.

    Args:
        store: The graphs.
        codes: What each node is, numbered from 0, ``[N]``.
        distances: The largest distance, at least 1.

    Returns:
        A sparse matrix ``[G, F]`` of float64 with a column for each combination that occurs.

    Examples:
        >>> import numpy as np
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.pair_counts import count_pairs
        >>> path = pack([Graph(3, [(0, 1), (1, 2)])])
        >>> count_pairs(path, np.array([0, 1, 0]), 2).toarray().tolist()  # codes 0 and 0 at 2, 0 and 1, 1 and 0 at 1
        [[2.0, 2.0, 2.0]]
    """
    from scipy.sparse import csr_array

    _checked(distances)
    if too_many_pairs(store):
        raise DataError(f"{store.name} has more than {MOST_PAIRS:,} pairs of nodes, too many to count by their nodes.")
    kinds = int(codes.max(initial=0)) + 1
    codes = codes.astype(np.int64)
    graphs = [np.zeros(0, np.int64)]
    keys = [np.zeros(0, np.int64)]
    numbers = [np.zeros(0, np.int64)]
    for part in _parts(store.to("cpu")):
        nodes = int(part.ptr[-1])
        found = find_distances(part.edges, nodes, distances)
        counts = found.counts.numpy()
        start = int(store.node_ptr[part.first])
        own = codes[start : start + nodes]
        owner = np.repeat(np.arange(len(part.ptr) - 1), np.diff(part.ptr))
        width = kinds * distances
        first = ((owner * kinds + own) * width)[:, None] + np.arange(distances)
        every = np.repeat(first.ravel(), counts.ravel()) + own[found.nodes.numpy()] * distances
        key, number = _count(every, (len(part.ptr) - 1) * kinds * width)
        graphs.append(part.first + key // (kinds * width))
        keys.append(key % (kinds * width))
        numbers.append(number)
    names, columns = np.unique(np.concatenate(keys), return_inverse=True)
    rows = np.concatenate(graphs)
    return csr_array((np.concatenate(numbers).astype(np.float64), (rows, columns)), shape=(len(store), len(names)))


def too_many_pairs(store: PackedGraphs) -> bool:
    """Return whether there may be more than ``MOST_PAIRS`` pairs of nodes."""
    return int((store.sizes * (store.sizes - 1)).sum()) > MOST_PAIRS


def _checked(distances: int) -> int:
    if distances < 1:
        raise SettingError(f"distances={distances}, expected the largest distance of two nodes, at least 1.")
    return distances


def _parts(store: PackedGraphs) -> Iterator[_Part]:
    """Yield all graphs in order, so that their pairs are limited."""
    for block in simple_graphs(store):
        for some in graphs_at_once(np.diff(block.ptr) ** 2, AT_ONCE):
            ptr = block.ptr[some.start : some.stop + 1]
            rows = block.matrix[ptr[0] : ptr[-1]].tocoo()
            edges = np.stack([rows.row.astype(np.int64), rows.col - ptr[0]])
            yield _Part(block.first + some.start, ptr - ptr[0], torch.from_numpy(edges))


def _count(keys: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys below ``limit`` that occur, sorted, and how often each does."""
    if limit > 4 * len(keys) + 1024:
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys, minlength=limit)
    there = np.flatnonzero(counts)
    return there, counts[there]
