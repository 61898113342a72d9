"""What DCNN sees of graphs: the labels that a diffusion finds (Atwood and Towsley, NeurIPS 2016)."""

from typing import Any

import numpy as np

from sopool.data.analysis.diffusion import visits
from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.features.encoders import has_node_labels
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.registry import fixed


@fixed(
    "dcnn-features",
    sees="the labels of nodes, else their degrees, that a diffusion of up to 1, 3 or 5 steps finds",
    learner="logistic",
    settings=[{"hops": 3}, {"hops": 1}, {"hops": 5}],
    paper="Atwood and Towsley, 2016",
    cost="h E",
)
def diffusion(store: PackedGraphs, hops: int) -> Any:
    r"""Return the mean over all nodes of what they see after each number of steps, sparse ``[G, (hops + 1) labels]``.

    A diffusion-convolutional neural network for graphs is
    :math:`\mathrm{softmax}(\tanh(W \odot Z) \, U)` with learned W and U and

    .. math:: Z_h = \tfrac{1}{n} 1^T P^h X, \quad P_{ij} = A_{ij} / (d_j + 1),

    where X has the labels of nodes, one-hot, and d their degrees. The mean commutes with W, so that Z is fixed. This is
    Z, of which a linear model learns.

    Args:
        store: The graphs.
        hops: The largest number of steps h.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.diffusion import diffusion
        >>> path = Graph(3, [(0, 1), (1, 2)], node_labels=["N", "C", "C"])
        >>> diffusion(pack([path]), hops=1).toarray().round(2)  # of the columns C and N: after 0 steps, after 1 step
        array([[0.67, 0.33, 0.39, 0.17]])
    """
    from scipy.sparse import csr_array, hstack

    store = store.to("cpu")
    shares = visits(store, hops)
    degrees = np.concatenate([np.zeros(0, np.int64), *(block.degrees for block in simple_graphs(store))])
    values = store.node_labels.numpy() if has_node_labels(store) else degrees  # type: ignore[union-attr]
    kinds, codes = np.unique(values, return_inverse=True)
    owner = np.repeat(np.arange(len(store)), store.sizes.numpy())
    shape = (len(store), len(kinds))
    return hstack([csr_array((row, (owner, codes)), shape=shape) for row in shares.T], format="csr")
