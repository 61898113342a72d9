"""Walks by their labels, against walks that are listed one by one."""

from collections import Counter
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest

from sopool.data.analysis import label_walks as module
from sopool.data.analysis.label_walks import label_walks
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from tests.helpers.odd_graphs import NONE, ODD, as_simple, permuted, random_graphs


def listed(store, length):
    """The sequences of labels of all walks with ``length`` steps, for each graph."""
    found = []
    for graph, one in zip(as_simple(store), store, strict=True):
        labels = [0] * one.num_nodes if one.node_labels is None else one.node_labels.tolist()
        walks = [(node,) for node in graph]
        for _ in range(length):
            walks = [(*walk, node) for walk in walks for node in graph[walk[-1]]]
        found.append(Counter(tuple(labels[node] for node in walk) for walk in walks))
    return found


@pytest.mark.parametrize("store", [ODD, NONE, random_graphs(12, largest=6)], ids=["odd", "none", "random"])
@pytest.mark.parametrize("at_once", [1, 2**17])
def test_walks_are_those_that_are_listed(store, at_once):
    with patch.object(module, "AT_ONCE", at_once):
        found = label_walks(store, 3)
    for step, walks in enumerate(found, start=1):
        counted = listed(store, step)
        sequences = sorted(set().union(*counted)) if counted else []
        expected = np.array([[one[sequence] for sequence in sequences] for one in counted], dtype=float)
        np.testing.assert_array_equal(walks.toarray(), expected.reshape(len(store), len(sequences)))


def test_without_labels_they_are_powers_of_the_adjacency_matrix():
    graphs = [nx.gnp_random_graph(12, 0.3, seed=seed) for seed in range(4)]
    store = pack([Graph(12, list(one.edges)) for one in graphs])
    for step, walks in enumerate(label_walks(store, 5), start=1):
        powers = [np.linalg.matrix_power(nx.to_numpy_array(one), step).sum() for one in graphs]
        np.testing.assert_array_equal(walks.toarray()[:, 0], powers)


def test_neither_the_order_of_nodes_nor_other_graphs_matter():
    store = random_graphs(10)
    other = permuted(store)
    for one, two, part in zip(label_walks(store, 3), label_walks(other, 3), label_walks(store[2:4], 3), strict=True):
        np.testing.assert_array_equal(one.toarray(), two.toarray())
        own = one[2:4].toarray()
        np.testing.assert_array_equal(own[:, own.any(0)], part.toarray())


def test_long_sequences_of_many_labels():
    """Their numbers do not fit into 64 bits."""
    store = pack([Graph(100, [(i, i + 1) for i in range(99)], node_labels=list(range(100)))], name="many")
    assert label_walks(store, 8)[-1].sum() > 0
    with pytest.raises(DataError, match=r"many has 100 node labels.*smaller length"):
        label_walks(store, 9)


def test_walks_are_shortened_where_they_are_too_many():
    store = random_graphs(12)
    whole = label_walks(store, 4)
    most = whole[1].nnz
    assert whole[2].nnz > most
    for at_once in (1, 2**17):
        with (
            patch.object(module, "AT_ONCE", at_once),
            patch.object(module, "MOST_ENTRIES", most),
            pytest.warns(UserWarning, match=f"more than {most} sequences.*of 3 steps, so walks have at most 2"),
        ):
            found = label_walks(store, 4)
        assert len(found) == 2
        for one, other in zip(found, whole, strict=False):
            np.testing.assert_array_equal(one.toarray(), other.toarray())
    with patch.object(module, "MOST_ENTRIES", 1), pytest.warns(UserWarning, match="at most 1"):
        assert len(label_walks(store, 4)) == 1
