"""Numbers of pairs of nodes, against NetworkX."""

from collections import Counter
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest

from sopool.data.analysis import pair_counts as module
from sopool.data.analysis.pair_counts import count_pairs, count_pairs_at_distances
from sopool.errors import DataError, SettingError
from tests.helpers.odd_graphs import NONE, ODD, as_simple, permuted, random_graphs

STORES = {"odd": ODD, "none": NONE, "random": random_graphs(20)}


def searched(graph, codes, distances):
    """The number of pairs with each (code, code, distance)."""
    found = Counter()
    for one, lengths in nx.all_pairs_shortest_path_length(graph):
        found.update((codes[one], codes[two], far) for two, far in lengths.items() if 0 < far <= distances)
    return found


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("at_once", [1, 2**22])
def test_pairs_are_those_of_networkx(name, at_once):
    store = STORES[name]
    codes = np.random.default_rng(0).integers(0, 3, store.num_nodes)
    ptr = store.node_ptr.tolist()
    graphs = as_simple(store)
    for distances in (1, 2, 9):
        counted = [searched(graph, codes[ptr[g] :], distances) for g, graph in enumerate(graphs)]
        keys = sorted(set().union(*counted)) if counted else []
        with patch.object(module, "AT_ONCE", at_once):
            found = count_pairs(store, codes, distances)
            totals = count_pairs_at_distances(store, distances)
        expected = np.array([[one[key] for key in keys] for one in counted]).reshape(len(store), len(keys))
        np.testing.assert_array_equal(found.toarray(), expected)
        by_distance = [
            [sum(n for key, n in one.items() if key[2] == far) for far in range(1, distances + 1)] for one in counted
        ]
        np.testing.assert_array_equal(totals, np.array(by_distance).reshape(len(store), distances))


def test_many_codes_are_counted_as_well():
    """More than have a place in a table."""
    store = random_graphs(20)
    few = np.random.default_rng(0).integers(0, 3, store.num_nodes)
    np.testing.assert_array_equal(count_pairs(store, few * 5000, 4).toarray(), count_pairs(store, few, 4).toarray())


def test_the_order_of_nodes_does_not_matter():
    store = random_graphs(20)
    other = permuted(store)
    found = count_pairs(store, store.node_labels.numpy(), 4).toarray()
    np.testing.assert_array_equal(count_pairs(other, other.node_labels.numpy(), 4).toarray(), found)
    part = count_pairs(store[3:9], store[3:9].node_labels.numpy(), 4).toarray()
    np.testing.assert_array_equal(found[3:9][:, found[3:9].any(0)], part)


def test_what_cannot_be():
    codes = np.zeros(ODD.num_nodes, np.int64)
    for call in (lambda: count_pairs(ODD, codes, 0), lambda: count_pairs_at_distances(ODD, 0)):
        with pytest.raises(SettingError, match="distances=0, expected"):
            call()
    with patch.object(module, "MOST_PAIRS", 3), pytest.raises(DataError, match="odd has more than 3 pairs"):
        count_pairs(ODD, codes, 2)
