import networkx as nx
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

from sopool.data.formats.convert import from_networkx, from_pyg, to_networkx, to_pyg
from sopool.errors import DataError
from tests.helpers.data_graphs import as_lists, stores


def by_edges(graphs):
    """NetworkX keeps edges by node, so their order may change: compare them as a sorted list."""
    for one in graphs:
        keys = [key for key in ("edges", "edge_labels", "edge_weights") if one[key] is not None]
        rows = sorted(zip(*(one.pop(key) for key in keys), strict=True), key=repr)
        one["rows"] = rows
    return graphs


@given(stores())
def test_pyg_round_trip(store):
    """Numbers stand for label names in PyG; everything else survives."""
    again = from_pyg(to_pyg(store), labels=[store.classes[c] for c in store.labels])
    assert again.edge_index.tolist() == store.edge_index.tolist()
    assert again.node_ptr.tolist() == store.node_ptr.tolist()
    assert again.labels.tolist() == store.labels.tolist() or len(set(store.labels.tolist())) < len(store.classes)
    for name in ("node_attributes", "edge_weights"):
        if getattr(store, name) is not None and getattr(store, name).numel():
            assert torch.equal(getattr(again, name), getattr(store, name))
    assert (again.node_labels is None) == (store.node_labels is None)


@given(stores())
def test_networkx_round_trip(store):
    """Directed, undirected and parallel edges, self-loops, isolated nodes, labels, weights."""
    want = [one | {"node_attributes": None} for one in as_lists(store)]
    got = as_lists(from_networkx(to_networkx(store)))
    for one in want + got:  # what no node or edge carries is not there in NetworkX
        for key in ("node_labels", "edge_labels", "edge_weights"):
            one[key] = one[key] or None
    if any(bool(one["edges"]) for one in want):
        assert by_edges(got) == by_edges(want)


@given(stores(undirected=True))
def test_undirected_graphs_come_back_undirected(store):
    assert not any(graph.is_directed() for graph in to_networkx(store))


def test_networkx_kinds():
    graphs = [
        nx.path_graph(3),
        nx.DiGraph([(0, 1)]),
        nx.MultiGraph([(0, 1), (0, 1)]),
        nx.MultiDiGraph([(0, 1), (0, 1)]),
    ]
    kinds = [type(graph) for graph in to_networkx(from_networkx(graphs, labels=[0, 1, 0, 1]))]
    assert kinds == [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def test_networkx_nodes_may_have_any_name():
    graph = nx.Graph([("b", "a"), ("a", (1, 2))], label="mine")
    graph.nodes["a"]["label"] = graph.nodes["b"]["label"] = graph.nodes[(1, 2)]["label"] = "C"
    store = from_networkx([graph])
    assert store.classes == ("mine",)
    assert store.edge_index.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]


def test_weights_can_be_left_out():
    graphs = [nx.Graph([(0, 1, {"weight": 2.0})]), nx.path_graph(3)]
    with pytest.raises(DataError, match="graph 1 has no edge_weights"):
        from_networkx(graphs, labels=[0, 1])
    assert from_networkx(graphs, labels=[0, 1], weight=None).edge_weights is None


def test_labels_are_kept_as_given():
    graphs = [Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=1, y=torch.tensor([y])) for y in (5, -1)]
    assert from_pyg(graphs).classes == (-1, 5)
    assert from_pyg(graphs, labels=["no", "yes"]).classes == ("no", "yes")
    assert from_pyg(graphs, labels=torch.tensor([1, 1])).classes == (1,)


def test_errors():
    with pytest.raises(DataError, match="1 labels for 2 graphs"):
        from_networkx([nx.path_graph(2)] * 2, labels=[1])
    with pytest.raises(DataError, match="graph 0 has no edge_index"):
        from_pyg([Data(x=torch.ones(2, 1))])
    mixed = nx.path_graph(3)
    mixed.nodes[0]["label"] = "C"
    with pytest.raises(DataError, match="graph 0, nodes: 1 of 3 have the attribute 'label'"):
        from_networkx([mixed])


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x.requires_grad_(),
        lambda x: x.to_sparse(),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: x.double(),
    ],
)
def test_pyg_attributes_of_any_kind_are_the_same_numbers(wrap):
    edges = torch.tensor([[0, 1], [1, 0]])
    data = Data(x=wrap(torch.tensor([[0.0, 1.5], [2.0, 0.0]])), edge_index=edges, num_nodes=2)
    assert from_pyg([data]).node_attributes.tolist() == [[0.0, 1.5], [2.0, 0.0]]
    data = Data(edge_attr=wrap(torch.tensor([3.0, 4.0])), edge_index=edges.tolist(), num_nodes=2)
    store = from_pyg([data])
    assert store.edge_attributes.tolist() == [[3.0], [4.0]]
    assert store.edge_index.tolist() == edges.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": torch.zeros(3, 2, dtype=torch.long)}, r"edge_index of shape \[3, 2\], expected \[2, edges\]"),
        ({"x": [["a"], ["b"]]}, "graph 0: x must be a tensor of numbers"),
        ({"node_label": ["C", "O"]}, "graph 0: node_label must be a tensor of numbers"),
    ],
)
def test_what_is_no_tensor_is_named(changes, message):
    data = Data(**({"edge_index": torch.tensor([[0, 1], [1, 0]]), "num_nodes": 2} | changes))
    with pytest.raises(DataError, match=message):
        from_pyg([data])


@pytest.mark.parametrize("convert", [from_networkx, from_pyg])
def test_what_is_no_list_of_graphs_is_refused(convert):
    one = nx.path_graph(3) if convert is from_networkx else Data(edge_index=torch.empty(2, 0).long(), num_nodes=1)
    with pytest.raises(DataError, match="a single graph was given: put it into a list"):
        convert(one)
    with pytest.raises(DataError, match="graph 1 is of type int, expected"):
        convert([one, 7])


def test_one_node_may_have_a_bare_number():
    dot = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=1)
    dot.x = torch.tensor(2.5)
    dot.node_label = torch.tensor(7)
    store = from_pyg([dot])
    assert (store.node_attributes.tolist(), store.node_label_names) == ([[2.5]], (7,))
    dot.num_nodes = 3
    with pytest.raises(DataError, match="graph 0: 1 node_labels for 3 nodes"):
        from_pyg([dot])


def test_graphs_without_nodes_keep_the_width_of_their_attributes():
    data = Data(x=torch.empty(0, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert from_pyg([data]).node_attributes.shape == (0, 3)


def test_networkx_attributes_that_are_numbers():
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: {"mass": 1, "at": [0.0, 2.0]}, 1: {"mass": 12.5, "at": (1.0, 3.0)}})
    assert from_networkx([graph]).node_attributes is None
    assert from_networkx([graph], node_attributes="mass").node_attributes.tolist() == [[1.0], [12.5]]
    store = from_networkx([graph, nx.Graph()], node_attributes=["at", "mass"])
    assert store.node_attributes.tolist() == [[0.0, 2.0, 1.0], [1.0, 3.0, 12.5]]
    again = from_networkx(to_networkx(store), node_attributes="x")
    assert torch.equal(again.node_attributes, store.node_attributes)
    graph.nodes[1]["at"] = "here"
    with pytest.raises(DataError, match="graph 0, nodes: attributes must be numbers or lists of equal length"):
        from_networkx([graph], node_attributes="at")
    del graph.nodes[1]["mass"]
    with pytest.raises(DataError, match="graph 0, nodes: 1 of 2 have the attribute 'mass'"):
        from_networkx([graph], node_attributes="mass")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"node_label": "color"}, "no node has the attribute 'color'. Attributes found: 'colour'"),
        ({"node_attributes": ["mass"]}, "no node has the attribute 'mass'"),
        ({"edge_label": "kind"}, "no edge has the attribute 'kind'. Attributes found: none"),
        ({"weight": "length"}, "no edge has the attribute 'length'"),
    ],
)
def test_networkx_attributes_that_nobody_has(names, message):
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, "red", "colour")
    with pytest.raises(DataError, match=message):
        from_networkx([graph], **names)
