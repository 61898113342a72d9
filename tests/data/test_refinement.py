from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, pairwise
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.data.analysis import refinement
from sopool.data.analysis.refinement import Duplicates, duplicates, graph_colours, refine
from sopool.data.edges import edge_blocks, out_degrees
from sopool.data.formats.tu import read_tu
from sopool.data.pack import Graph, pack
from sopool.errors import DataError, SettingError
from tests.helpers.data_graphs import as_lists, stores
from tests.helpers.shared import DATA, needs_data


def all_edges(store):
    """The edges with nodes numbered through the store, graph by graph."""
    graphs = as_lists(store)
    starts = accumulate((one["nodes"] for one in graphs), initial=0)
    return [[(start + a, start + b) for a, b in one["edges"]] for one, start in zip(graphs, starts, strict=False)]


def naive_refine(store, rounds, use_labels=True, initial=None):
    """What refine() should do, with dictionaries: any hashable is a colour."""
    ahead = defaultdict(list)
    behind = defaultdict(list)
    for a, b in chain(*all_edges(store)):
        ahead[a].append(b)
        behind[b].append(a)
    result = [same_numbers(naive_initial(store, use_labels) if initial is None else initial)]
    for _ in range(rounds):
        old = result[-1]
        keys = [
            (old[node], tuple(sorted(old[i] for i in ahead[node])), tuple(sorted(old[i] for i in behind[node])))
            for node in range(store.num_nodes)
        ]
        result.append(same_numbers(keys))
    return result


def naive_initial(store, use_labels):
    """A tuple per node; Python takes 0.0 and -0.0 for the same key."""
    if not use_labels:
        return [()] * store.num_nodes
    colours = []
    for graph in as_lists(store):
        labels = graph["node_labels"] or [None] * graph["nodes"]
        attributes = graph["node_attributes"] or [()] * graph["nodes"]
        colours += [(label, *some) for label, some in zip(labels, attributes, strict=True)]
    return colours


def same_numbers(colours):
    """Numbers in order of appearance: equal lists for equal partitions."""
    numbers = {}
    return [numbers.setdefault(colour, len(numbers)) for colour in colours]


def naive_graph_colours(store, colours):
    return same_numbers(tuple(sorted(colours[a:b])) for a, b in pairwise(store.node_ptr.tolist()))


def undirected(*graphs):
    """A store of networkx graphs, every edge in both directions."""
    graphs = [nx.convert_node_labels_to_integers(graph).to_directed() for graph in graphs]
    return pack(Graph(len(graph), list(graph.edges)) for graph in graphs)


def alike(store, **options):
    """Equal numbers, in order of appearance, for graphs that refinement cannot tell apart."""
    return same_numbers(graph_colours(store, **options).tolist())


@given(stores(min_size=0), st.integers(0, 4), st.booleans(), st.integers(1, 10))
def test_refine_agrees_with_dictionaries(store, rounds, use_labels, block):
    """Whatever the number of edges looked at together."""
    with patch.object(refinement, "edge_blocks", partial(edge_blocks, size=block)):
        found = refine(store, rounds, use_labels)
        graphs = graph_colours(store, rounds, use_labels)
    expected = naive_refine(store, rounds, use_labels)
    assert len(found) == rounds + 1
    for colours, wanted in zip(found, expected, strict=True):
        assert (colours.dtype, colours.shape) == (np.int64, (store.num_nodes,))
        assert sorted(set(colours.tolist())) == list(range(len(set(wanted))))
        assert same_numbers(colours.tolist()) == wanted
    assert (graphs.dtype, graphs.shape) == (np.int64, (len(store),))
    assert same_numbers(graphs.tolist()) == naive_graph_colours(store, expected[-1])


def naive_labelled(store, rounds):
    """Colors that pair those of neighbors with the labels of edges, with dictionaries."""
    edges = list(zip(chain(*all_edges(store)), store.edge_labels.tolist(), strict=True))
    result = [same_numbers(naive_initial(store, use_labels=True))]
    for _ in range(rounds):
        old = result[-1]
        keys = []
        for node in range(store.num_nodes):
            ahead = sorted((old[b], label) for (a, b), label in edges if a == node)
            behind = sorted((old[a], label) for (a, b), label in edges if b == node)
            keys.append((old[node], tuple(ahead), tuple(behind)))
        result.append(same_numbers(keys))
    return result


@given(stores(min_size=0), st.integers(0, 3), st.integers(1, 10))
def test_edge_labels_are_seen(store, rounds, block):
    if store.edge_labels is None:
        with pytest.raises(DataError, match="edges of random have no labels"):
            refine(store, rounds, edge_labels=True)
        store = replace(store, edge_labels=torch.zeros(store.num_edges, dtype=torch.int32), edge_label_names=(0,))
    with patch.object(refinement, "edge_blocks", partial(edge_blocks, size=block)):
        found = refine(store, rounds, edge_labels=True)
    assert [same_numbers(colours.tolist()) for colours in found] == naive_labelled(store, rounds)


def test_equal_edge_labels_change_nothing():
    store = pack([Graph(4, [(0, 1), (1, 2), (2, 3)], edge_labels=[1, 1, 1]), Graph(3, [(0, 1)], edge_labels=[1])])
    for plain, labelled in zip(refine(store, 3), refine(store, 3, edge_labels=True), strict=True):
        assert same_numbers(plain.tolist()) == same_numbers(labelled.tolist())


@needs_data
def test_refine_agrees_with_dictionaries_on_mutag():
    store = read_tu(DATA / "MUTAG.zip")
    found = refine(store, 2)
    expected = naive_refine(store, 2)
    assert [same_numbers(colours.tolist()) for colours in found] == expected
    assert alike(store, rounds=2) == naive_graph_colours(store, expected[-1])
    assert max(expected[0]) + 1 == len(store.node_label_names)
    assert max(expected[0]) < max(expected[1]) < max(expected[2])


@given(stores(min_size=0), st.integers(0, 3), st.data())
def test_initial_colours_take_the_place_of_labels(store, rounds, data):
    size = store.num_nodes
    initial = data.draw(st.lists(st.sampled_from([-7, 0, 2**40]), min_size=size, max_size=size))
    expected = naive_refine(store, rounds, initial=initial)
    for given_colours in (np.array(initial, np.int64), torch.tensor(initial, dtype=torch.long)):
        found = refine(store, rounds, initial=given_colours)
        assert [same_numbers(colours.tolist()) for colours in found] == expected
        assert alike(store, rounds=rounds, initial=given_colours) == naive_graph_colours(store, expected[-1])


@given(stores(), st.integers(0, 4), st.data())
def test_permuted_graphs_look_alike(store, rounds, data):
    originals = []
    copies = []
    for one in as_lists(store):
        order = data.draw(st.permutations(range(one["nodes"])))
        place = {node: i for i, node in enumerate(order)}
        values = {name: one[name] for name in ("node_labels", "node_attributes")}
        moved = {name: some and [some[node] for node in order] for name, some in values.items()}
        edges = data.draw(st.permutations([(place[a], place[b]) for a, b in one["edges"]]))
        originals.append(Graph(one["nodes"], one["edges"], **values))
        copies.append(Graph(one["nodes"], edges, **moved))
    colours = graph_colours(pack(originals + copies), rounds)
    assert colours[: len(store)].tolist() == colours[len(store) :].tolist()


def test_every_graph_of_five_nodes_or_fewer_is_told_apart():
    atlas = [graph for graph in nx.graph_atlas_g() if len(graph) <= 5]
    assert len(atlas) == 53
    assert alike(undirected(*atlas)) == list(range(53))


def test_what_refinement_cannot_tell_apart():
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    store = undirected(nx.cycle_graph(6), triangles, nx.path_graph(6))
    assert alike(store) == [0, 0, 1]
    assert alike(store, rounds=0) == [0, 0, 0]
    regular = undirected(nx.complete_bipartite_graph(3, 3), nx.circular_ladder_graph(3), nx.cycle_graph(6))
    assert alike(regular) == [0, 0, 1]
    marked = np.tile([1, 0, 0, 0, 0, 0], 3)
    assert alike(store, initial=marked) == [0, 1, 2]  # of two triangles, one has no mark


def test_directions_count():
    path = [(0, 1), (1, 2)]
    outward = [(1, 0), (1, 2)]
    inward = [(0, 1), (2, 1)]
    backward = [(2, 1), (1, 0)]
    assert alike(pack(Graph(3, edges) for edges in (path, outward, inward, backward))) == [0, 1, 2, 0]
    cycle = [(0, 1), (1, 2), (2, 0)]
    shortcut = [(0, 1), (1, 2), (0, 2)]
    assert alike(pack([Graph(3, cycle), Graph(3, shortcut)]), rounds=1) == [0, 1]
    assert len(set(refine(pack([Graph(2, [(0, 1)])]), 1)[-1])) == 2


def test_repeated_edges_count_but_labels_and_weights_of_edges_do_not():
    both = [(0, 1), (1, 0)]
    assert alike(pack([Graph(2, both), Graph(2, both * 2), Graph(2, both)])) == [0, 1, 0]
    labelled = [Graph(2, both, edge_labels=["a", kind], edge_weights=[1, kind == "a"]) for kind in "ab"]
    assert alike(pack(labelled)) == [0, 0]


def test_the_number_of_nodes_counts_without_any_round():
    assert alike(pack(Graph(size) for size in (0, 1, 2, 0, 1)), rounds=0) == [0, 1, 2, 0, 1]


def test_rounds_reach_one_step_further_each_time():
    path = undirected(nx.path_graph(9))
    sizes = [len(set(colours.tolist())) for colours in refine(path, 50)]
    assert sizes[:5] == [1, 2, 3, 4, 5]
    assert set(sizes[5:]) == {5}  # a node and its mirror image stay alike
    assert len(sizes) == 51


def test_labels_and_attributes_count():
    values = [("C", [0.0, 1.0]), ("C", [-0.0, 1.0]), ("C", [1.0, 0.0]), ("N", [0.0, 1.0]), ("C", [0.0, 1.0])]
    store = pack(Graph(1, node_labels=[label], node_attributes=[some]) for label, some in values)
    assert store.node_attributes[1].signbit().tolist() == [True, False]
    assert alike(store) == [0, 0, 1, 2, 0]
    assert alike(store, use_labels=False) == [0] * 5
    assert alike(pack(Graph(1, node_labels=[label]) for label, _ in values)) == [0, 0, 0, 1, 0]
    assert alike(pack(Graph(1, node_attributes=[some]) for _, some in values)) == [0, 0, 1, 0, 0]
    assert alike(pack(Graph(1, node_attributes=[[]]) for _ in values)) == [0] * 5


@pytest.mark.parametrize(
    ("initial", "found"),
    [
        (np.zeros(3), r"float64 of shape \[3\]"),
        (torch.zeros(3), r"float32 of shape \[3\]"),
        (np.zeros(3, bool), r"bool of shape \[3\]"),
        (np.zeros(2, int), r"int64 of shape \[2\]"),
        (torch.zeros(3, 1, dtype=torch.long), r"int64 of shape \[3, 1\]"),
        (np.array(0), r"int64 of shape \[\]"),
    ],
    ids=str,
)
@pytest.mark.parametrize("function", [refine, graph_colours, duplicates])
def test_initial_colours_that_do_not_fit(function, initial, found):
    store = pack([Graph(1), Graph(2)])
    with pytest.raises(DataError, match=rf"integers, one for each of 3 nodes, found {found}\."):
        function(store, initial=initial)


@pytest.mark.parametrize("function", [refine, graph_colours, duplicates])
def test_rounds_must_not_be_negative(function):
    with pytest.raises(SettingError, match="rounds=-1, expected 0 or more"):
        function(pack([Graph(1)]), rounds=-1)


@given(stores(), st.integers(0, 3))
def test_duplicates_by_hand(store, rounds):
    groups = defaultdict(list)
    for colour, label in zip(
        naive_graph_colours(store, naive_refine(store, rounds)[-1]), store.labels.tolist(), strict=True
    ):
        groups[colour].append(label)
    shared = [labels for labels in groups.values() if len(labels) > 1]
    right = sum(max(Counter(labels).values()) for labels in groups.values())
    found = duplicates(store, rounds)
    assert (found.rounds, found.graphs, found.groups) == (rounds, sum(map(len, shared)), len(shared))
    assert found.conflicting == sum(len(labels) for labels in shared if len(set(labels)) > 1)
    assert found.best_accuracy == pytest.approx(right / len(store))


def small(*graphs):
    """Graphs without edges from (nodes, label) pairs."""
    return pack(Graph(nodes, label=label) for nodes, label in graphs)


def test_duplicates_of_small_stores():
    assert duplicates(small((1, "a"), (2, "b"), (3, "a"))) == Duplicates(4, 0, 0, 0, 1.0)
    assert duplicates(small((1, "a"), (2, "b"), (1, "a")), 2) == Duplicates(2, 2, 1, 0, 1.0)
    mixed = small((1, "a"), (1, "b"), (1, "a"), (2, "b"), (2, "b"), (3, "b"), (4, "b"), (4, "a"))
    assert duplicates(mixed) == Duplicates(4, 7, 3, 5, 6 / 8)
    assert duplicates(small((1, "a"), (1, "b"), (1, "c"), (1, 1))) == Duplicates(4, 4, 1, 4, 1 / 4)
    assert duplicates(small((1, None), (2, None), (1, None))) == Duplicates(4, 2, 1, 0, None)
    assert duplicates(mixed, initial=np.arange(mixed.num_nodes)) == Duplicates(4, 0, 0, 0, 1.0)


def test_duplicates_with_and_without_node_labels():
    store = pack(Graph(1, label=label, node_labels=[atom]) for label, atom in ((0, "C"), (1, "N"), (1, "N")))
    assert duplicates(store) == Duplicates(4, 2, 1, 0, 1.0)
    assert duplicates(store, use_labels=False) == Duplicates(4, 3, 1, 3, 2 / 3)


@pytest.mark.parametrize("store", [pack([]), small((1, "a"))[:0]], ids=["nothing", "no graph chosen"])
def test_an_empty_store(store):
    assert [colours.tolist() for colours in refine(store, 2)] == [[], [], []]
    assert graph_colours(store).tolist() == []
    assert duplicates(store) == Duplicates(4, 0, 0, 0, None)
    assert list(edge_blocks(store)) == []
    assert out_degrees(store).tolist() == []


@given(stores(min_size=0), st.integers(1, 20))
def test_edge_blocks(store, size):
    graphs = all_edges(store)
    blocks = list(edge_blocks(store, size))
    assert all(block.dtype == torch.int64 and block.shape[0] == 2 for block in blocks)
    found = [[tuple(edge) for edge in block.t().tolist()] for block in blocks]
    assert list(chain(*found)) == list(chain(*graphs))
    assert all(len(block) <= size or block in graphs for block in found)
    assert len(list(edge_blocks(store))) == min(len(store), 1)


@given(stores(min_size=0))
def test_degrees_count_the_edges_out_of_each_node(store):
    counts = Counter(a for a, _ in chain(*all_edges(store)))
    found = out_degrees(store)
    assert found.dtype == torch.int64
    assert found.tolist() == [counts[node] for node in range(store.num_nodes)]


@needs_data
@pytest.mark.parametrize(
    ("name", "graphs", "conflicting", "best"),
    [
        ("MUTAG", 24, 0, 1.0),
        ("PTC", 13, 4, 0.9942),
        ("PROTEINS", 63, 15, 0.9973),
        ("NCI1", 138, 15, 0.9983),
        ("IMDB-BINARY", 579, 318, 0.886),
        ("IMDB-MULTI", 1212, 1120, 0.6327),
        pytest.param("COLLAB", 1077, 334, 0.9842, marks=pytest.mark.slow),
    ],
)
def test_duplicates_in_the_benchmark_data(name, graphs, conflicting, best):
    found = duplicates(read_tu(DATA / f"{name}.zip"), 4)
    assert (found.graphs, found.conflicting, round(found.best_accuracy, 4)) == (graphs, conflicting, best)
