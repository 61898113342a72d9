"""Iterate over the graphs of a store as simple graphs: undirected, without self-loops and repeated edges."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sopool.data.edges import BLOCK
from sopool.data.graphs import PackedGraphs


class SimpleGraphs(NamedTuple):
    """Some consecutive graphs of a store, with n nodes together."""

    first: int
    """The number of the first graph in the store."""
    ptr: np.ndarray
    """The offset of each graph's first node, int64 ``[B + 1]``, from 0."""
    matrix: Any
    """The adjacency matrix, a SciPy ``csr_array`` of booleans ``[n, n]`` with sorted indices and an empty diagonal."""

    @property
    def graphs(self) -> int:
        """The number of graphs B."""
        return len(self.ptr) - 1

    @property
    def degrees(self) -> np.ndarray:
        """The number of neighbors of each node ``[n]``."""
        degrees: np.ndarray = np.diff(self.matrix.indptr).astype(np.int64)
        return degrees

    @property
    def owner(self) -> np.ndarray:
        """The graph of each node, numbered from 0 within the block, ``[n]``."""
        return np.repeat(np.arange(self.graphs), np.diff(self.ptr))


def simple_graphs(store: PackedGraphs, size: int = BLOCK) -> Iterator[SimpleGraphs]:
    """Yield all graphs in order, a few at a time.

    An edge counts in both directions, as often as it is given; self-loops are dropped.

    Args:
        store: The graphs, on a CPU.
        size: The largest number of nodes and directed edges that are yielded at once, which bounds the memory, unless
            a single graph has more.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.simple_graphs import simple_graphs
        >>> (block,) = simple_graphs(pack([Graph(2, [(0, 1), (0, 1), (1, 1)]), Graph(1)]))
        >>> block.matrix.nnz, block.degrees.tolist(), block.owner.tolist()
        (2, [1, 1, 0], [0, 0, 1])
    """
    from scipy.sparse import coo_array

    node_ptr = store.node_ptr.numpy()
    edge_ptr = store.edge_ptr.numpy()
    ends = node_ptr + edge_ptr
    first = 0
    while first < len(store):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + size, side="right")) - 1)
        ptr = node_ptr[first : last + 1] - node_ptr[first]
        shift = np.repeat(ptr[:-1], np.diff(edge_ptr[first : last + 1]))
        source, target = store.edge_index.numpy()[:, edge_ptr[first] : edge_ptr[last]] + shift
        proper = source != target
        edges = (source[proper], target[proper])
        matrix = coo_array((np.ones(len(edges[0]), bool), edges), shape=(int(ptr[-1]),) * 2).tocsr()
        matrix = (matrix + matrix.T).tocsr()
        matrix.sort_indices()
        yield SimpleGraphs(first, ptr, matrix)
        first = last


def segment_sums(values: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """Return the sum of the values of each segment; those of integers are exact."""
    totals = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
    sums: np.ndarray = totals[ptr[1:]] - totals[ptr[:-1]]
    return sums


def expand_ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return ``start, start + 1, ...`` of each range, so many as its count, one range after another."""
    ends = np.cumsum(counts)
    ranges: np.ndarray = np.repeat(starts - ends + counts, counts) + np.arange(int(ends[-1]) if len(ends) else 0)
    return ranges


def graphs_at_once(costs: np.ndarray, most: int) -> Iterator[slice]:
    """Yield slices of consecutive graphs whose costs are at most ``most`` together, or of one graph."""
    ends = np.concatenate([[0], np.cumsum(costs)])
    first = 0
    while first < len(costs):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + most, side="right")) - 1)
        yield slice(first, last)
        first = last
