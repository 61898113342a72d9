"""The receptive fields of PATCHY-SAN: the nodes of each graph in an order, and the nearest nodes of each.

The order of nodes is that of betweenness, the largest first, and then of colors of refinement (1-WL) that depend on the
labels and attributes of nodes and on the graph alone. The field of a node has the nodes nearest to it; those at the
same distance are in this order. Nodes that agree in both have equal labels and attributes, so that it makes no
difference which of them comes first in a field. If two nodes agree in both, their fields decide, and only nodes with
the same labels and attributes in their fields are in the order of their numbers. What is read is therefore the same in
every numbering of the nodes.
"""

import numpy as np
import torch

from sopool.data.analysis.graph_hashes import STEP, mixed, node_hashes
from sopool.data.analysis.shortest_paths import ShortestPaths, shortest_paths
from sopool.data.analysis.simple_graphs import SimpleGraphs, simple_graphs
from sopool.data.graphs import NODE_FIELDS, PackedGraphs, take_segments

TOGETHER = 2**13
"""The number of nodes and directed edges of graphs that are processed at a time, unless a single graph has more."""
CELLS = 2**22
"""The number of pairs of nodes that are compared at a time."""
STEPS = 1e9 / np.pi
"""How finely betweenness is distinguished, as a share of all pairs. Sums of fractions, known up to rounding, are hardly
ever halfway between two steps, since these are irrational."""


def receptive_fields(store: PackedGraphs, size: int) -> np.ndarray:
    """Return the fields of all nodes, those of each graph in the order of its nodes, int32 ``[N, size]``.

    Row r of a graph is the field of the node that comes r-th: first the node itself, then those nearest to it, numbered
    from 0 within the graph, and -1 where the graph has no more that can be reached. Edges count in both directions.
    The fields of a smaller size are the first columns.

    Args:
        store: The graphs, on a CPU.
        size: The number of nodes in a field.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.receptive_fields import receptive_fields
        >>> receptive_fields(pack([Graph(3, [(0, 1), (1, 2)])]), size=3).tolist()  # the node in the middle is first
        [[1, 0, 2], [0, 1, 2], [2, 1, 0]]
    """
    order = torch.from_numpy(np.argsort(store.sizes.numpy(), kind="stable"))  # graphs of similar sizes together
    nodes = take_segments(store.node_ptr, order)[1].numpy()
    colours = node_hashes(store, [name for name in NODE_FIELDS if getattr(store, name) is not None])[nodes]
    fields = np.full((len(nodes), size), -1, np.int32)
    first = 0
    for block in simple_graphs(store[order], TOGETHER):
        last = first + len(block.degrees)
        fields[nodes[first:last]] = _fields_of(block, colours[first:last], size)
        first = last
    return fields


def _fields_of(block: SimpleGraphs, colours: np.ndarray, size: int) -> np.ndarray:
    """Return the fields of some graphs ``[n, size]``, those of each in the order of its nodes."""
    owner = block.owner
    found = shortest_paths(block.matrix, block.ptr)
    pairs = np.diff(block.ptr)[owner].astype(np.float64) ** 2
    falling = -np.rint(found.betweenness / pairs * STEPS)
    order = np.lexsort((colours, falling, owner))
    unlike = np.zeros(len(order), bool)
    for key in (owner, falling, colours):
        unlike[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(unlike)
    fields = _nearest(block, found, ranks, size)
    content = np.zeros(len(order), np.uint64)
    with np.errstate(over="ignore"):
        for column in fields.T:
            there = column >= 0
            seen = colours[np.where(there, block.ptr[owner] + column, 0)]
            content = mixed(content * STEP + np.where(there, seen, 0).astype(np.uint64))
    ordered: np.ndarray = fields[np.lexsort((content, ranks))]
    return ordered


def _nearest(block: SimpleGraphs, found: ShortestPaths, ranks: np.ndarray, size: int) -> np.ndarray:
    """Return the nodes nearest to each, by distance, rank and number, ``[n, size]``, -1 where there are no more."""
    nodes, most = found.distances.shape
    fields = np.full((nodes, size), -1, np.int64)
    place = np.arange(most)
    start = block.ptr[block.owner]
    width = max(1, CELLS // max(1, most))
    for first in range(0, nodes, width):
        rows = slice(first, first + width)
        far = found.distances[rows].astype(np.int64)
        others = np.minimum(start[rows, None] + place, nodes - 1)
        keys = np.where(far < 0, np.iinfo(np.int64).max, (far * nodes + ranks[others]) * most + place)
        kept = min(size, most)
        nearest = np.argpartition(keys, kept - 1, axis=1)[:, :kept] if kept else np.empty((len(keys), 0), np.int64)
        own = np.take_along_axis(keys, nearest, 1)
        by_key = np.argsort(own, axis=1)
        nearest = np.take_along_axis(nearest, by_key, 1)
        missing = np.take_along_axis(far, nearest, 1) < 0
        fields[rows, :kept] = np.where(missing, -1, nearest)
    return fields
