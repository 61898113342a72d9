"""Coarser graphs by Kron reduction, and effective resistances."""

import networkx as nx
import numpy as np
import pytest

from sopool.data import load
from sopool.data.analysis import kron
from sopool.data.analysis.kron import coarsen
from sopool.data.analysis.resistance import BINS, resistance_histograms, resistances
from sopool.data.pack import Graph, pack

GRAPHS = {
    "cycle": nx.cycle_graph(7),
    "even cycle": nx.cycle_graph(8),
    "clique": nx.complete_graph(6),
    "grid": nx.grid_2d_graph(4, 5),
    "petersen": nx.petersen_graph(),
    "star": nx.star_graph(7),
    "caterpillar": nx.path_graph(9, nx.Graph([(3, 20), (4, 21), (4, 22)])),
    "random": nx.gnp_random_graph(15, 0.4, seed=2),
    "parts": nx.disjoint_union(nx.disjoint_union(nx.path_graph(5), nx.cycle_graph(3)), nx.empty_graph(2)),
    "nothing": nx.empty_graph(0),
}


def graph_of(found, order=None, label=lambda node: 0):
    place = {node: i if order is None else int(order[i]) for i, node in enumerate(found)}
    labels = [label(node) for node, _ in sorted(place.items(), key=lambda item: item[1])]
    edges = [(place[a], place[b]) for a, b in found.edges]
    return Graph(len(found), edges + [(b, a) for a, b in edges], node_labels=labels)


def matrices(level):
    """The weights between the nodes of each coarser graph."""
    for graph, size in enumerate(np.diff(level.node_ptr)):
        weights = np.zeros((size, size))
        here = slice(level.edge_ptr[graph], level.edge_ptr[graph + 1])
        source, target = level.edge_index[:, here]
        weights[target, source] = level.weights[here]
        yield weights


def spectrum(weights):
    return np.linalg.eigvalsh(np.diag(weights.sum(1)) - weights)


def test_kept_nodes_remain_as_far_apart():
    """Before edges are left out."""
    weights = nx.to_numpy_array(nx.lollipop_graph(4, 5))
    kept = np.arange(9) % 3 == 0
    reduced = kron._reduced(weights, kept)
    np.testing.assert_allclose(resistances(reduced), resistances(weights)[np.ix_(kept, kept)], atol=1e-12)


def test_resistances_are_those_of_the_pseudoinverse():
    random = np.random.default_rng(0).random((8, 8))
    weights = np.triu(random, 1) + np.triu(random, 1).T
    inverse = np.linalg.pinv(np.diag(weights.sum(1)) - weights)
    own = inverse.diagonal()
    np.testing.assert_allclose(resistances(weights), own[:, None] + own - 2 * inverse, atol=1e-12)


def test_nodes_are_kept_by_the_sign_of_the_top_eigenvector():
    """Where it is unique, and up to its own sign."""
    laplacian = nx.laplacian_matrix(GRAPHS["random"]).toarray().astype(float)
    values, vectors = np.linalg.eigh(laplacian)
    assert values[-1] - values[-2] > 1e-3
    (level,) = coarsen(pack([graph_of(GRAPHS["random"])]), 1)
    positive = set(np.flatnonzero(vectors[:, -1] >= 0))
    assert set(level.kept) in (positive, set(range(15)) - positive)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_order_of_nodes_makes_no_difference(name):
    """Nor the other graphs of the store, also where eigenvalues are repeated."""
    found = GRAPHS[name]
    label = dict(zip(found, np.random.default_rng(3).integers(0, 2, len(found)).tolist(), strict=True)).get
    for labelled in (label, lambda node: 0):
        first = graph_of(found, label=labelled)
        want = [spectrum(next(matrices(level))) for level in coarsen(pack([first]), 2)]
        others = [graph_of(found, np.random.default_rng(seed).permutation(len(found)), labelled) for seed in range(3)]
        for level, expected in zip(coarsen(pack([graph_of(GRAPHS["grid"]), first, *others]), 2), want, strict=True):
            for weights in list(matrices(level))[1:]:
                assert (weights == weights.T).all()
                np.testing.assert_allclose(spectrum(weights), expected, atol=1e-9)


def test_every_component_remains():
    store = pack([graph_of(GRAPHS["parts"]), graph_of(GRAPHS["caterpillar"])])
    for level in coarsen(store, 2):
        parts, one = (nx.from_numpy_array(weights) for weights in matrices(level))
        assert nx.number_connected_components(parts) == 4
        assert nx.is_connected(one)
    assert len(one) < 5


def test_the_mean_degree_hardly_grows():
    """It grows where edges are equal to the last one that remains."""
    store = load("MUTAG")
    nodes, edges = store.num_nodes, store.num_edges
    for level in coarsen(store, 2):
        assert 0.3 < len(level.kept) / nodes < 0.6
        assert len(level.weights) / len(level.kept) < 1.15 * edges / nodes
        assert (level.weights > 0).all()
        nodes, edges = len(level.kept), len(level.weights)


def test_the_most_likely_edges_remain():
    """The edge between two cliques is in every spanning tree."""
    barbell = nx.to_numpy_array(nx.barbell_graph(5, 0)) * 0.1
    assert np.argwhere(kron._sparser(barbell, 1)).tolist() == [[4, 5], [5, 4]]
    assert (kron._sparser(barbell, 2) == barbell).all()  # the others are equal
    assert (kron._sparser(barbell, 21) == barbell).all()


def test_loops_and_repeated_edges_do_not_count():
    plain = Graph(4, [(0, 1), (1, 2), (2, 3)], node_labels=[0, 1, 1, 2])
    more = Graph(4, [(0, 1), (0, 1), (1, 1), (1, 2), (2, 3)], node_labels=[0, 1, 1, 2])
    one, other = (next(matrices(coarsen(pack([graph]), 1)[0])) for graph in (plain, more))
    assert len(one) == 2
    np.testing.assert_allclose(one, other)


def test_histograms_have_every_connected_pair():
    """In the same bins whatever the order, although many resistances are equal to round numbers."""
    counts = resistance_histograms(pack(list(map(graph_of, GRAPHS.values()))))
    sizes = [[len(part) for part in nx.connected_components(graph)] for graph in GRAPHS.values()]
    assert counts.shape == (len(GRAPHS), BINS)
    assert counts.sum(1).tolist() == [sum(n * (n - 1) // 2 for n in parts) for parts in sizes]
    orders = [np.random.default_rng(5).permutation(len(graph)) for graph in GRAPHS.values()]
    others = pack([graph_of(*pair) for pair in zip(GRAPHS.values(), orders, strict=True)])
    np.testing.assert_array_equal(resistance_histograms(others), counts)


def test_large_components_have_no_histogram(monkeypatch):
    monkeypatch.setattr("sopool.data.analysis.resistance.MOST_NODES", 6)
    counts = resistance_histograms(pack(list(map(graph_of, (GRAPHS["cycle"], GRAPHS["clique"])))))
    assert counts.sum(1).tolist() == [0, 15]
