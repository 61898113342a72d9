"""Synthetic graphs to try poolings on: with classes, and with numbers to predict.

The classes of :func:`make_agreement` can be distinguished only by second-order statistics of the node features. Each
node has two features, a and b, both +1 or -1, and in every graph half of the a and half of the b are +1. Sums,
means, maxima and all other statistics of a single feature are therefore the same for all graphs of a size. The classes
differ in how often a and b are equal: at three of four nodes, or at one of four. The sum of a_i b_i over the nodes,
an entry of H^T H, measures this.

The classes of :func:`make_distant` differ in the distance of two marked nodes, and those of :func:`make_rings` look the
same to every message-passing network.
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


def make_distant(graphs: int = 200, distance: int = 10, seed: int = 0) -> PackedGraphs:
    """Generate a balanced data set whose classes differ in the distance of two nodes.

    Each graph is a ring of 3 to 4 times ``distance`` nodes. Two of them have the label 1, all others 0. They are
    ``distance`` steps apart in the class ``near``, and one step more in the class ``far``. Networks with fewer than
    half as many layers see no node that both reach, so that a sum, or any other readout of single nodes, gives the same
    for both classes.

    Args:
        graphs: The number of graphs, at least 2. Default: 200.
        distance: The distance in the class ``near``, at least 2. Default: 10.
        seed: Random seed. Default: 0.

    Examples:
        >>> from sopool.data import make_distant
        >>> graphs = make_distant(graphs=20, distance=4)
        >>> len(graphs), graphs.classes, int(graphs.sizes.min()) >= 12
        (20, ('far', 'near'), True)
    """
    if graphs < 2 or distance < 2:
        raise SettingError(f"graphs={graphs}, distance={distance}: expected at least 2 graphs and distance 2.")
    random = np.random.default_rng(seed)
    near = random.permutation(np.arange(graphs) % 2 == 0)
    return pack([_marked_ring(random, distance + (not one), distance) for one in near], name="distant")


def make_rings(graphs: int = 200, most_rings: int = 4, seed: int = 0) -> PackedGraphs:
    """Generate a balanced data set whose classes message passing cannot distinguish.

    A graph of the class ``several`` consists of 2 to ``most_rings`` rings of 3, 4 or 5 nodes each, all of the same
    size. One of the class ``one`` is a single ring with as many nodes in all. Every node of a ring also has a neighbor
    of its own, and nodes have no labels, so color refinement gives all nodes of the rings one color and all others
    another. Only the class ``one`` has nodes that are five steps apart.

    Args:
        graphs: The number of graphs, at least 2. Default: 200.
        most_rings: The largest number of rings of a graph, at least 2. Default: 4.
        seed: Random seed. Default: 0.

    Examples:
        >>> from sopool.data import make_rings
        >>> graphs = make_rings(graphs=20)
        >>> len(graphs), graphs.classes, int(graphs.sizes.min()) >= 12
        (20, ('one', 'several'), True)
    """
    if graphs < 2 or most_rings < 2:
        raise SettingError(f"graphs={graphs}, most_rings={most_rings}: expected at least 2 graphs and 2 rings.")
    random = np.random.default_rng(seed)
    several = random.permutation(np.arange(graphs) % 2 == 0)
    return pack([_rings(random, bool(one), most_rings) for one in several], name="rings")


def _marked_ring(random: np.random.Generator, apart: int, distance: int) -> Graph:
    nodes = int(random.integers(3 * distance, 4 * distance + 1))
    labels = np.zeros(nodes, dtype=np.int64)
    first = int(random.integers(nodes))
    labels[[first, (first + apart) % nodes]] = 1
    return Graph(nodes, _both_ways(_ring(nodes)), "near" if apart == distance else "far", labels.tolist())


def _rings(random: np.random.Generator, several: bool, most_rings: int) -> Graph:
    rings = int(random.integers(2, most_rings + 1))
    size = int(random.integers(3, 6))
    starts = range(0, rings * size, size) if several else [0]
    inner = rings * size
    parts = [start + _ring(size if several else inner) for start in starts]
    leaves = np.stack([np.arange(inner), inner + np.arange(inner)], axis=1)
    return Graph(2 * inner, _both_ways(np.concatenate([*parts, leaves])), "several" if several else "one")


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
    first = random.choice(nodes, nodes // 4, replace=False)
    chords = np.stack([first, (first + random.integers(2, nodes - 1, len(first))) % nodes], axis=1)
    return _both_ways(np.concatenate([_ring(nodes), chords]))


def _ring(nodes: int) -> np.ndarray:
    """Return the edges of a ring in one direction, as ``[E, 2]``."""
    return np.stack([np.arange(nodes), np.roll(np.arange(nodes), -1)], axis=1)


def _both_ways(edges: np.ndarray) -> np.ndarray:
    return np.concatenate([edges, edges[:, ::-1]])
