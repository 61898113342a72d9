"""Small graphs of every awkward kind, as NetworkX graphs as well, for features of whole graphs."""

from dataclasses import replace

import networkx as nx
import numpy as np
import torch

from sopool.data.pack import Graph, pack

ODD = pack(
    [
        Graph(0),
        Graph(1),
        Graph(1, [(0, 0)]),
        Graph(2),
        Graph(2, [(0, 1), (0, 1), (1, 0)]),
        Graph(3, [(0, 1)]),
        Graph(5),
        Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (2, 2)]),
        Graph(0),
        Graph(7, [(0, i) for i in range(1, 7)] + [(1, 2)]),
    ],
    name="odd",
)
"""No nodes, a single one, self-loops, repeated edges, one direction only, isolated nodes."""
NONE = ODD[[]]
"""No graphs at all."""


def random_graphs(count, seed=0, labels=3, largest=9):
    """Random graphs, given by edges in one direction, with node labels."""
    random = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        nodes = int(random.integers(1, largest + 1))
        dense = random.random()
        edges = [(a, b) for a in range(nodes) for b in range(a) if random.random() < dense]
        graphs.append(Graph(nodes, edges, node_labels=random.integers(0, labels, nodes).tolist()))
    return pack(graphs, name="random")


def as_simple(store):
    """The graphs of a store as simple undirected NetworkX graphs."""
    found = []
    for one in store:
        graph = nx.Graph()
        graph.add_nodes_from(range(one.num_nodes))
        graph.add_edges_from((a, b) for a, b in one.edge_index.T.tolist() if a != b)
        found.append(graph)
    return found


def permuted(store, seed=0):
    """The same graphs with the nodes of each in another order."""
    random = np.random.default_rng(seed)
    order = [first + random.permutation(last - first) for first, last in bounds(store)]  # new place -> old node
    edges = store.edge_index.clone()
    for (first, _), places, start, stop in zip(
        bounds(store), order, store.edge_ptr[:-1].tolist(), store.edge_ptr[1:].tolist(), strict=True
    ):
        new = torch.from_numpy(np.argsort(places - first))
        edges[:, start:stop] = new[edges[:, start:stop].long()].int()
    nodes = torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *order]))
    labels = None if store.node_labels is None else store.node_labels[nodes]
    return replace(store, edge_index=edges, node_labels=labels)


def bounds(store):
    """The first node of each graph and the first of the next."""
    return list(zip(store.node_ptr[:-1].tolist(), store.node_ptr[1:].tolist(), strict=True))


def dense(features):
    """Features of graphs as a dense matrix."""
    return features if isinstance(features, np.ndarray) else features.toarray()
