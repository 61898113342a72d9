"""Representations of graphs: against direct definitions and other libraries, and what all of them must do."""

from collections import Counter
from functools import partial
from itertools import product

import networkx as nx
import numpy as np
import pytest

from sopool.data import load
from sopool.data.analysis.refinement import refine
from sopool.data.formats.molecules import smiles_to_store
from sopool.data.pack import Graph, pack
from sopool.errors import DataError, SettingError
from sopool.experiments.systems import SYSTEMS, FixedSystem
from sopool.experiments.systems.fixed.anonymous_walks import walk_documents, walk_frequencies
from sopool.experiments.systems.fixed.deep_kernels import deep_graphlets, deep_paths, deep_subtrees
from sopool.experiments.systems.fixed.diffusion import diffusion
from sopool.experiments.systems.fixed.graphlets import graphlets, sampled_graphlets
from sopool.experiments.systems.fixed.pairs import pair_numbers, pairs, shortest_paths
from sopool.experiments.systems.fixed.random_walks import random_walks, rule_of_thumb
from sopool.experiments.systems.fixed.statistics import statistics
from sopool.experiments.systems.fixed.subtrees import labelled_subtrees, optimal_assignment
from sopool.experiments.systems.fixed.wl import subtree_counts
from tests.helpers.odd_graphs import NONE, ODD, as_simple, dense, permuted, random_graphs
from tests.helpers.quick_systems import SMALL, quick

STORE = random_graphs(12)


def gram(features):
    x = dense(features)
    return x @ x.T


def representations(chosen=lambda system: True):
    """Every way in which systems that take any graphs represent them."""
    cases = {}
    for system in SYSTEMS.values():
        if isinstance(system, FixedSystem) and system.refuses(STORE) is None and chosen(system):
            for setting in system.settings:
                given = system.representation(setting)
                name = f"{system.name} {'-'.join(map(str, given.values()))}"
                cases[name] = pytest.param(quick(system), given, id=name)
    return pytest.mark.parametrize(("system", "given"), list(cases.values()))


def represented(system, store, given, seed=0):
    return system.represented(store, given, seed).found


@representations()
def test_odd_graphs_have_features(system, given):
    for store in (ODD, NONE, ODD[[0]], ODD[[1]]):
        found = represented(system, store, given)
        assert found.shape[0] == len(store)
        assert np.isfinite(dense(found)).all()


@representations(lambda system: not system.transductive)
def test_neither_the_other_graphs_nor_their_order_matter(system, given):
    order = [7, 3, 0, 3, 11]
    whole = gram(represented(system, STORE, given))
    part = gram(represented(system, STORE[order], given))
    np.testing.assert_allclose(part, whole[np.ix_(order, order)], rtol=1e-9, atol=1e-12)


@representations(lambda system: system.name not in SMALL)
def test_the_order_of_nodes_does_not_matter(system, given):
    """Except for the samples of a seed, and for what is embedded with other random numbers."""
    one, other = (gram(represented(system, store, given)) for store in (STORE, permuted(STORE)))
    if system.name.startswith("dgk"):
        assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.9
    else:
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@representations()
def test_the_seed_is_all_the_chance_there_is(system, given):
    np.random.seed(0)
    one = dense(represented(system, STORE, given, seed=1))
    np.random.seed(1)
    np.testing.assert_array_equal(one, dense(represented(system, STORE, given, seed=1)))
    if system.chance and system.learner != "forest":
        assert not np.array_equal(one, dense(represented(system, STORE, given, seed=2)))


def test_graphlets_are_frequencies():
    square = pack([Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)]), Graph(4), Graph(1)])
    assert graphlets(square, 3).tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    np.testing.assert_allclose(graphlets(STORE, 4).sum(1), 1)
    many = dense(sampled_graphlets(STORE, size=4, samples=3000))
    np.testing.assert_allclose(many, graphlets(STORE, 4), atol=0.05)
    assert dense(sampled_graphlets(STORE, samples=10)).sum() == pytest.approx(12)


def labels_of(store):
    """The labels of the nodes of each graph."""
    labels = np.zeros(store.num_nodes, int) if store.node_labels is None else store.node_labels.numpy()
    return np.split(labels, store.node_ptr[1:-1].tolist())


@pytest.mark.parametrize("store", [STORE, ODD], ids=["random", "odd"])
def test_optimal_assignment_is_a_sum_of_minima(store):
    for rounds in range(4):
        colors = refine(store, rounds, use_labels=False, initial=store.node_labels)
        histograms = [[Counter(part) for part in np.split(some, store.node_ptr[1:-1].tolist())] for some in colors]
        expected = np.zeros((len(store), len(store)))
        for (i, j), some in product(np.ndindex(*expected.shape), histograms):
            expected[i, j] += (some[i] & some[j]).total()
        found = optimal_assignment(store, rounds)
        assert set(found.data) <= {1.0}
        np.testing.assert_array_equal(gram(found), expected)


def product_kernel(one, two, labels, others, decay, matching):
    """1^T (I - decay A)^-1 1 of the direct product of two graphs, node by node."""
    nodes = list(product(one, two))
    weights = np.zeros((len(nodes), len(nodes)))
    same = np.array([labels[a] == others[b] for a, b in nodes], dtype=float)
    for (i, (a, b)), (j, (c, d)) in product(enumerate(nodes), enumerate(nodes)):
        weights[i, j] = one.has_edge(a, c) and two.has_edge(b, d) and same[i] and same[j]
    start = same if matching else np.ones(len(nodes))
    return start @ np.linalg.solve(np.eye(len(nodes)) - decay * weights, start) if nodes else 0.0


@pytest.mark.parametrize("matching", [False, True])
@pytest.mark.parametrize("store", [random_graphs(6, largest=5), ODD], ids=["random", "odd"])
def test_random_walks_are_those_of_the_product_graph(store, matching):
    graphs = as_simple(store)
    labels = labels_of(store)
    decay = 0.01
    found = gram(random_walks(store, decay, 7, matching))
    for (i, one), (j, two) in product(enumerate(graphs), enumerate(graphs)):
        expected = product_kernel(one, two, labels[i], labels[j], decay, matching)
        assert found[i, j] == pytest.approx(expected, rel=1e-6)


def test_the_decay_is_a_power_of_ten_below_the_inverse_squared_degree():
    stars = {degree: pack([Graph(degree + 1, [(0, i) for i in range(1, degree + 1)])]) for degree in (1, 3, 4, 10)}
    assert {degree: rule_of_thumb(store) for degree, store in stars.items()} == {1: 0.1, 3: 0.1, 4: 0.01, 10: 0.001}
    assert rule_of_thumb(NONE) == rule_of_thumb(ODD[[0, 1]]) == 0.1
    np.testing.assert_array_equal(gram(random_walks(stars[4])), gram(random_walks(stars[4], decay=0.01)))
    whole = gram(random_walks(STORE, decay=0.1))
    np.testing.assert_allclose(gram(random_walks(STORE[[4, 2]], decay=0.1)), whole[np.ix_([4, 2], [4, 2])])
    many = pack([Graph(5405, node_labels=list(range(5405)))])
    assert SYSTEMS["rw"].refuses(many) == "more than 5,404 node labels"
    few = pack([Graph(5404, [(0, 1)], node_labels=list(range(5404)))])
    assert SYSTEMS["rw"].refuses(few) is None
    assert random_walks(few).shape[0] == 1
    for decay in (0, -1, 2):
        with pytest.raises(SettingError, match="expected a weight above 0"):
            random_walks(STORE, decay)


def test_edge_labels_are_seen_by_the_labelled_kernel_only():
    def ring(labels):
        edges = [(i, (i + 1) % 4) for i in range(4)]
        return Graph(4, edges + [(b, a) for a, b in edges], edge_labels=[*labels, *labels])

    store = pack([ring([1, 1, 2, 2]), ring([1, 2, 1, 2]), ring([2, 1, 2, 1])])
    assert len(np.unique(gram(subtree_counts(store, 3)))) == 1
    found = gram(labelled_subtrees(store, 3))
    assert found[1, 1] == found[1, 2] > found[0, 1]
    assert SYSTEMS["wl-edge"].refuses(store) is None
    assert SYSTEMS["wl-edge"].refuses(STORE) == "needs edge labels"


def test_shortest_paths_are_those_of_networkx():
    counted = []
    for graph, labels in zip(as_simple(STORE), labels_of(STORE), strict=True):
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        counted.append(Counter((labels[a], labels[b], lengths[a][b]) for a in graph for b in lengths[a] if a != b))
    expected = [[sum(one[key] * two[key] for key in one) for two in counted] for one in counted]
    np.testing.assert_array_equal(gram(shortest_paths(STORE)), expected)
    logs = [[sum(np.log1p(one[key]) * np.log1p(two[key]) for key in one) for two in counted] for one in counted]
    np.testing.assert_allclose(gram(shortest_paths(STORE, log=True)), logs)


def test_pairs_of_labels_and_degrees():
    path = pack([Graph(4, [(0, 1), (1, 2), (2, 3)], node_labels=["a", "a", "b", "a"])])
    by_label = sorted(dense(pairs(path, distances=2, degrees=False, log=False))[0].tolist())
    assert by_label == [1, 1, 1, 2, 2, 2, 2, 3]  # b, a-b and b-a two steps apart; a-a, a-b and b-a beside, a-a; a
    by_both = dense(pairs(path, distances=1, log=False))[0]
    assert by_both.sum() == 4 + 6
    assert len(by_both) == 3 + 6  # a with 1 and 2, b with 2; a1a2 a2a1 a2b2 b2a2 b2a1 a1b2
    assert pair_numbers(path, distances=4, log=False).tolist() == [[4, 6, 4, 2, 0]]
    np.testing.assert_allclose(pair_numbers(path, 4), np.log1p([[4, 6, 4, 2, 0]]))
    assert "pairs of nodes" in SYSTEMS["pairs"].refuses(pack([Graph(20_000)]))


def test_anonymous_walks_are_frequencies():
    found = dense(walk_frequencies(ODD, steps=3, walks=40))
    edges = np.array([graph.number_of_edges() > 0 for graph in as_simple(ODD)])
    np.testing.assert_allclose(found.sum(1), edges)
    triangle = pack([Graph(3, [(0, 1), (1, 2), (2, 0)])])
    found = dense(walk_frequencies(triangle, steps=2, walks=20_000))[0]
    np.testing.assert_allclose(found, [0.5, 0.5], atol=0.02)  # back, or on to the third node


def rings_and_stars():
    """Twenty graphs of two kinds and sizes from 6 to 9."""
    graphs = []
    for nodes in list(range(6, 11)) * 2:
        graphs.append(Graph(nodes, [(i, (i + 1) % nodes) for i in range(nodes)]))
        graphs.append(Graph(nodes, [(0, i) for i in range(1, nodes)]))
    return pack(graphs)


@pytest.mark.parametrize(
    "represent",
    [deep_subtrees, deep_paths, partial(deep_graphlets, samples=20), partial(walk_documents, dimensions=16)],
    ids=["dgk-wl", "dgk-sp", "dgk-gk", "awe-dd"],
)
def test_embeddings_tell_rings_from_stars(represent):
    x = represent(rings_and_stars(), seed=0)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    near = x @ x.T
    same = np.add.outer(np.arange(20), np.arange(20)) % 2 == 0
    assert near[same].mean() > near[~same].mean() + 0.1
    np.fill_diagonal(near, -1)
    assert (near.argmax(1) % 2 == np.arange(20) % 2).all()


def test_statistics_are_sizes_degrees_and_labels():
    found = statistics(STORE)
    for row, graph, labels in zip(found, as_simple(STORE), labels_of(STORE), strict=True):
        nodes, edges = len(graph), graph.number_of_edges()
        np.testing.assert_allclose(row[:4], [nodes, edges, 2 * edges / nodes, nx.density(graph)])
        np.testing.assert_array_equal(row[4:36], np.bincount([d for _, d in graph.degree], minlength=32))
        np.testing.assert_array_equal(row[36:], np.bincount(labels, minlength=3))
    star = pack([Graph(41, [(0, i) for i in range(1, 41)])])
    assert statistics(star)[0, -1] == 1  # 40 neighbors


def test_diffusion_is_the_mean_of_powers_of_a_matrix():
    plain = pack([Graph(graph.num_nodes, graph.edge_index.T.tolist()) for graph in STORE])
    for store, labelled in ((STORE, True), (plain, False)):
        found = dense(diffusion(store, 3))
        graphs = as_simple(store)
        kinds = range(3) if labelled else sorted({degree for graph in graphs for _, degree in graph.degree})
        for row, graph, labels in zip(found, graphs, labels_of(STORE), strict=True):
            degrees = np.array([degree for _, degree in graph.degree])
            x = np.array([[value == kind for kind in kinds] for value in (labels if labelled else degrees)])
            step = nx.to_numpy_array(graph) / (degrees + 1)
            powers = [np.linalg.matrix_power(step, hops) @ x for hops in range(4)]
            np.testing.assert_allclose(row, np.concatenate([power.mean(0) for power in powers]), atol=1e-12)


def test_molecules():
    pytest.importorskip("rdkit")
    molecules, _ = smiles_to_store(["CCO", "c1ccccc1", "OCC"], descriptors=["morgan", "rdkit2d"])
    one = SYSTEMS["morgan-forest"].represented(molecules, {}).found
    assert one.shape == (3, 1024)
    np.testing.assert_array_equal(one[0], one[2])
    assert not np.array_equal(one[0], one[1])
    assert SYSTEMS["rdkit2d-boosting"].represented(molecules, {}).found.shape[1] > 150
    assert SYSTEMS["morgan-boosting"].refuses(molecules) is None
    assert "needs molecules read with descriptors=atom-pairs" in SYSTEMS["atom-pairs-forest"].refuses(molecules)
    with pytest.raises(DataError, match="no atom-pairs numbers"):
        SYSTEMS["atom-pairs-forest"].represented(molecules, {})


def for_grakel(store):
    """Graphs as GraKeL takes them: sets of edges and labels of nodes."""
    for graph, labels in zip(as_simple(store), labels_of(store), strict=True):
        edges = dict.fromkeys((pair for a, b in graph.edges for pair in ((a, b), (b, a))), 1)
        yield [edges, dict(enumerate(labels.tolist()))]


def test_the_kernels_are_those_of_grakel():
    """Optional: GraKeL has no wheels for every version of Python."""
    grakel = pytest.importorskip("grakel", reason="GraKeL is not installed")
    store = load("MUTAG")[:30]
    for rounds in (1, 3):
        expected = grakel.WeisfeilerLehmanOptimalAssignment(n_iter=rounds).fit_transform(for_grakel(store))
        np.testing.assert_array_equal(gram(optimal_assignment(store, rounds)), expected)
    expected = grakel.RandomWalkLabeled(lamda=0.01).fit_transform(for_grakel(store[:12]))
    # Its conjugate gradients stop early; a solution node by node agrees to 1e-6, see above.
    np.testing.assert_allclose(gram(random_walks(store[:12], 0.01, 8)), expected, rtol=1e-4)
