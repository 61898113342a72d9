"""Betweenness and receptive fields beside NetworkX and plain loops."""

import networkx as nx
import numpy as np
import pytest
import torch

from sopool.data.analysis import receptive_fields as module
from sopool.data.analysis import shortest_paths as searches
from sopool.data.analysis.graph_hashes import node_hashes
from sopool.data.analysis.receptive_fields import receptive_fields
from sopool.data.analysis.shortest_paths import shortest_paths
from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.pack import Graph, pack


def random_graph(number):
    """Some have no nodes, no edges, loops, repeated edges and several components."""
    random = np.random.default_rng(number)
    nodes = 0 if number % 9 == 8 else int(random.integers(1, 14))
    share = 0.0 if number % 7 == 6 else 0.25
    edges = [(i, j) for i in range(nodes) for j in range(nodes) if random.random() < share]
    return Graph(nodes, edges + edges[:1], node_labels=random.integers(0, 2, nodes).tolist())


GRAPHS = [random_graph(number) for number in range(30)]
REGULAR = [  # nothing but the fields tells their nodes apart: a hexagon beside two triangles, and a prism
    [(i, (i + 1) % 6) for i in range(6)] + [(6, 7), (7, 8), (8, 6), (9, 10), (10, 11), (11, 9)],
    [(i, (i + 1) % 3) for i in range(3)]
    + [(3 + i, 3 + (i + 1) % 3) for i in range(3)]
    + [(i, 3 + i) for i in range(3)],
]


def network(graph):
    found = nx.Graph()
    found.add_nodes_from(range(graph.num_nodes))
    found.add_edges_from((a, b) for a, b in graph.edges if a != b)
    return found


@pytest.mark.parametrize("together", [1, 2**22])
def test_shortest_paths_are_those_of_networkx(together, monkeypatch):
    """Also when a few searches are made at a time."""
    monkeypatch.setattr(searches, "TOGETHER", together)
    (block,) = simple_graphs(pack(GRAPHS))
    found = shortest_paths(block.matrix, block.ptr)
    for number, graph in enumerate(GRAPHS):
        rows = slice(block.ptr[number], block.ptr[number + 1])
        plain = network(graph)
        want = np.full((graph.num_nodes, found.distances.shape[1]), -1)
        for a, lengths in nx.all_pairs_shortest_path_length(plain):
            for b, length in lengths.items():
                want[a, b] = length
        np.testing.assert_array_equal(found.distances[rows], want)
        through = nx.betweenness_centrality(plain, normalized=False)
        np.testing.assert_allclose(found.betweenness[rows], [2 * through[i] for i in range(graph.num_nodes)], atol=1e-9)


def slow_fields(graph, hashes, size):
    """The sequence of nodes and their fields, by loops; numbers of nodes decide last."""
    plain = network(graph)
    through = nx.betweenness_centrality(plain, normalized=False)

    def rank(i):
        return -round(through[i], 6), int(hashes[i])

    fields = {}
    for i in plain:
        lengths = nx.single_source_shortest_path_length(plain, i)
        fields[i] = sorted(lengths, key=lambda j: (lengths[j], *rank(j), j))[:size]
    return {i: rank(i) for i in plain}, fields


@pytest.mark.parametrize("size", [1, 4, 20])
@pytest.mark.parametrize("cells", [1, 2**22])
def test_fields_are_those_of_plain_loops(size, cells, monkeypatch):
    monkeypatch.setattr(module, "CELLS", cells)
    monkeypatch.setattr(module, "TOGETHER", 30 if cells == 1 else 2**13)
    store = pack(GRAPHS)
    found = receptive_fields(store, size)
    np.testing.assert_array_equal(receptive_fields(store, 20)[:, :size], found)
    hashes = node_hashes(store, ["node_labels"])
    for number, graph in enumerate(GRAPHS):
        own = slice(*store.node_ptr[number : number + 2].tolist())
        ranks, fields = slow_fields(graph, hashes[own], size)
        rows = found[own].tolist()
        roots = [row[0] for row in rows]
        assert sorted(roots) == list(range(graph.num_nodes))
        assert [ranks[root] for root in roots] == sorted(ranks.values())
        assert rows == [fields[root] + [-1] * (size - len(fields[root])) for root in roots]


@pytest.mark.parametrize("edges", [*REGULAR, *(graph.edges for graph in GRAPHS[:8])])
def test_what_is_read_is_the_same_in_every_numbering(edges):
    """Where nodes cannot be told apart, they are alike, and so are those around them."""
    nodes = 1 + max((max(edge) for edge in edges), default=0)
    labels = [i % 2 for i in range(nodes)] if len(edges) % 2 else [0] * nodes
    read = set()
    for seed in range(5):
        place = np.random.default_rng(seed).permutation(nodes)  # where each node goes
        moved = np.array(labels)[np.argsort(place)]
        graph = Graph(nodes, [(int(place[a]), int(place[b])) for a, b in edges], node_labels=moved.tolist())
        store = pack([GRAPHS[0], graph])
        fields = receptive_fields(store, 5)[GRAPHS[0].num_nodes :]
        known = np.append(moved, -1)
        read.add(str(known[fields].tolist()))
    assert len(read) == 1


def test_no_graphs():
    assert receptive_fields(pack([Graph(0, [])]), 3).shape == (0, 3)
    (block,) = simple_graphs(pack([Graph(0, [])]))
    assert shortest_paths(block.matrix, block.ptr).distances.shape == (0, 0)
    assert torch.from_numpy(receptive_fields(pack([Graph(2, [])]), 3)).tolist() == [[0, -1, -1], [1, -1, -1]]
