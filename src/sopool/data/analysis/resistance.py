r"""Effective resistances: how far apart two nodes are if every edge is a wire of conductance equal to its weight.

.. math:: R_{ij} = L^+_{ii} + L^+_{jj} - 2 L^+_{ij}

with the pseudoinverse of the Laplacian L. More and shorter paths make it smaller, so it is at most the distance, and
equal to it in trees.
"""

import numpy as np

from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.graphs import PackedGraphs

BINS = 64
"""The number of bins of a histogram."""
SMALLEST, LARGEST = 0.01, 100.0
"""The resistances where bins start and end, on a logarithmic scale."""
MOST_NODES = 2000
"""The largest number of nodes of a component whose resistances are computed."""


def resistances(weights: np.ndarray) -> np.ndarray:
    """Return the effective resistance between any two nodes of a connected graph ``[n, n]``.

    Args:
        weights: The symmetric matrix of the weights of edges ``[n, n]``, at least 0.

    Examples:
        >>> import numpy as np
        >>> from sopool.data.analysis.resistance import resistances
        >>> resistances(np.ones((3, 3)) - np.eye(3)).round(3)  # a triangle
        array([[0.   , 0.667, 0.667],
               [0.667, 0.   , 0.667],
               [0.667, 0.667, 0.   ]])
    """
    # The constant that makes the Laplacian invertible cancels in the differences.
    inverse = np.linalg.inv(np.diag(weights.sum(1)) - weights + 1 / len(weights))
    own = inverse.diagonal()
    found: np.ndarray = own[:, None] + own - 2 * inverse
    return found


def resistance_histograms(store: PackedGraphs) -> np.ndarray:
    """Return how many pairs of nodes of each graph have an effective resistance in each bin, float64 ``[G, 64]``.

    These are the features of graphs by Verma and Zhang ("Hunt For The Unique, Stable, Sparse And Fast Feature Learning
    On Graphs", NeurIPS 2017), with bins of equal ratios from 0.01 to 100; the first and last bin have what lies
    beyond. Pairs of nodes that are not connected, and components of more than 2,000 nodes, do not count.

    Args:
        store: The graphs, on a CPU.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.resistance import resistance_histograms
        >>> path = Graph(3, [(0, 1), (1, 2)])
        >>> counts = resistance_histograms(pack([path]))[0]
        >>> counts.nonzero()[0], counts[counts > 0]  # two pairs of resistance 1, one of resistance 2
        (array([32, 36]), array([2., 1.]))
    """
    from scipy.sparse.csgraph import connected_components

    # A little lower than round numbers, which are frequent: rounding must not move them to another bin.
    edges = np.geomspace(SMALLEST, LARGEST, BINS + 1)[1:-1] * (1 - 1e-6)
    counts = np.zeros((len(store), BINS))
    for block in simple_graphs(store):
        _, component = connected_components(block.matrix, directed=False)
        order = np.argsort(component, kind="stable")
        owner = block.owner + block.first
        for nodes in np.split(order, np.cumsum(np.bincount(component))[:-1]):
            if 1 < len(nodes) <= MOST_NODES:
                found = resistances(block.matrix[nodes][:, nodes].toarray().astype(np.float64))
                places = np.searchsorted(edges, found[np.triu_indices(len(nodes), 1)], side="right")
                counts[owner[nodes[0]]] += np.bincount(places, minlength=BINS)
    return counts
