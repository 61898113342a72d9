"""Graphs whose classes no first-order statistic of their nodes can tell apart, and every second-order one can.

Each node has two numbers, a and b, both +1 or -1, and in every graph half of the a and half of the b are +1. So sums,
means, maxima, and whatever else is computed from one number at a time, are the same for all graphs of a size. The
classes differ in how often a and b are equal: at three nodes of four, or at one of four. That is what sum_i a_i b_i
counts, an entry of H^T H.
"""

import numpy as np

from sopool.data.graphs import PackedGraphs
from sopool.data.pack import Graph, pack
from sopool.errors import SettingError


def make_agreement(graphs: int = 200, most_nodes: int = 32, seed: int = 0) -> PackedGraphs:
    """As many graphs of the class ``agree`` as of ``differ``, of 8 to ``most_nodes`` nodes, in a random order.

    The numbers a and b are the nodes' two attributes. The edges, a ring with some chords, tell nothing.
    """
    if graphs < 2 or most_nodes < 8:
        raise SettingError(f"graphs={graphs}, most_nodes={most_nodes}: at least 2 and 8 are needed.")
    random = np.random.default_rng(seed)
    agree = random.permutation(np.arange(graphs) % 2 == 0)
    return pack([_graph(random, bool(one), most_nodes) for one in agree], name="agreement")


def _graph(random: np.random.Generator, agree: bool, most_nodes: int) -> Graph:
    nodes = 8 * int(random.integers(1, most_nodes // 8 + 1))
    a = np.repeat([1.0, -1.0], nodes // 2)
    equal = np.arange(nodes // 2) < nodes // 8 * (3 if agree else 1)  # of those with a = 1; likewise with a = -1
    b = a * np.where(np.concatenate([equal, equal]), 1.0, -1.0)
    shuffled = random.permutation(np.stack([a, b], axis=1))
    return Graph(nodes, _edges(random, nodes), "agree" if agree else "differ", node_attributes=shuffled)


def _edges(random: np.random.Generator, nodes: int) -> np.ndarray:
    """A ring, and a chord for every fourth node; in both directions [e, 2]."""
    ring = np.stack([np.arange(nodes), np.roll(np.arange(nodes), -1)], axis=1)
    first = random.choice(nodes, nodes // 4, replace=False)
    chords = np.stack([first, (first + random.integers(2, nodes - 1, len(first))) % nodes], axis=1)
    edges = np.concatenate([ring, chords])
    return np.concatenate([edges, edges[:, ::-1]])
