"""Kernels from color refinement: optimal assignments, and the subtree kernel with edge labels."""

from typing import Any

import numpy as np

from sopool.data.analysis.refinement import refine
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.fixed.wl import ITERATIONS
from sopool.experiments.systems.registry import fixed
from sopool.experiments.systems.views import counts

ROUNDS = [{"iterations": iterations} for iterations in range(ITERATIONS + 1)]


@fixed(
    "wl-oa",
    sees=f"the colors of up to {ITERATIONS} rounds of refinement, of which nodes are matched (optimal assignment)",
    settings=ROUNDS,
    normalize="cosine",
    paper="Kriege et al., 2016",
    cost="h E + G^2",
)
def optimal_assignment(store: PackedGraphs, iterations: int = 3) -> Any:
    r"""Return features of the Weisfeiler-Lehman optimal assignment kernel (Kriege et al., NeurIPS 2016).

    With :math:`c_i(G)` the number of nodes of each color after i rounds of refinement, the kernel is

    .. math:: k_h(G, G') = \sum_{i=0}^{h} \sum_c \min(c_i(G)_c, c_i(G')_c).

    A minimum of counts is a scalar product of binary features: a color with t nodes has the features 1 to t. Node
    labels are the first colors; without them the first round gives the degrees. Repeated edges and self-loops count as
    they are given. The matrix has one entry per node and round. Many graphs share the colors of the first rounds, so
    the scalar products of all pairs of graphs take most of the time.

    Args:
        store: The graphs.
        iterations: The number of rounds h. Default: 3.

    Returns:
        Sparse ``[G, F]`` of zeros and ones.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.subtrees import optimal_assignment
        >>> x = optimal_assignment(pack([Graph(3), Graph(5)]), iterations=0)
        >>> (x @ x.T).toarray().tolist()
        [[3.0, 3.0], [3.0, 5.0]]
    """
    from scipy.sparse import csr_array, hstack

    parts = []
    for colors in refine(store, iterations, use_labels=False, initial=store.node_labels):
        counted = counts(store, colors)
        counted.sum_duplicates()
        number = counted.data.astype(np.int64)
        most = np.zeros(counted.shape[1], np.int64)
        np.maximum.at(most, counted.indices, number)
        starts = np.cumsum(most) - most
        ends = np.concatenate([[0], np.cumsum(number)])
        columns = np.arange(ends[-1]) + np.repeat(starts[counted.indices] - ends[:-1], number)
        shape = (len(store), int(most.sum()))
        parts.append(csr_array((np.ones(len(columns)), columns, ends[counted.indptr]), shape=shape))
    return hstack(parts, format="csr")


def without_edge_labels(store: PackedGraphs) -> str | None:
    """Refuse graphs without edge labels."""
    return "needs edge labels" if store.edge_labels is None else None


@fixed(
    "wl-edge",
    sees=f"the colors of up to {ITERATIONS} rounds of refinement by neighbors and edge labels",
    settings=ROUNDS,
    normalize="either",
    paper="Shervashidze et al., 2011",
    cost="h E log(E) + G^2",
    refuses=without_edge_labels,
)
def labelled_subtrees(store: PackedGraphs, iterations: int = 3) -> Any:
    """Return the numbers of nodes of each color, where colors are refined by neighbors and the labels of their edges.

    This is the subtree kernel of Shervashidze et al. (JMLR 2011) on edge-labelled graphs: a round pairs the color of
    each neighbor with the label of the edge to it. Without edge labels it is the kernel of the system ``wl``. For
    molecules it counts what Morgan fingerprints do before they are folded.

    Args:
        store: The graphs, with edge labels.
        iterations: The number of rounds. Default: 3.

    Returns:
        Sparse ``[G, F]``.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.experiments.systems.fixed.subtrees import labelled_subtrees
        >>> labelled_subtrees(load("MUTAG"), iterations=1).shape
        (188, 71)
    """
    from scipy.sparse import hstack

    colors = refine(store, iterations, use_labels=False, initial=store.node_labels, edge_labels=True)
    return hstack([counts(store, some) for some in colors], format="csr")
