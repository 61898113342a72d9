"""Distances of all pairs of nodes, and how many shortest paths lead through each node (betweenness)."""

from typing import Any, NamedTuple

import numpy as np

TOGETHER = 2**22
"""The number of pairs of nodes that are searched at a time."""


class ShortestPaths(NamedTuple):
    """The shortest paths of some graphs with n nodes together, at most m in one of them."""

    distances: np.ndarray
    """The distance of each node to each node of its graph, numbered from 0, ``[n, m]``, int32; -1 if there is no path,
    or no such node."""
    betweenness: np.ndarray
    """The sum over all pairs of other nodes of the share of shortest paths through each node, both directions of a
    pair counted, ``[n]``."""


def shortest_paths(matrix: Any, ptr: np.ndarray) -> ShortestPaths:
    """Return distances and betweenness by a breadth-first search from each node and back (Brandes, 2001).

    All searches advance together, in products of sparse matrices, with n E steps in all for a graph of E edges.

    Args:
        matrix: The symmetric adjacency matrix of the graphs, as :func:`simple_graphs` yields it, ``[n, n]``.
        ptr: The offset of each graph's first node ``[B + 1]``, from 0.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.shortest_paths import shortest_paths
        >>> from sopool.data.analysis.simple_graphs import simple_graphs
        >>> (block,) = simple_graphs(pack([Graph(3, [(0, 1), (1, 2)])]))
        >>> found = shortest_paths(block.matrix, block.ptr)
        >>> found.distances.tolist(), found.betweenness.tolist()
        ([[0, 1, 2], [1, 0, 1], [2, 1, 0]], [0.0, 2.0, 0.0])
    """
    sizes = np.diff(ptr)
    place = np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes)
    distances = np.full((len(place), int(sizes.max(initial=0))), -1, np.int32)
    betweenness = np.zeros(len(place))
    edges = matrix.astype(np.float64)
    width = max(1, TOGETHER // max(1, len(place)))
    for first in range(0, distances.shape[1], width):
        part = distances[:, first : first + width]
        sources = np.flatnonzero((place >= first) & (place < first + width))
        betweenness += _searched(edges, sources, place[sources] - first, part)
    return ShortestPaths(distances, betweenness)


def _searched(edges: Any, sources: np.ndarray, columns: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Write the distances of some searches, one in each column of each graph, and return their betweenness ``[n]``."""
    from scipy.sparse import csr_array

    shape = distances.shape
    counts = np.zeros(shape)
    levels: list[tuple[np.ndarray, np.ndarray]] = []
    at = sources, columns
    paths = np.ones(len(sources))
    while len(paths):
        distances[at] = len(levels)
        counts[at] = paths
        levels.append(at)
        reached = (edges @ csr_array((paths, at), shape=shape)).tocoo()
        new = distances[reached.row, reached.col] < 0
        at = reached.row[new], reached.col[new]
        paths = reached.data[new]
    through = np.zeros(shape)
    for depth in range(len(levels) - 1, 0, -1):
        at = levels[depth]
        back = (edges @ csr_array(((1 + through[at]) / counts[at], at), shape=shape)).tocoo()
        before = distances[back.row, back.col] == depth - 1
        to = back.row[before], back.col[before]
        through[to] += counts[to] * back.data[before]
    through[sources, columns] = 0
    total: np.ndarray = through.sum(1)
    return total
