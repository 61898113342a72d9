"""Counts of small subgraphs as loops compiled by Numba.

Nodes are numbered so that those of a graph lie side by side, sorted by degree. Then each node has at most sqrt(2 m)
neighbors with a larger number, in a graph with m edges.
"""

import numpy as np

from sopool.ops.numba.loops import compiled


@compiled
def count_cliques(ptr: np.ndarray, nodes: np.ndarray, four: bool, per_edge: np.ndarray, per_node: np.ndarray) -> None:
    """Count the triangles of each edge ``[E]`` and, if wanted, the cliques of four whose first node is each ``[N]``.

    The neighbors of node u with larger numbers are ``nodes[ptr[u]:ptr[u + 1]]``, sorted. The subgraph of these
    neighbors is kept as rows of bits, so that the common neighbors of two nodes are counted 64 at a time.
    """
    count = len(ptr) - 1
    widest = 0
    for u in range(count):
        widest = max(widest, ptr[u + 1] - ptr[u])
    place = np.full(count, -1, np.int64)
    common = np.empty(widest, np.int64)
    bits = np.empty((widest if four else 0, (widest + 63) // 64), np.uint64)
    for u in range(count):
        start = ptr[u]
        width = ptr[u + 1] - start
        if width < 2:
            continue
        words = (width + 63) // 64
        for i in range(width):
            place[nodes[start + i]] = i
        cliques = 0
        for i in range(width - 1, -1, -1):  # so that the rows of all larger neighbors are complete
            v = nodes[start + i]
            own = 0
            for edge in range(ptr[v], ptr[v + 1]):
                j = place[nodes[edge]]
                if j >= 0:
                    common[own] = j
                    own += 1
                    per_edge[edge] += 1
                    per_edge[start + j] += 1
            per_edge[start + i] += own
            if four:
                cliques += _join(bits[:, :words], i, common[:own])
        per_node[u] = cliques
        for i in range(width):
            place[nodes[start + i]] = -1


@compiled
def _join(bits: np.ndarray, i: int, neighbors: np.ndarray) -> int:
    """Set the bits of row i, and return the number of edges between its neighbors, whose rows are complete."""
    bits[i] = np.uint64(0)
    for j in neighbors:
        bits[i, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    edges = 0
    for j in neighbors:
        for word in range(j >> 6, bits.shape[1]):
            edges += int(_ones(bits[i, word] & bits[j, word]))
    return edges


@compiled
def _ones(x: np.uint64) -> np.uint64:
    """Return the number of ones among 64 bits; the compiler recognizes this pattern."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def count_squares(ptr: np.ndarray, nodes: np.ndarray, per_node: np.ndarray) -> None:
    """Count the cycles of length four of which each node is the last ``[N]``.

    All neighbors of node u are ``nodes[ptr[u]:ptr[u + 1]]``, sorted. A cycle consists of two paths from its last node
    over two smaller nodes to a third one.
    """
    paths = np.zeros(len(ptr) - 1, np.int64)
    for u in range(len(ptr) - 1):
        cycles = 0
        for a in range(ptr[u], ptr[u + 1]):
            v = nodes[a]
            if v >= u:
                break
            for b in range(ptr[v], ptr[v + 1]):
                w = nodes[b]
                if w >= u:
                    break
                cycles += paths[w]
                paths[w] += 1
        per_node[u] = cycles
        for a in range(ptr[u], ptr[u + 1]):
            v = nodes[a]
            if v >= u:
                break
            for b in range(ptr[v], ptr[v + 1]):
                w = nodes[b]
                if w >= u:
                    break
                paths[w] = 0
