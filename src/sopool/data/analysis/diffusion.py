"""How often a diffusion that starts from any node of a graph is at each of its nodes."""

import numpy as np

from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.graphs import PackedGraphs


def visits(store: PackedGraphs, hops: int) -> np.ndarray:
    r"""Return the share of each node after 0, 1, ..., ``hops`` steps of a diffusion, ``[N, hops + 1]``.

    .. math:: \tfrac{1}{n} 1^T P^h, \quad P_{ij} = A_{ij} / (d_j + 1)

    for a graph of n nodes with degrees d, taken as undirected, without self-loops and repeated edges.

    Args:
        store: The graphs, on a CPU.
        hops: The largest number of steps.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.diffusion import visits
        >>> visits(pack([Graph(3, [(0, 1), (1, 2)])]), hops=1).round(2)
        array([[0.33, 0.17],
               [0.33, 0.22],
               [0.33, 0.17]])
    """
    blocks = [np.zeros((0, hops + 1))]
    for block in simple_graphs(store):
        shares = [np.ones(len(block.degrees))]
        for _ in range(hops):
            shares.append(block.matrix @ shares[-1] / (block.degrees + 1))
        blocks.append(np.stack(shares, 1))
    sizes = store.sizes.numpy()
    found: np.ndarray = np.concatenate(blocks) / np.repeat(sizes, sizes)[:, None]
    return found
