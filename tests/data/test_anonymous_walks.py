"""Random walks, and the numbers of walks without the names of their nodes."""

from itertools import pairwise, product
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest

from sopool.data.analysis import anonymous_walks as module
from sopool.data.analysis.anonymous_walks import anonymous_walks, completions, number_walks, random_walks
from sopool.data.pack import Graph, pack
from sopool.errors import SettingError
from tests.helpers.odd_graphs import NONE, ODD, as_simple, random_graphs


def anonymous(walk):
    """Nodes by the order of their first visit."""
    seen = {}
    return tuple(seen.setdefault(node, len(seen)) for node in walk)


def every_walk(steps):
    """All anonymous walks in lexicographic order."""
    walks = {
        anonymous(walk)
        for walk in product(range(steps + 1), repeat=steps + 1)
        if all(a != b for a, b in pairwise(walk))
    }
    return sorted(walks)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_walks_are_numbered_in_order(steps):
    walks = every_walk(steps)
    assert len(walks) == completions(steps)[0, 0]
    random = np.random.default_rng(0)
    names = np.stack([random.permutation(50)[: steps + 1] for _ in walks])
    nodes = np.take_along_axis(names, np.array(walks), 1)
    np.testing.assert_array_equal(number_walks(nodes), np.arange(len(walks)))


def test_the_numbers_of_walks_are_bell_numbers():
    bell = [1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975, 678570, 4213597]
    assert [int(completions(steps)[0, 0]) for steps in range(1, 13)] == bell


def all_walks(store, *arguments, **options):
    found = list(random_walks(store, *arguments, **options))
    assert [first for first, _ in found] == np.cumsum([0, *(len(nodes) for _, nodes in found)])[:-1].tolist()
    return np.concatenate([nodes for _, nodes in found]) if found else None


@pytest.mark.parametrize("at_once", [1, 200, 2**20])
def test_walks_go_along_edges(at_once):
    store = random_graphs(10)
    with patch.object(module, "AT_ONCE", at_once):
        nodes = all_walks(store, 4, 30, 0)
    np.testing.assert_array_equal(nodes, all_walks(store, 4, 30, 0))
    assert nodes.shape == (10, 30, 5)
    for graph, walks in zip(as_simple(store), nodes.tolist(), strict=True):
        if not graph.number_of_edges():
            assert {node for walk in walks for node in walk} == {-1}
            continue
        assert all(graph.has_edge(a, b) for walk in walks for a, b in pairwise(walk))


def test_starts_and_steps_are_uniform():
    graph = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    store = pack([Graph(6, list(graph.edges))])  # nodes 4 and 5 are isolated
    nodes = all_walks(store, 2, 40_000, 0)[0]
    np.testing.assert_allclose(np.bincount(nodes[:, 0], minlength=6) / 40_000, [0.25] * 4 + [0, 0], atol=0.01)
    third = nodes[nodes[:, 1] == 2, 2]
    np.testing.assert_allclose(np.bincount(third) / len(third), [1 / 3, 1 / 3, 0, 1 / 3], atol=0.01)


def test_several_walks_start_at_a_node():
    store = random_graphs(6, seed=2)
    starts = all_walks(store, 3, 20, 1, together=5)[..., 0].reshape(6, 4, 5)
    assert (starts == starts[..., :1]).all()
    assert len(np.unique(starts)) > 2


def test_walks_depend_on_the_graph_and_the_seed_only():
    store = random_graphs(12)
    whole = all_walks(store, 5, 10, 0)
    np.testing.assert_array_equal(all_walks(store[[7, 2]], 5, 10, 0), whole[[7, 2]])
    assert not np.array_equal(all_walks(store, 5, 10, 1), whole)


def test_odd_graphs():
    (found,) = [numbers for _, numbers in anonymous_walks(ODD, 3, 7, 0)]
    has_edges = [graph.number_of_edges() > 0 for graph in as_simple(ODD)]
    np.testing.assert_array_equal((found >= 0).all(1), has_edges)
    np.testing.assert_array_equal((found < 0).all(1), np.logical_not(has_edges))
    assert list(anonymous_walks(NONE, 3, 7, 0)) == []
    for steps in (0, 13):
        with pytest.raises(SettingError, match=f"steps={steps}, expected the length of a walk"):
            list(anonymous_walks(ODD, steps, 7, 0))
