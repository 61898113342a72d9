"""Counts of pairs of nodes by distance, among them the shortest-path kernel."""

from typing import Any

import numpy as np

from sopool.data.analysis.pair_counts import MOST_PAIRS, count_pairs, count_pairs_at_distances, too_many_pairs
from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.registry import fixed
from sopool.experiments.systems.views import counts

FARTHEST = 64
"""The largest distance of the shortest-path kernel; pairs farther apart are left out."""


def with_too_many_pairs(store: PackedGraphs) -> str | None:
    """Refuse graphs with more pairs of nodes than can be counted in minutes."""
    return f"more than {MOST_PAIRS:,} pairs of nodes" if too_many_pairs(store) else None


@fixed(
    "sp",
    sees="the pairs of nodes by their labels and distance (shortest paths)",
    settings=[{"log": False}, {"log": True}],
    normalize="cosine",
    paper="Borgwardt and Kriegel, 2005",
    cost="N E / G + G^2",
    refuses=with_too_many_pairs,
)
def shortest_paths(store: PackedGraphs, log: bool = False) -> Any:
    """Return the number of pairs of nodes with each (label, label, distance).

    This is the shortest-path kernel (Borgwardt and Kriegel, ICDM 2005) with equality of labels and of lengths. Pairs
    are ordered, those that are not connected do not count, nor do those more than 64 steps apart. Counts grow with the
    square of the size, so a kernel wants to be normalized.

    Args:
        store: The graphs.
        log: Whether to return log(1 + count). Default: False.

    Returns:
        Sparse ``[G, F]``.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.pairs import shortest_paths
        >>> shortest_paths(pack([Graph(3, [(0, 1), (1, 2)])])).toarray().tolist()
        [[4.0, 2.0]]
    """
    return _scaled(count_pairs(store, _labels(store), FARTHEST), log)


@fixed(
    "pairs",
    sees="the nodes by label (and degree), and the pairs of them at each distance",
    settings=[
        {"distances": distances, "degrees": degrees, "log": log}
        for distances in (3, 6)
        for degrees in (True, False)
        for log in (True, False)
    ],
    paper="-",
    cost="N E / G + G^2",
    refuses=with_too_many_pairs,
)
def pairs(store: PackedGraphs, distances: int = 6, degrees: bool = True, log: bool = True) -> Any:
    """Return the number of nodes of each kind, and of pairs of nodes with each (kind, kind, distance).

    A kind is a label, or a label and a degree. On sums of these counts a linear model has the second order across
    nodes that a pooling of pairs has with one-hot features. See also the number of pairs at each distance alone
    (:func:`pair_numbers`): what it reaches is not due to the nodes.

    Args:
        store: The graphs.
        distances: The largest distance. Default: 6.
        degrees: Whether the kind of a node is its label and degree, else its label. Default: True.
        log: Whether to return log(1 + count). Default: True.

    Returns:
        Sparse ``[G, F]``.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.pairs import pairs
        >>> path = pack([Graph(3, [(0, 1), (1, 2)])])
        >>> pairs(path, distances=2, log=False).toarray().tolist()  # 2 ends, 1 middle; then pairs
        [[2.0, 1.0, 2.0, 2.0, 2.0]]
    """
    from scipy.sparse import hstack

    kinds = _labels(store)
    if degrees:
        own = [block.degrees for block in simple_graphs(store.to("cpu"))]
        degree = np.concatenate([np.zeros(0, np.int64), *own])
        kinds = np.unique(kinds * (degree.max(initial=0) + 1) + degree, return_inverse=True)[1]
    return _scaled(hstack([counts(store, kinds), count_pairs(store, kinds, distances)], format="csr"), log)


@fixed(
    "pair-numbers",
    sees="the numbers of nodes and of pairs at each distance",
    learner="logistic",
    settings=[{"log": True}, {"log": False}],
    paper="-",
    cost="N E / G",
)
def pair_numbers(store: PackedGraphs, distances: int = 6, log: bool = True) -> np.ndarray:
    """Return the number of nodes and the numbers of pairs at distances 1, 2, ..., without regard to their labels.

    This is a control: counts of pairs by label that reach no more than these say nothing of the labels.

    Args:
        store: The graphs.
        distances: The largest distance. Default: 6.
        log: Whether to return log(1 + count). Default: True.

    Returns:
        Dense ``[G, 1 + distances]``.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.pairs import pair_numbers
        >>> pair_numbers(pack([Graph(3, [(0, 1), (1, 2)])]), distances=2, log=False).tolist()
        [[3.0, 4.0, 2.0]]
    """
    found = np.column_stack([store.sizes.numpy(), count_pairs_at_distances(store, distances)]).astype(np.float64)
    return np.log1p(found) if log else found


def _labels(store: PackedGraphs) -> np.ndarray:
    if store.node_labels is None:
        return np.zeros(store.num_nodes, np.int64)
    return store.node_labels.cpu().numpy().astype(np.int64)


def _scaled(matrix: Any, log: bool) -> Any:
    return matrix.log1p() if log else matrix
