"""Synthetic graphs to try poolings on: with classes, and with numbers to predict.

The classes of :func:`make_agreement` can be distinguished only by second-order statistics of the node features. Each
node has two features, a and b, both +1 or -1, and in every graph half of the a and half of the b are +1. Sums,
means, maxima and all other statistics of a single feature are therefore the same for all graphs of a size. The classes
differ in how often a and b are equal: at three of four nodes, or at one of four. The sum of a_i b_i over the nodes,
an entry of H^T H, measures this.
"""

import numpy as np

from sopool.data.graphs import PackedGraphs
from sopool.data.pack import Graph, pack
from sopool.errors import SettingError


def make_agreement(graphs: int = 200, most_nodes: int = 32, seed: int = 0) -> PackedGraphs:
    """Generate a balanced data set whose classes only second-order pooling can distinguish.

    The two node attributes are equal at three of four nodes in the class ``agree``, and at one of four in the class
    ``differ``. The edges, a ring with some chords, carry no information about the class.

    Args:
        graphs: The number of graphs, at least 2. Default: 200.
        most_nodes: The largest number of nodes of a graph, at least 8. Default: 32.
        seed: Random seed. Default: 0.

    Examples:
        >>> from sopool.data import make_agreement
        >>> graphs = make_agreement(graphs=20)
        >>> len(graphs), graphs.classes, graphs.node_attributes.shape[1]
        (20, ('agree', 'differ'), 2)
    """
    _check_size(graphs, most_nodes)
    random = np.random.default_rng(seed)
    agree = random.permutation(np.arange(graphs) % 2 == 0)
    return pack([_graph(random, bool(one), most_nodes) for one in agree], name="agreement")


def make_measurements(graphs: int = 200, most_nodes: int = 32, seed: int = 0) -> PackedGraphs:
    """Generate a data set for regression, with two numbers to predict and no noise.

    Nodes have one attribute between 0 and 1, and edges form a ring with some chords. The target ``edges`` is the number
    of undirected edges plus the mean attribute, and ``spread`` the variance of the attribute in the graph.

    Args:
        graphs: The number of graphs, at least 2. Default: 200.
        most_nodes: The largest number of nodes of a graph, at least 8. Default: 32.
        seed: Random seed. Default: 0.

    Examples:
        >>> from sopool.data import make_measurements
        >>> graphs = make_measurements(graphs=20)
        >>> len(graphs), graphs.target_names, graphs.node_attributes.shape[1]
        (20, ('edges', 'spread'), 1)
    """
    _check_size(graphs, most_nodes)
    random = np.random.default_rng(seed)
    return pack((_measured(random, most_nodes) for _ in range(graphs)), "measurements", ("edges", "spread"))


def _measured(random: np.random.Generator, most_nodes: int) -> Graph:
    nodes = int(random.integers(8, most_nodes + 1))
    attributes = random.random((nodes, 1), dtype=np.float32)
    edges = _edges(random, nodes)
    targets = [len(edges) / 2 + attributes.mean(dtype=np.float64), attributes.var(dtype=np.float64)]
    return Graph(nodes, edges, targets, node_attributes=attributes)


def _check_size(graphs: int, most_nodes: int) -> None:
    if graphs < 2 or most_nodes < 8:
        raise SettingError(f"graphs={graphs}, most_nodes={most_nodes}: expected at least 2 graphs and 8 nodes.")


def _graph(random: np.random.Generator, agree: bool, most_nodes: int) -> Graph:
    nodes = 8 * int(random.integers(1, most_nodes // 8 + 1))
    a = np.repeat([1.0, -1.0], nodes // 2)
    equal = np.arange(nodes // 2) < nodes // 8 * (3 if agree else 1)  # among nodes with a = 1, and also with a = -1
    b = a * np.where(np.concatenate([equal, equal]), 1.0, -1.0)
    shuffled = random.permutation(np.stack([a, b], axis=1))
    return Graph(nodes, _edges(random, nodes), "agree" if agree else "differ", node_attributes=shuffled)


def _edges(random: np.random.Generator, nodes: int) -> np.ndarray:
    """Return a ring with a chord for every fourth node, in both directions, as ``[E, 2]``."""
    ring = np.stack([np.arange(nodes), np.roll(np.arange(nodes), -1)], axis=1)
    first = random.choice(nodes, nodes // 4, replace=False)
    chords = np.stack([first, (first + random.integers(2, nodes - 1, len(first))) % nodes], axis=1)
    edges = np.concatenate([ring, chords])
    return np.concatenate([edges, edges[:, ::-1]])
