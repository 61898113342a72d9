"""The graphlet kernel (Shervashidze et al., "Efficient graphlet kernels for large graph comparison", AISTATS 2009)."""

from typing import Any

import numpy as np

from sopool.data.analysis.graphlets import count_graphlets, graph_classes, sample_graphlets
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.registry import fixed

SAMPLES = 1000
"""The number of graphlets of each graph that are sampled."""
STRENGTHS = (1.0, 10.0, 100.0, 1e3, 1e4)
"""Values of C for cosines that are almost 1. On thousands of graphs, larger ones take hours."""


@fixed(
    "gk",
    sees="the frequencies of induced subgraphs on 3 or 4 nodes",
    settings=[{"size": 3}, {"size": 4}],
    strengths=STRENGTHS,
    normalize="cosine",
    paper="Shervashidze et al., 2009",
    cost="E^1.5",
)
def graphlets(store: PackedGraphs, size: int = 3) -> np.ndarray:
    r"""Return the frequencies of the induced subgraphs on ``size`` nodes, by isomorphism class.

    With :math:`c_i(G)` the number of sets of k nodes of G whose induced subgraph is in class i,

    .. math:: \phi_i(G) = c_i(G) / \textstyle\binom{n}{k}.

    Classes of graphs that are not connected count, too: without them, the kernel is little better than the majority
    class on MUTAG. Frequencies of two graphs are almost parallel, so an SVM on cosines needs large values of C. They
    hide the size of a graph, and node labels are not used. A graph with fewer than k nodes is filled up with isolated
    nodes. Counts are exact.

    Args:
        store: The graphs.
        size: The number of nodes of a graphlet, 3 or 4. Default: 3.

    Returns:
        Dense ``[G, 4]`` for size 3, ``[G, 11]`` for size 4.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.graphlets import graphlets
        >>> graphlets(pack([Graph(4, [(0, 1), (1, 2)])]), size=3).tolist()
        [[0.25, 0.5, 0.25, 0.0]]
    """
    counts = count_graphlets(store, size)
    frequencies: np.ndarray = counts / counts.sum(1, keepdims=True)
    return frequencies


@fixed(
    "gk-sampled",
    sees=f"the frequencies of induced subgraphs on 7 nodes in a sample of {SAMPLES:,}",
    settings=[{"size": 7}],
    strengths=STRENGTHS,
    normalize="cosine",
    paper="Shervashidze et al., 2009; Yanardag and Vishwanathan, 2015",
    cost="samples G",
)
def sampled_graphlets(store: PackedGraphs, size: int = 7, samples: int = SAMPLES, seed: int = 0) -> Any:
    """Return the frequencies of the classes of sampled induced subgraphs on ``size`` nodes.

    This is :func:`graphlets` for sizes that cannot be counted; on social networks larger graphlets say more. All graphs
    are sampled with the same random numbers.

    Args:
        store: The graphs.
        size: The number of nodes of a graphlet, at most 7. Default: 7.
        samples: The number of graphlets of each graph. Default: 1000.
        seed: The random seed of the sample.

    Returns:
        Sparse ``[G, 1044]`` for size 7.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.experiments.systems.fixed.graphlets import sampled_graphlets
        >>> sampled_graphlets(load("MUTAG"), samples=10).shape
        (188, 1044)
    """
    return frequencies_of(sample_graphlets(store, size, samples, seed), len(graph_classes(size).smallest))


def frequencies_of(codes: np.ndarray, kinds: int) -> Any:
    """Return the frequency of each code among those of each graph: ``[G, S]`` -> sparse ``[G, kinds]``."""
    from scipy.sparse import coo_array

    graphs, samples = codes.shape
    rows = np.repeat(np.arange(graphs), samples)
    shape = (graphs, kinds)
    found = coo_array((np.full(codes.size, 1.0), (rows, codes.ravel())), shape=shape).tocsr()
    found.data /= samples  # after the sum, which is exact
    return found
