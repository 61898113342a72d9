"""Breadth-first searches from each node of graphs, and lists of pairs, as loops compiled by Numba."""

import numpy as np

from sopool.ops.numba.loops import compiled


@compiled
def count_pairs(ptr: np.ndarray, nodes: np.ndarray, counts: np.ndarray) -> None:
    """Write the number of nodes at each distance from 1 from each node to ``counts`` ``[N, K]``.

    The edges from node i lead to the nodes ``nodes[ptr[i]:ptr[i + 1]]``.
    """
    count = len(counts)
    last = np.full(count, -1, np.int64)  # the last search that met each node
    queue = np.empty(count, np.int64)
    for i in range(count):
        last[i] = i
        queue[0] = i
        start = 0
        end = 1
        for k in range(counts.shape[1]):
            stop = end
            for at in range(start, stop):
                for edge in range(ptr[queue[at]], ptr[queue[at] + 1]):
                    j = nodes[edge]
                    if last[j] != i:
                        last[j] = i
                        queue[end] = j
                        end += 1
            counts[i, k] = end - stop
            start = stop
            if start == end:
                break


@compiled
def list_pairs(ptr: np.ndarray, nodes: np.ndarray, distances: int, out: np.ndarray) -> None:
    """Write the nodes at distances from 1 to ``distances`` from each node to ``out`` ``[P]``, as many as were counted.

    They are sorted by first node, distance and number.
    """
    count = len(ptr) - 1
    last = np.full(count, -1, np.int64)
    queue = np.empty(count, np.int64)
    place = 0
    for i in range(count):
        last[i] = i
        queue[0] = i
        start = 0
        end = 1
        for _ in range(distances):
            stop = end
            for at in range(start, stop):
                for edge in range(ptr[queue[at]], ptr[queue[at] + 1]):
                    j = nodes[edge]
                    if last[j] != i:
                        last[j] = i
                        queue[end] = j
                        end += 1
            out[place : place + end - stop] = np.sort(queue[stop:end])
            place += end - stop
            start = stop
            if start == end:
                break


@compiled
def transpose_lists(nodes: np.ndarray, owners: np.ndarray, ptr: np.ndarray, out: np.ndarray) -> None:
    """Write the lists that contain each node to ``out`` ``[P]``, those of node j from ``ptr[j]`` on, in their order."""
    place = ptr.copy()
    for at in range(len(nodes)):
        node = nodes[at]
        out[place[node]] = owners[at]
        place[node] += 1
