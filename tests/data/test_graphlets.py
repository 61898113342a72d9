"""Graphlets: their classes, and their numbers against all subsets of nodes."""

from itertools import combinations, permutations
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from networkx.algorithms.isomorphism import is_isomorphic

from sopool.data import load
from sopool.data.analysis import graphlets, simple_graphs
from sopool.data.analysis.graphlets import (
    count_graphlets,
    graph_classes,
    neighboring_graphlets,
    sample_graphlets,
)
from sopool.data.pack import Graph, pack
from sopool.errors import DataError, SettingError
from sopool.ops.numba import dispatch
from tests.helpers.data_graphs import stores
from tests.helpers.odd_graphs import NONE, ODD, as_simple, permuted, random_graphs
from tests.helpers.shared import needs_data


@pytest.fixture(params=[True, False], ids=["loops", "arrays"])
def with_loops(request, monkeypatch):
    if request.param:
        pytest.importorskip("numba")
    monkeypatch.setattr(dispatch, "_installed", lambda: request.param)


def code_of(graph, nodes):
    return sum(graph.has_edge(a, b) << bit for bit, (a, b) in enumerate(combinations(nodes, 2)))


def by_subsets(store, size):
    """The number of graphlets of each class, one subset of nodes after the other."""
    classes = graph_classes(size)
    found = np.zeros((len(store), len(classes.smallest)), np.int64)
    for g, graph in enumerate(as_simple(store)):
        graph.add_nodes_from(range(size))
        for nodes in combinations(graph, size):
            found[g, classes.of[code_of(graph, nodes)]] += 1
    return found


@pytest.mark.parametrize(("size", "number"), [(1, 1), (2, 2), (3, 4), (4, 11), (5, 34), (6, 156), (7, 1044)])
def test_there_are_as_many_classes_as_graphs(size, number):
    """https://oeis.org/A000088"""
    classes = graph_classes(size)
    assert len(classes.smallest) == number
    np.testing.assert_array_equal(classes.of[classes.smallest], np.arange(number))
    np.testing.assert_array_equal(np.unique(classes.of), np.arange(number))


def test_the_classes_are_those_of_networkx():
    classes = graph_classes(4)
    pairs = list(combinations(range(4), 2))
    graphs = []
    for code in range(len(classes.of)):
        graphs.append(nx.Graph([pair for bit, pair in enumerate(pairs) if code >> bit & 1]))
        graphs[-1].add_nodes_from(range(4))
    for one in range(len(graphs)):
        for other in range(one):
            assert (classes.of[one] == classes.of[other]) == is_isomorphic(graphs[one], graphs[other])


@given(stores(min_size=0))
def test_the_counts_are_those_of_all_subsets(with_loops, store):
    for size in (3, 4):
        np.testing.assert_array_equal(count_graphlets(store, size), by_subsets(store, size))


@pytest.mark.parametrize("store", [ODD, NONE, random_graphs(30)], ids=["odd", "none", "random"])
def test_the_counts_of_larger_graphs(with_loops, store):
    for size in (3, 4):
        expected = by_subsets(store, size)
        for at_once in (1, 40, 2**22):
            with (
                patch.object(graphlets, "AT_ONCE", at_once),
                patch.object(graphlets, "simple_graphs", lambda store, size=at_once: blocks(store, size)),
            ):
                found = count_graphlets(store, size)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected)


blocks = simple_graphs.simple_graphs


def test_loops_and_arrays_count_the_same_in_dense_graphs():
    """With more neighbors than there are bits in a word."""
    pytest.importorskip("numba")
    graphs = [nx.gnp_random_graph(150, p, seed=1) for p in (0.05, 0.5, 0.95)] + [nx.complete_graph(140)]
    store = pack([Graph(len(one), list(one.edges)) for one in graphs])
    found = count_graphlets(store, 4)
    with patch.object(dispatch, "_installed", lambda: False):
        np.testing.assert_array_equal(count_graphlets(store, 4), found)
    assert found[3, -1] == 140 * 139 * 138 * 137 // 24
    for graph, row in zip(graphs, count_graphlets(store, 3), strict=True):
        assert row[-1] == sum(nx.triangles(graph).values()) // 3


@needs_data
def test_a_graph_of_mutag_and_its_image():
    store = load("MUTAG")
    for size in (3, 4):
        counts = count_graphlets(store[:12], size)
        np.testing.assert_array_equal(counts, by_subsets(store[:12], size))
        np.testing.assert_array_equal(count_graphlets(permuted(store), size), count_graphlets(store, size))


def test_each_graph_counts_for_itself():
    store = random_graphs(12)
    whole = count_graphlets(store, 4)
    sampled = sample_graphlets(store, 5, 20, seed=3)
    near = neighboring_graphlets(store, 5, 4, seed=3)
    order = [5, 0, 11, 5]
    np.testing.assert_array_equal(count_graphlets(store[order], 4), whole[order])
    np.testing.assert_array_equal(sample_graphlets(store[order], 5, 20, seed=3), sampled[order])
    np.testing.assert_array_equal(neighboring_graphlets(store[order], 5, 4, seed=3), near[order])
    with patch.object(graphlets, "AT_ONCE", 1):
        np.testing.assert_array_equal(sample_graphlets(store, 5, 20, seed=3), sampled)
    assert not np.array_equal(sample_graphlets(store, 5, 20, seed=4), sampled)


@pytest.mark.parametrize("size", [3, 4])
def test_a_sample_has_the_right_frequencies(size):
    store = random_graphs(10, seed=5)
    counts = count_graphlets(store, size)
    codes = sample_graphlets(store, size, 4000, seed=0)
    found = np.stack([(codes == one).mean(1) for one in range(counts.shape[1])], 1)
    np.testing.assert_allclose(found, counts / counts.sum(1, keepdims=True), atol=0.04)


def test_small_graphs_are_filled_up():
    """The only graphlet of a graph with few nodes is the graph itself."""
    for size in (3, 4, 5, 7):
        pairs = list(combinations(range(size), 2))
        codes = sample_graphlets(ODD[:6], size, 3, seed=0)
        edge = graph_classes(size).of[1 << pairs.index((0, 1))]
        np.testing.assert_array_equal(codes[:5], np.array([[0] * 3] * 4 + [[edge] * 3]))
    assert sample_graphlets(NONE, 7, 5, seed=0).shape == (0, 5)


def test_neighboring_graphlets_share_a_node():
    """In a star, a graphlet with the center is followed by one with the center."""
    star = pack([Graph(40, [(0, i) for i in range(1, 40)])])
    seen = neighboring_graphlets(star, 3, 500, seed=0)[0]
    path = graph_classes(3).of[0b011]
    center = seen[:, 0] == path
    assert 10 < center.sum() < 100
    assert (seen[center] == path).any(1).all()
    assert ((seen[center, 1:] == path).sum(1) >= 1).all()  # the one that shares the center
    assert set(np.unique(seen)) == {0, path}


def test_sets_of_nodes_are_sets_and_uniform():
    numbers = np.random.default_rng(0).random((6000, 3))
    chosen = graphlets.choose_nodes(np.array([3, 5, 100]), numbers)
    assert chosen.shape == (3, 6000, 3)
    assert (np.sort(chosen, -1)[..., 1:] > np.sort(chosen, -1)[..., :-1]).all()
    assert set(map(frozenset, chosen[0].tolist())) == {frozenset(range(3))}
    sets, counts = np.unique(np.sort(chosen[1], -1), axis=0, return_counts=True)
    assert len(sets) == 10
    assert counts.min() > 500
    assert chosen[2].max() == 99
    assert graphlets.choose_nodes(np.array([4]), np.full((1, 4), np.nextafter(1, 0))).tolist() == [[[0, 1, 2, 3]]]


def test_what_cannot_be():
    with pytest.raises(SettingError, match="size=5, expected 3 or 4"):
        count_graphlets(ODD, 5)
    with pytest.raises(SettingError, match="size=8, expected the number of nodes"):
        sample_graphlets(ODD, 8, 1, 0)
    with pytest.raises(DataError, match=r"graph 1 of odd has 50,001 nodes.*remove"):
        count_graphlets(pack([Graph(1), Graph(50_001)], name="odd"), 3)


def test_all_orders_of_nodes_have_one_class():
    classes = graph_classes(5)
    random = np.random.default_rng(0)
    for code in random.integers(0, len(classes.of), 5).tolist():
        pairs = [pair for bit, pair in enumerate(combinations(range(5), 2)) if code >> bit & 1]
        graph = nx.Graph(pairs)
        assert len({classes.of[code_of(graph, order)] for order in permutations(range(5))}) == 1


def test_padded_matrices_are_bounded():
    """Where a few nodes have many neighbors and many have two."""
    width = np.array([1, 90, 2, 0, 80, *[2] * 5000, 3])
    paths = np.array([0, 4000, 1, 0, 9000, *[1] * 5000, 2])
    with patch.object(graphlets, "AT_ONCE", 8192):
        parts = list(graphlets._similar(width, paths))
    assert sorted(np.concatenate(parts).tolist()) == np.flatnonzero(width > 1).tolist()
    for nodes in parts:
        assert len(nodes) == 1 or len(nodes) * width[nodes].max() ** 2 <= 8192
        assert len(nodes) == 1 or paths[nodes].sum() <= 8192
    assert len(parts) < 10
