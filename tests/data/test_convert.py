import networkx as nx
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

from sopool.data.formats.convert import from_networkx, from_pyg, to_networkx
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from tests.helpers.data_graphs import stores


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
    with pytest.warns(UserWarning, match="from_networkx does not read the node attributes 'mass', 'at'. Name them in"):
        assert from_networkx([graph]).node_attributes is None
    with pytest.warns(UserWarning, match="does not read the node attributes 'at'"):
        assert from_networkx([graph], node_attributes="mass").node_attributes.tolist() == [[1.0], [12.5]]
    store = from_networkx([graph, nx.Graph()], node_attributes=["at", "mass"])
    assert store.node_attributes.tolist() == [[0.0, 2.0, 1.0], [1.0, 3.0, 12.5]]
    again = from_networkx(to_networkx(store))
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
        ({"node_categories": ["charge"]}, "no node has the attribute 'charge'"),
        ({"edge_categories": ["stereo"]}, "no edge has the attribute 'stereo'"),
        ({"edge_attributes": "length"}, "no edge has the attribute 'length'"),
        ({"graph_attributes": "heat"}, "no graph has the attribute 'heat'. Attributes found: none"),
        ({"node_categories": "x"}, "'x' is named in node_categories and is also read as label, number or weight"),
        ({"edge_categories": "weight"}, "'weight' is named in edge_categories and is also read"),
        ({"node_categories": ["colour", "colour"]}, "'colour' is the name of more than one column of node categories"),
    ],
)
def test_networkx_attributes_that_nobody_has(names, message):
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, "red", "colour")
    with pytest.raises(DataError, match=message):
        from_networkx([graph], **names)


def carrying(**changes):
    """A NetworkX graph of a bond that carries everything, with some attributes changed."""
    values = {"charge": 0, "mass": 1.5, "stereo": "any", "length": [1.0, 2.0], "weight": -1.0} | changes
    graph = nx.Graph(heat=20.5)
    graph.add_nodes_from([0, 1], **{name: values[name] for name in ("charge", "mass")})
    graph.add_edge(0, 1, **{name: values[name] for name in ("stereo", "length", "weight")})
    return graph


NAMED = {
    "node_categories": "charge",
    "node_attributes": "mass",
    "edge_categories": ["stereo"],
    "edge_attributes": ["length"],
    "graph_attributes": ["heat"],
}


def test_networkx_graphs_carry_everything_that_is_named():
    lone = nx.Graph()
    lone.add_node("a", charge=1, mass=0)
    store = from_networkx([carrying(weight=0), carrying(weight=-2), lone], **NAMED)
    assert [(column.name, column.values) for column in store.node_category_columns] == [("charge", (0, 1))]
    assert store.edge_category_columns[0].values == ("any",)
    assert store.edge_attributes.tolist() == [[1.0, 2.0]] * 4
    assert store.edge_weights.tolist() == [0, 0, -2, -2]
    assert store.graph_attributes[:2].tolist() == [[20.5], [20.5]]
    assert bool(store.graph_attributes[2].isnan())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"charge": 0.5}, "node_categories of 'charge' must be whole numbers or strings, found 0.5"),
        ({"mass": float("nan")}, "graph 1: node_attributes must be finite, found nan at node 0"),
        ({"weight": float("inf")}, "graph 1: edge_weights must be finite, found inf at edge 0"),
        ({"length": [1.0]}, "graph 1: 1 edge_attributes each, but the first graph has 2"),
        ({"length": [1.0, float("nan")]}, "graph 1: edge_attributes must be finite, found nan at edge 0"),
        ({"stereo": None}, "edge_categories of 'stereo' must be whole numbers or strings, found None"),
    ],
)
def test_networkx_values_that_cannot_be_used(changes, message):
    with pytest.raises(DataError, match=message):
        from_networkx([carrying(), carrying(**changes)], **NAMED)


def test_networkx_categories_must_be_on_all_nodes():
    bare = carrying()
    for node in bare:
        del bare.nodes[node]["charge"]
    with pytest.raises(DataError, match="graph 1, nodes: 0 of 2 have the attribute 'charge', expected all"):
        from_networkx([carrying(), bare], **NAMED)


def test_networkx_attributes_that_are_not_read_are_named():
    says = "read the node attributes 'charge'; the edge attributes 'stereo', 'length'; the graph attributes 'heat'"
    with pytest.warns(UserWarning, match=says) as caught:
        from_networkx([carrying()] * 3, node_attributes="mass")
    assert len(caught) == 1
    from_networkx([nx.path_graph(2, nx.Graph(name="a path", label=1))])  # names and labels are no numbers


def test_columns_and_attributes_of_one_name_are_not_written_to_networkx():
    with pytest.raises(DataError, match="'label' is the name of a column of node categories and of another attribute"):
        to_networkx(pack([Graph(1, node_labels=["C"], node_categories={"label": [0]})]))
    with pytest.raises(DataError, match="'label' is the name of a graph attribute and of another"):
        to_networkx(pack([Graph(1, label="a", graph_attributes={"label": 0})]))


EDGES = torch.tensor([[0, 1], [1, 0]])


def coded(**more):
    """PyG data whose features are codes, as those of ``from_smiles``."""
    values = {"x": torch.tensor([[6, 0], [8, -1]]), "edge_attr": torch.tensor([[1], [1]])}
    values |= {"edge_index": EDGES, "num_nodes": 2}
    return Data(**values | more)


def test_pyg_codes_are_categories_if_asked():
    store = from_pyg([coded()], node_categories=True, edge_categories="order")
    assert store.node_category_columns == (("category 0", (6, 8)), ("category 1", (-1, 0)))
    assert store.edge_category_columns == (("order", (1,)),)
    assert store.node_attributes is None
    assert store.edge_attributes is None
    empty = Data(x=torch.empty(0, 2), edge_index=EDGES[:, :0])
    store = from_pyg([coded(edge_attr=torch.ones(2)), empty], node_categories=["element", "charge"])
    assert [column.name for column in store.node_category_columns] == ["element", "charge"]
    assert store.edge_attributes.tolist() == [[1.0], [1.0]]


def test_pyg_codes_that_would_be_measures_are_said_once():
    says = "x and edge_attr of the graphs hold whole numbers.*give node_categories=True and edge_categories=True"
    with pytest.warns(UserWarning, match=says) as caught:
        store = from_pyg([coded()] * 3)
    assert len(caught) == 1
    assert store.node_attributes[:2].tolist() == [[6, 0], [8, -1]]
    with pytest.warns(UserWarning, match="^edge_attr of the graphs hold.*give edge_categories=True"):
        from_pyg([coded()], node_categories=True)


def test_pyg_numbers_beside_a_graph():
    data = [Data(edge_index=EDGES, num_nodes=2, u=torch.tensor(u)) for u in ([[20.5, torch.nan]], [1.0, 2.0])]
    store = from_pyg(data)
    assert store.graph_attribute_names == ("attribute 0", "attribute 1")
    assert store.graph_attributes[:, 0].tolist() == [20.5, 1]
    assert bool(store.graph_attributes[0, 1].isnan())
    assert from_pyg(data, graph_attributes=["heat", "size"]).graph_attribute_names == ("heat", "size")


def test_pyg_tensors_that_are_not_read_are_named():
    with pytest.warns(UserWarning, match="from_pyg does not read pos, z of the graphs") as caught:
        from_pyg([Data(edge_index=EDGES, num_nodes=2, pos=torch.zeros(2, 3), z=torch.zeros(2), smiles="CC")] * 2)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("changes", "asked", "message"),
    [
        ({"x": torch.ones(2, 2)}, {"node_categories": True}, "graph 1: x is of type torch.float32, but categories are"),
        ({"x": torch.ones(2, 3).long()}, {"node_categories": True}, "graph 1: node_categories are"),
        ({}, {"node_categories": "element"}, r"graph 0: x has 2 columns, but node_categories names 1: \['element'\]"),
        ({}, {"node_categories": ["a", "a"]}, "'a' is the name of more than one column"),
        ({"x": None}, {"node_categories": True}, "graph 1 has no node_categories"),
        (
            {"edge_weight": torch.tensor([1, torch.inf])},
            {},
            "graph 1: edge_weights must be finite, found inf at edge 1",
        ),
        ({"edge_attr": torch.tensor([[1], [torch.nan]])}, {}, "graph 1: edge_attributes must be finite, found nan at"),
        ({"edge_attr": torch.ones(2, 2)}, {}, "graph 1: 2 edge_attributes each, but the first graph has 1"),
        ({"x": torch.ones(2, 2) * 1j}, {}, "graph 1: x holds complex numbers, expected real ones"),
        ({"u": torch.ones(2, 2)}, {}, r"graph 1: u has shape \[2, 2\], expected \[1, D\]"),
        ({"u": torch.tensor([torch.inf])}, {}, "graph 1: 'attribute 0' is inf, expected a finite number"),
        (
            {"u": torch.ones(1, 2)},
            {"graph_attributes": "heat"},
            "graph 1: u has 2 columns, but graph_attributes names 1",
        ),
        ({"u": None}, {"graph_attributes": "heat"}, "graph 1 has no u, but graph_attributes names its columns"),
    ],
)
def test_pyg_values_that_cannot_be_used(changes, asked, message):
    first = coded(u=torch.ones(1, 1), edge_weight=torch.ones(2))
    with pytest.raises(DataError, match=message):
        from_pyg([first, coded(**{"u": torch.ones(1, 1), "edge_weight": torch.ones(2)} | changes)], **asked)


def test_pyg_without_what_was_asked_for():
    with pytest.raises(DataError, match="edge_categories=True was given, but the graphs have no edge_attr"):
        from_pyg([Data(edge_index=EDGES, num_nodes=2)], edge_categories=True)
