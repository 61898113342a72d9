import copy
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.data.graphs import check_values, concatenate
from sopool.data.names import number_names
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from tests.helpers.data_graphs import as_lists, stores


@given(stores(more=True), st.data())
def test_a_batch_is_its_graphs_side_by_side(store, data):
    chosen = data.draw(st.lists(st.integers(0, len(store) - 1), max_size=9))
    batch = store.batch(chosen)
    start = edge = 0
    for place, g in enumerate(chosen):
        one = store[g]
        nodes = slice(start, start + one.num_nodes)
        edges = slice(edge, edge + one.num_edges)
        assert batch.ptr[place] == start
        assert batch.edge_ptr[place] == edge
        assert batch.nodes[nodes].tolist() == list(range(int(store.node_ptr[g]), int(store.node_ptr[g + 1])))
        assert (batch.edge_index[:, edges] - start).tolist() == one.edge_index.tolist()
        assert store.edge_index[:, batch.edges[edges]].tolist() == one.edge_index.tolist()
        start = start + one.num_nodes
        edge = edge + one.num_edges
    assert batch.ptr[-1] == start == batch.nodes.numel()
    assert batch.edge_index.dtype == torch.int64


@given(stores(more=True), st.data())
def test_selecting(store, data):
    every = as_lists(store)
    chosen = data.draw(st.lists(st.integers(-len(store), len(store) - 1), max_size=9))
    assert as_lists(store[chosen]) == [every[g] for g in chosen]
    start, stop, step = data.draw(st.slices(len(store))).indices(len(store))
    assert (
        as_lists(store[start : None if stop < 0 else stop : step]) == every[start : None if stop < 0 else stop : step]
    )
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=len(store), max_size=len(store))))
    assert as_lists(store[mask]) == [one for one, keep in zip(every, mask.tolist(), strict=True) if keep]
    assert as_lists(store[-1]) == every[-1:]
    assert len(list(store)) == len(store)


@given(stores(more=True), st.data())
def test_a_stretch_is_a_slice_that_is_not_copied(store, data):
    first = data.draw(st.integers(0, len(store)))
    last = data.draw(st.integers(first, len(store)))
    part = store.stretch(first, last)
    expected = store[first:last]
    assert part.tensors().keys() == expected.tensors().keys()
    assert as_lists(part) == as_lists(expected)
    shared = part.edge_index.untyped_storage().data_ptr(), store.edge_index.untyped_storage().data_ptr()
    assert shared[0] == shared[1]


@given(stores(more=True), st.data())
def test_concatenating_what_was_cut(store, data):
    cut = data.draw(st.integers(0, len(store)))
    assert as_lists(concatenate([store[:cut], store[cut:]])) == as_lists(store)


@pytest.mark.parametrize(
    ("names", "kind"), [([-1, 1, 1], "i"), (["b", "a", "b"], "U"), ([7, "a", 2], "O"), ([2**63 + 1, -1, 5], "O")]
)
def test_classes_of_graphs_by_their_names(names, kind):
    labels = pack([Graph(1, label=name) for name in names]).class_labels
    assert labels.tolist() == names
    assert labels.dtype.kind == kind
    assert pack([Graph(1)]).class_labels is None


def test_concatenate_matches_labels_by_name():
    first = pack([Graph(1, label="a", node_labels=["C"]), Graph(1, label="b", node_labels=["N"])])
    second = pack([Graph(2, label="b", node_labels=["N", "O"])])
    joined = concatenate([first, second])
    assert joined.classes == ("a", "b")
    assert joined.labels.tolist() == [0, 1, 1]
    assert [joined.node_label_names[c] for c in joined.node_labels] == ["C", "N", "N", "O"]


def test_concatenate_refuses_what_does_not_fit():
    with pytest.raises(DataError, match="stores is empty"):
        concatenate([])
    with pytest.raises(DataError, match="some of the stores have node_labels"):
        concatenate([pack([Graph(1, node_labels=["C"])]), pack([Graph(1)])])
    with pytest.raises(DataError, match="node_attributes differ in width"):
        concatenate([pack([Graph(1, node_attributes=[[1]])]), pack([Graph(1, node_attributes=[[1, 2]])])])


def test_selecting_what_is_not_there():
    store = pack([Graph(1), Graph(2)])
    for wrong in (2, -3, [0, 5]):
        with pytest.raises(IndexError, match="There is no graph"):
            store[wrong]
    with pytest.raises(IndexError, match="mask of shape"):
        store[torch.tensor([True])]
    with pytest.raises(IndexError, match=r"not by torch\.float"):
        store[[0.0, 1.0]]


def test_numbers_before_words():
    codes, names = number_names(["b", 2, "a", -1, 2])
    assert names == (-1, 2, "a", "b")
    assert codes.tolist() == [3, 1, 2, 0, 1]


def test_repr_has_the_statistics():
    store = pack([Graph(3, [(0, 1), (1, 0)], "x", ["C", "C", "N"]), Graph(0, [], "y", [])], name="TINY")
    shown = "PackedGraphs(TINY: 2 graphs, 3 nodes (at most 3), 2 directed edges, 2 classes, 2 node labels)"
    assert repr(store) == shown
    assert repr(pack([])) == "PackedGraphs(graphs: 0 graphs, 0 nodes (at most 0), 0 directed edges)"


def test_to_a_device():
    store = pack([Graph(2, [(0, 1)], "x", ["C", "N"])])
    moved = store.to("meta")
    assert all(tensor.device.type == "meta" for tensor in moved.tensors().values())
    assert moved.classes == store.classes


def test_empty_store():
    store = pack([])
    assert len(store) == store.num_nodes == store.num_edges == 0
    assert store.batch([]).ptr.tolist() == [0]


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (Graph(2, [(0, 2)]), r"graph 0: the edge \[0, 2\] leaves the graph, whose nodes are 0 to 1"),
        (Graph(2, [(0, -1)]), r"the edge \[0, -1\] leaves"),
        (Graph(2, [(0, 0.5)]), "pairs of whole numbers"),
        (Graph(2, [(0, 1, 1)]), r"shape \[1, 3\]"),
        (Graph(2, [(0, 1), (1,)]), "pairs of node numbers"),
        (Graph(2, node_labels=["C"]), "graph 0: 1 node_labels for 2 nodes"),
        (Graph(1, node_labels=[1.5]), "whole numbers or strings, found 1.5"),
        (Graph(1, label=True), "found True"),
        (Graph(1, node_attributes=[["x"]]), "must be numbers"),
        (Graph(1, node_attributes=[[float("nan")]]), "must be finite, found nan"),
        (Graph(1, node_attributes=[1.0]), "expected 2 dimensions"),
        (Graph(2, [(0, 1)], edge_weights=[1, 2]), "2 edge_weights for 1 edges"),
        (Graph(2, [(0, 1)], edge_weights=[float("inf")]), "must be finite, found inf"),
        (Graph(1, where="mol 7", node_labels=[]), "mol 7: 0 node_labels"),
    ],
)
def test_bad_graphs(graph, says):
    with pytest.raises(DataError, match=says):
        pack([copy.deepcopy(graph)])


def test_all_graphs_or_none():
    with pytest.raises(DataError, match="graph 1 has no label, but other graphs have"):
        pack([Graph(1, label=1), Graph(1)])
    with pytest.raises(DataError, match="2 node_attributes each, but the first graph has 1"):
        pack([Graph(1, node_attributes=[[1]]), Graph(1, node_attributes=[[1, 2]])])


def test_check_values_finds_each_fault():
    store = pack([Graph(2, [(0, 1), (1, 0)], "x", ["C", "N"], [[1.0], [2.0]]), Graph(1, [], "y", ["C"], [[3.0]])])
    check_values(store)
    faults = {
        "edge 1 is .* in graph 0, which has 2 nodes": {"edge_index": torch.tensor([[0, 1], [1, 2]], dtype=torch.int32)},
        "node_ptr must start at 0": {"node_ptr": torch.tensor([0, 4, 3])},
        "labels must lie between 0 and 1": {"labels": torch.tensor([0, 2])},
        "node_labels must lie": {"node_labels": torch.tensor([0, -1, 1], dtype=torch.int32)},
        "graph 0: node_attributes must be finite, found nan at node 1": {
            "node_attributes": torch.tensor([[0], [float("nan")], [0]])
        },
    }
    for says, change in faults.items():
        with pytest.raises(DataError, match=says):
            check_values(replace(store, **change))
    with pytest.raises(DataError, match="labels has 1 entries, expected 2"):
        replace(store, labels=torch.tensor([0]))
    with pytest.raises(DataError, match="end with the total counts"):
        replace(store, edge_ptr=torch.tensor([0, 2]))


def test_classes_that_some_graph_has():
    store = pack([Graph(1, label=name) for name in ("b", 10, "a", 2, "b")])
    assert store.classes == (2, 10, "a", "b")
    codes, names = store[[4, 1, 0]].present_classes()
    assert (codes.tolist(), names) == ([1, 0, 1], (10, "b"))
    codes, names = replace(store, classes=("z", 3, "y", "x")).present_classes()  # nobody sorted these
    assert (codes.tolist(), names) == ([1, 0, 2, 3, 1], (3, "x", "y", "z"))
    with pytest.raises(DataError, match="the graphs of graphs have no labels"):
        pack([Graph(1)]).present_classes()


def molecule(**more):
    """A molecule of two atoms with categories and numbers; ``more`` replaces some of them."""
    given = {
        "node_categories": {"charge": [0, 1], "hybridization": ["sp3", "sp2"]},
        "edge_categories": {"ring": ["no", "no"]},
        "graph_attributes": {"temperature": 20.5, "pressure": None},
    }
    return Graph(2, [(0, 1), (1, 0)], **(given | more))


def test_several_categories_and_numbers_beside_a_graph():
    store = pack([molecule(), molecule(node_categories={"hybridization": ["sp", "sp"], "charge": [-1, 0]})])
    assert store.node_category_columns == (("charge", (-1, 0, 1)), ("hybridization", ("sp", "sp2", "sp3")))
    assert store.node_categories.dtype == torch.uint8
    assert store.node_categories.tolist() == [[1, 2], [2, 1], [0, 0], [1, 0]]
    assert store.graph_attribute_names == ("temperature", "pressure")
    assert store.graph_attributes[:, 0].tolist() == [20.5, 20.5]
    assert bool(store.graph_attributes[:, 1].isnan().all())
    assert "2 columns of node categories" in repr(store)
    assert "2 graph attributes" in repr(store)


@pytest.mark.parametrize(("values", "dtype"), [(256, torch.uint8), (257, torch.int16), (32769, torch.int32)])
def test_categories_are_stored_in_the_smallest_type_that_holds_them(values, dtype):
    store = pack([Graph(values, node_categories={"number": range(values)})])
    assert store.node_categories.dtype == dtype
    assert store.node_categories[:, 0].tolist() == list(range(values))
    halves = [pack([Graph(values - 1, node_categories={"number": range(values - 1)})]), store]
    joined = concatenate(halves)
    assert joined.node_categories.dtype == dtype
    check_values(joined)


def test_a_graph_without_nodes_needs_no_categories():
    store = pack([Graph(0), Graph(1, node_categories={"charge": [0]})])
    assert store.node_categories.tolist() == [[0]]


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (molecule(node_categories=None), "graph 1 has no node_categories, but other graphs have"),
        (
            molecule(node_categories={"charge": [0, 1]}),
            r"graph 1: node_categories are \['charge'\], expected the columns",
        ),
        (molecule(node_categories=[[0], [1]]), "node_categories are list, expected the columns"),
        (molecule(edge_categories={"ring": ["no"]}), "graph 1: 1 edge_categories of 'ring' for 2 edges"),
        (molecule(edge_categories={"ring": ["no", 0.5]}), "edge_categories of 'ring' must be whole numbers or strings"),
        (molecule(graph_attributes=None), "graph 1 has no graph_attributes"),
        (molecule(graph_attributes={"temperature": 1}), "graph 1: 1 graph_attributes, but the first graph has 2"),
        (molecule(graph_attributes={"temperature": 1, "size": 2}), "graph_attributes name 'size', which the first"),
        (
            molecule(graph_attributes={"temperature": "warm", "pressure": 2}),
            "'temperature' is 'warm', expected a finite",
        ),
        (molecule(graph_attributes={"temperature": float("inf"), "pressure": 2}), "'temperature' is inf, expected"),
    ],
)
def test_refused_categories_and_numbers(second, says):
    with pytest.raises(DataError, match=says):
        pack([molecule(), second])


def test_stores_with_other_columns_are_not_concatenated():
    first = pack([molecule()])
    with pytest.raises(DataError, match="node_categories have different columns"):
        concatenate([first, pack([molecule(node_categories={"charge": [0, 0]})])])
    with pytest.raises(DataError, match="different graph attributes"):
        concatenate([first, pack([molecule(graph_attributes={"heat": 1})])])


def test_categories_and_numbers_out_of_range():
    store = pack([molecule()])
    with pytest.raises(DataError, match="node_categories of column 'charge' must lie between 0 and 1"):
        check_values(replace(store, node_categories=torch.tensor([[0, 0], [2, 0]], dtype=torch.uint8)))
    with pytest.raises(DataError, match="graph 0: 'pressure' is inf, expected a number of at most 1e"):
        check_values(replace(store, graph_attributes=torch.tensor([[0, torch.inf]])))
    with pytest.raises(DataError, match="2 columns of node categories have 1 names"):
        replace(store, node_category_columns=store.node_category_columns[:1])
    with pytest.raises(DataError, match="more than one graph attribute"):
        replace(store, graph_attribute_names=("a", "a"))
