import json
import statistics as plain
from collections import Counter
from fractions import Fraction
from functools import cache, partial
from math import ceil, floor
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from sopool.data.analysis import graph_statistics as module
from sopool.data.analysis.graph_statistics import EIGHTHS, QUANTILES, data_warnings, graph_statistics, size_histogram
from sopool.data.analysis.refinement import duplicates
from sopool.data.edges import edge_blocks
from sopool.data.formats.tu import read_tu
from sopool.data.pack import Graph, pack
from tests.helpers.data_graphs import as_lists, stores
from tests.helpers.shared import DATA, needs_data


@cache
def shared_statistics(name):
    return graph_statistics(read_tu(DATA / f"{name}.zip"))


def quantile(values, share):
    """Between the two values nearest to that place in the sorted list."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low = values[floor(place)]
    high = values[ceil(place)]
    return low + (place - floor(place)) * (high - low)


def distinct(graphs, field):
    return None if graphs[0][field] is None else len({value for graph in graphs for value in graph[field]})


def width(graphs, field):
    return max((len(row) for graph in graphs for row in graph[field] or ()), default=0)


def ranges(graphs):
    """The name of each column of numbers, how many are missing, and the smallest and largest."""
    for field in ("node_attributes", "edge_attributes"):
        rows = [row for graph in graphs for row in graph[field] or ()]
        yield from (column_range(field, column) for column in zip(*rows, strict=True))
    if graphs[0]["edge_weights"] is not None:
        yield column_range("edge_weights", [weight for graph in graphs for weight in graph["edge_weights"]])
    for name in graphs[0].get("graph_attributes", ()):
        yield column_range(name, [graph["graph_attributes"][name] for graph in graphs])


def column_range(name, column):
    there = [value for value in column if value is not None]
    return ("", name, len(column) - len(there), min(there, default=None), max(there, default=None))


@given(stores(more=True), st.integers(1, 10))
def test_everything_by_hand(store, block):
    """Whatever the number of edges looked at together."""
    with patch.object(module, "edge_blocks", partial(edge_blocks, size=block)):
        found = graph_statistics(store)
    graphs = as_lists(store)
    sizes = [graph["nodes"] for graph in graphs]
    edges = [(g, a, b) for g, graph in enumerate(graphs) for a, b in graph["edges"]]
    ends = {(g, node) for g, *pair in edges for node in pair}
    labels = Counter(graph["label"] for graph in graphs)
    assert (found.name, found.graphs) == ("random", len(graphs))
    assert found.classes == tuple((name, labels[name]) for name in store.classes)
    assert dict(found.classes) == labels
    assert (found.nodes, found.nodes_min, found.nodes_max) == (sum(sizes), min(sizes), max(sizes))
    assert found.nodes_mean == pytest.approx(plain.mean(sizes))
    assert found.nodes_median == plain.median(sizes)
    assert [share for share, _ in found.nodes_quantiles] == list(QUANTILES)
    for share, value in found.nodes_quantiles:
        assert value == pytest.approx(quantile(sizes, share))
    assert found.directed_edges == len(edges)
    assert found.edges_mean * len(graphs) == pytest.approx(len({(g, *sorted(pair)) for g, *pair in loopless(edges)}))
    assert found.directed == any((g, b, a) not in edges for g, a, b in edges)
    assert found.self_loops == len(edges) - len(loopless(edges))
    assert found.duplicate_edges == len(edges) - len(set(edges))
    assert found.isolated_nodes == sum(sizes) - len(ends)
    assert found.empty_graphs == sizes.count(0)
    assert found.node_labels == distinct(graphs, "node_labels")
    assert found.edge_labels == distinct(graphs, "edge_labels")
    assert found.node_attributes == width(graphs, "node_attributes")
    assert found.edge_attributes == width(graphs, "edge_attributes")
    for of in ("node", "edge"):
        named = [graph.get(f"{of}_categories", {}) for graph in graphs]
        assert {one.name: one.values for one in found.categories if one.of == of} == {
            name: len({value for columns in named for value in columns[name]}) for name in named[0]
        }
    assert [one[2:] for one in found.numbers] == [one[2:] for one in ranges(graphs)]
    assert found.edge_weights == (graphs[0]["edge_weights"] is not None)
    assert found.duplicates is None


def loopless(edges):
    return [(g, a, b) for g, a, b in edges if a != b]


@given(stores(undirected=True))
def test_undirected(store):
    assert not graph_statistics(store).directed


@given(stores(min_size=0, more=True), st.none() | st.integers(0, 3))
def test_json_round_trip(store, rounds):
    found = graph_statistics(store, rounds)
    values = found.to_json()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["classes"] == [{"name": name, "graphs": count} for name, count in found.classes]
    assert values["nodes_quantiles"] == [[share, value] for share, value in found.nodes_quantiles]
    columns = ("targets", "categories", "numbers")
    same = values.keys() - {"classes", "nodes_quantiles", "duplicates", *columns}
    assert {name: values[name] for name in same} == {name: getattr(found, name) for name in same}
    for name in columns:
        assert [tuple(column.values()) for column in values[name]] == list(getattr(found, name))
    if rounds is None:
        assert found.duplicates is None
        assert values["duplicates"] is None
    else:
        assert found.duplicates == duplicates(store, rounds)
        assert values["duplicates"] == duplicates(store, rounds)._asdict()


def test_all_kinds_of_edges():
    """Of graph 0: a pair joined twice and back, a self-loop twice, a lone node; graph 1 repeats its edges."""
    first = Graph(5, [(0, 1), (0, 1), (1, 0), (2, 2), (2, 2), (3, 1), (1, 3)], edge_attributes=[[0, 1, 2]] * 7)
    found = graph_statistics(pack([first, Graph(2, [(0, 1), (1, 0)], edge_attributes=[[3, 4, 5]] * 2)]))
    assert (found.directed_edges, found.edges_mean, found.self_loops, found.duplicate_edges) == (9, 1.5, 2, 2)
    assert (found.directed, found.isolated_nodes, found.edge_attributes) == (False, 1, 3)
    assert graph_statistics(pack([Graph(2, [(0, 1)]), Graph(2, [(1, 0)])])).directed  # counterparts in another graph


def test_no_graphs():
    found = graph_statistics(pack([]), rounds=1)
    assert (found.graphs, found.nodes, found.nodes_min, found.nodes_max, found.nodes_mean) == (0, 0, 0, 0, 0)
    assert (found.classes, found.node_labels, found.edges_mean, found.directed) == ((), None, 0, False)
    assert found.duplicates == (1, 0, 0, 0, None)
    assert data_warnings(found) == []


def test_what_is_chosen_is_counted():
    """The names of a store stay with a part of it, also those that no graph or node of the part has."""
    store = pack(Graph(1, label=name, node_labels=[name]) for name in "abacd")[[0, 2, 3]]
    found = graph_statistics(store)
    assert found.classes == (("a", 2), ("b", 0), ("c", 1), ("d", 0))
    assert (len(store.node_label_names), found.node_labels) == (4, 2)


@needs_data
@pytest.mark.parametrize(
    ("name", "classes", "nodes_max", "nodes_mean", "edges_mean", "node_labels", "isolated"),
    [
        ("MUTAG", {1: 125, -1: 63}, 28, 17.93, 19.79, 7, 0),
        ("PTC", {1: 152, -1: 192}, 109, 25.56, 25.96, 19, 0),
        ("PROTEINS", {1: 663, 2: 450}, 620, 39.06, 72.82, 3, 5),
        ("NCI1", {0: 2053, 1: 2057}, 111, 29.87, 32.30, 37, 428),
        ("IMDB-BINARY", {0: 500, 1: 500}, 136, 19.77, 96.53, None, 0),
        ("IMDB-MULTI", {1: 500, 2: 500, 3: 500}, 89, 13.00, 65.94, None, 0),
    ],
)
def test_benchmark_data(name, classes, nodes_max, nodes_mean, edges_mean, node_labels, isolated):
    found = shared_statistics(name)
    graphs = {"MUTAG": 188, "PTC": 344, "PROTEINS": 1113, "NCI1": 4110, "IMDB-BINARY": 1000, "IMDB-MULTI": 1500}
    assert (found.name, found.graphs, dict(found.classes)) == (name, graphs[name], classes)
    assert (found.nodes_max, round(found.nodes_mean, 2), round(found.edges_mean, 2)) == (
        nodes_max,
        nodes_mean,
        edges_mean,
    )
    assert (found.node_labels, found.isolated_nodes) == (node_labels, isolated)
    assert (found.directed, found.self_loops, found.duplicate_edges, found.empty_graphs) == (False, 0, 0, 0)
    assert data_warnings(found) == []


@needs_data
@pytest.mark.slow
def test_collab():
    found = shared_statistics("COLLAB")
    assert (found.graphs, dict(found.classes)) == (5000, {1: 2600, 2: 775, 3: 1625})
    assert (found.nodes_max, round(found.nodes_mean, 2), found.node_labels) == (492, 74.49, None)
    assert (found.self_loops, round(found.edges_mean, 2), found.directed) == (2837, 2457.22, False)


def classed(nodes=1, **counts):
    """Statistics of so many graphs of each class."""
    return graph_statistics(pack(Graph(nodes, label=name) for name, count in counts.items() for _ in range(count)))


def test_no_warnings():
    assert data_warnings(classed(a=10, b=10)) == []
    assert data_warnings(classed(a=90, b=10)) == []  # not more than 90%
    assert data_warnings(graph_statistics(pack([Graph(1), Graph(2)]))) == []  # no labels


def test_one_class():
    (only,) = data_warnings(classed(a=20))
    assert only == "All graphs are of one class, 'a', so there is nothing to learn."
    both = pack(Graph(1, label=label) for label in [0, 1] * 15)
    (only,) = data_warnings(graph_statistics(both[1::2]))
    assert only.startswith("All graphs are of one class, 1,")


def test_small_classes():
    (only,) = data_warnings(classed(a=10, b=1, c=10))
    assert only.startswith("Class 'b' has 1 graph, too few for 10 folds: use fewer folds")
    first, second = data_warnings(classed(a=10, b=9, c=2, d=10))
    assert first.startswith("Class 'b' has 9 graphs, too few for 10 folds")
    assert second.startswith("Class 'c' has 2 graphs, too few")


def test_folds():
    found = classed(a=12, b=5)
    assert data_warnings(found, folds=5) == []
    (only,) = data_warnings(found, folds=6)
    assert "Class 'b' has 5 graphs, too few for 6 folds" in only
    assert len(data_warnings(found, folds=13)) == 2


def test_majority():
    (only,) = data_warnings(classed(a=98, b=2), folds=2)
    assert only.startswith("Class 'a' has 98.0 % of the graphs")
    assert "balanced accuracy" in only
    (only,) = data_warnings(classed(a=10, b=91))
    assert only.startswith("Class 'b' has 90.1 % of the graphs")
    assert len(data_warnings(classed(a=98, b=2))) == 2


def test_empty_graphs():
    store = pack(Graph(nodes, label=label) for label in "ab" for nodes in [0, *[3] * 10])
    (only,) = data_warnings(graph_statistics(store))
    assert only.startswith("2 of 22 graphs have no nodes")
    assert len(data_warnings(classed(nodes=0, a=3))) == 3


def parse(lines, width):
    """(lowest, highest, eighths of a block, count) of each line; bars fill ``width`` characters."""
    out = []
    for line in lines:
        label, bar = line.split(" │")
        low, _, high = label.partition(" - ")
        drawn = bar[:width]
        blank = bar[width]
        count = int(bar[width + 1 :].replace(",", ""))
        assert blank == " "
        full = drawn.rstrip(" ").rstrip(EIGHTHS)
        assert set(full) <= {"█"}
        rest = drawn.rstrip(" ")[len(full) :]
        assert len(rest) <= 1
        out.append((int(low), int(high or low), 8 * len(full) + (EIGHTHS.index(rest) if rest else 0), count))
    return out


sizes = st.lists(st.integers(0, 12) | st.integers(0, 100) | st.integers(0, 10**6), min_size=1, max_size=60)


@given(sizes, st.integers(1, 50), st.integers(1, 15))
@example([0] * 5000 + [9], 7, 3)
@example([0, 3], 1, 3)
def test_size_histogram(values, width, bins):
    lines = size_histogram(values, width, bins)
    assert 1 <= len(lines) <= bins
    assert len({line.index("│") for line in lines}) == 1
    rows = parse(lines, width)
    assert (rows[0][0], rows[-1][1]) == (min(values), max(values))
    assert [row[0] for row in rows[1:]] == [row[1] + 1 for row in rows[:-1]]
    most = max(row[3] for row in rows)
    for line, (low, high, eighths, count) in zip(lines, rows, strict=True):
        assert low <= high
        assert count == sum(low <= value <= high for value in values)
        assert eighths == ceil(Fraction(8 * width * count, most))
        assert (eighths > 0) == (count > 0)
        assert ("█" * width in line) == (eighths == 8 * width)


def test_what_a_size_histogram_looks_like():
    assert size_histogram([1, 2, 2, 4], width=4) == ["1 │██   1", "2 │████ 2", "3 │     0", "4 │██   1"]
    assert size_histogram([5] * 1234 + [10], width=2, bins=2) == [" 5 - 7 │██ 1,234", "8 - 10 │▏  1"]
    assert size_histogram([]) == []
    assert size_histogram([7]) == ["7 │" + "█" * 40 + " 1"]


def test_size_histograms_of_arrays_and_tensors():
    values = [3, 50, 7, 7, 0]
    assert size_histogram(np.array(values)) == size_histogram(torch.tensor(values)) == size_histogram(values)
    assert size_histogram(torch.empty(0, dtype=torch.long)) == size_histogram(np.empty(0, int)) == []


def test_ranges_grow_where_sizes_differ_widely():
    def ranges(values):
        return [line.split(" │")[0].strip() for line in size_histogram(values, bins=3)]

    assert ranges(np.arange(1, 1001)) == ["1 - 14", "15 - 124", "125 - 1000"]
    assert ranges([0, 1000]) == ["0 - 8", "9 - 98", "99 - 1000"]
    assert ranges(np.arange(10, 40)) == ["10 - 19", "20 - 29", "30 - 39"]
    assert ranges([10, 100]) == ["10 - 39", "40 - 70", "71 - 100"]  # ten times the smallest is not yet wide


def test_statistics_of_targets():
    rows = [[1e15 + 1, 7, None], [1e15 + 4, None, None], [1e15 + 4, 7, None]]
    store = pack([Graph(1, label=row) for row in rows], target_names=["far", "same", "none"])
    found = graph_statistics(store, rounds=1)
    far, same, none = found.targets
    assert far == ("far", 3, 0, 1e15 + 3, pytest.approx(2**0.5), 1e15 + 1, 1e15 + 4)
    assert same == ("same", 2, 1, 7, 0, 7, 7)
    assert none == ("none", 0, 3, None, None, None, None)
    assert found.classes == ()
    assert (found.duplicates.graphs, found.duplicates.best_accuracy) == (3, None)
    assert json.loads(json.dumps(found.to_json()))["targets"][1] == same._asdict()
    assert [one for one in data_warnings(found) if "nothing to learn" in one] == [
        "The target 'same' is 7 for all graphs that have it, so there is nothing to learn.",
        "The target 'none' is missing for all graphs, so there is nothing to learn.",
    ]


def test_statistics_of_no_targets():
    assert graph_statistics(pack([Graph(1)])).targets == ()
    (target,) = graph_statistics(pack([], target_names=["a"])).targets
    assert target == ("a", 0, 0, None, None, None, None)


def test_copies_are_worth_a_word_where_they_are_many():
    copied = pack([Graph(n, label=n % 2) for n in (*range(1, 40), 1, 2, 3)])
    assert data_warnings(graph_statistics(copied, rounds=2)) == []
    (only,) = data_warnings(graph_statistics(pack([Graph(n, label=n % 2) for n in range(10)] * 4), rounds=2), folds=2)[
        1:
    ]
    assert only.startswith("40 of 40 graphs look like another one to message passing")
    assert "in 10 groups" in only
    assert "keep only one of each" in only
