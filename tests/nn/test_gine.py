"""GINE against PyG's layer, and what becomes of categories of edges that are not known."""

import pytest
import torch
from torch_geometric.nn import GINEConv

from sopool.nn.gnn import GNN, VARIANTS, EdgeSpec
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import EdgeLabels, neighbors_of
from tests.helpers.strategies import draw_rows
from tests.ops.test_labelled import labelled, random_graphs

LABELLED = [name for name, variant in VARIANTS.items() if variant.labelled]
PTR = torch.tensor([0, 12])


def perceptron(x, blocks):
    """That of a layer, with torch's own norms."""
    for block in blocks:
        norm = torch.nn.BatchNorm1d(len(block.scale), dtype=torch.float64)
        x = norm(x @ block.weight).relu()
    return x


def network(name, spec, layers=3):
    torch.manual_seed(0)
    gnn = GNN(name, 3, 5, layers, spec).double()
    if gnn.eps is not None:
        torch.nn.init.normal_(gnn.eps)
    return gnn


def pyg_layer(gnn, number):
    """GINEConv without its perceptron, which takes a vector for each edge."""
    layer = GINEConv(torch.nn.Identity()).double()
    layer.eps += 0 if gnn.eps is None else gnn.eps[number].detach()
    return layer


@pytest.mark.parametrize("name", LABELLED)
def test_layers_are_pyg_s(name):
    gnn = network(name, EdgeSpec((4,)))
    edges, labels = random_graphs(1, [12], 4)
    layers = gnn(draw_rows(2, 12, 3), labelled(edges, labels, 12, 5), PTR)
    for number, (blocks, vectors) in enumerate(zip(gnn.layers, gnn.edges, strict=True)):
        want = perceptron(pyg_layer(gnn, number)(layers[number], edges, vectors.weight[labels]), blocks)
        torch.testing.assert_close(layers[number + 1], want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LABELLED)
def test_layers_with_attributes_are_pyg_s(name):
    """Those with edge_dim, whose linear map has a bias that is zero here."""
    gnn = network(name, EdgeSpec(attributes=2))
    edges, _ = random_graphs(1, [12], 4)
    attributes = draw_rows(3, edges.shape[1], 2)
    layers = gnn(draw_rows(2, 12, 3), neighbors_of(edges, 12, edge_attr=attributes), PTR)
    for number, (blocks, mapped) in enumerate(zip(gnn.layers, gnn.maps, strict=True)):
        width = layers[number].shape[1]
        layer = GINEConv(torch.nn.Linear(width, width), edge_dim=2).double()
        layer.nn = torch.nn.Identity()
        layer.eps += 0 if gnn.eps is None else gnn.eps[number].detach()
        layer.lin.weight.data = mapped.weight.detach().t()
        layer.lin.bias.data.zero_()
        want = perceptron(layer(layers[number], edges, attributes), blocks)
        torch.testing.assert_close(layers[number + 1], want, rtol=1e-12, atol=1e-12)


COMBINATIONS = torch.tensor([[0, 4], [2, 4], [1, 5], [3, 5], [3, 6], [0, 6]])
"""Of a column of three values and one of two, whose unknown values are 3 and 6."""


def vectors_by_hand(vectors):
    """The vector of each combination, one by one, with all values known."""
    a, b = vectors.weight.split([3, 2])
    table = torch.cat([a, a.mean(0, keepdim=True), b, b.mean(0, keepdim=True)])
    return torch.stack([table[first] + table[second] for first, second in COMBINATIONS.tolist()])


@pytest.mark.parametrize("name", LABELLED)
@pytest.mark.parametrize("attributes", [0, 2])
@pytest.mark.parametrize("weights", [False, True])
def test_everything_that_edges_have(name, attributes, weights):
    """Several categories, attributes and weights, against a loop over edges; and the gradients of all parameters."""
    gnn = network(name, EdgeSpec((3, 2), attributes, weights), layers=2)
    edges, codes = random_graphs(1, [12], len(COMBINATIONS))
    given = draw_rows(3, edges.shape[1], 2), draw_rows(4, edges.shape[1])
    graph = neighbors_of(edges, 12, codes, len(COMBINATIONS), *given)
    graph = graph._replace(labels=graph.labels._replace(combinations=COMBINATIONS))
    x = draw_rows(2, 12, 3)
    got = gnn(x, graph, PTR)
    want = [x]
    for number, blocks in enumerate(gnn.layers):
        shifts = vectors_by_hand(gnn.edges[number])[codes]
        if attributes:
            shifts = shifts + given[0] @ gnn.maps[number].weight
        messages = (want[-1][edges[0]] + shifts).relu() * (given[1].unsqueeze(1) if weights else 1)
        own = want[-1] if gnn.eps is None else (1 + gnn.eps[number]) * want[-1]
        want.append(perceptron(own.index_add(0, edges[1], messages), blocks))
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    factor = draw_rows(5, 12, 5)
    learned = [p for name, p in gnn.named_parameters() if "weight" in name or name == "eps"]
    gradients = [torch.autograd.grad((out[-1] * factor).sum(), learned) for out in (got, want)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-11)


def test_a_column_with_every_combination_is_a_column_alone():
    gnn = network("gine", EdgeSpec((4,)))
    edges, labels = random_graphs(1, [12], 4)
    graph = labelled(edges, labels, 12, 5)
    given = EdgeLabels(*graph.labels[:3], combinations=torch.arange(5).unsqueeze(1))
    x = draw_rows(2, 12, 3)
    torch.testing.assert_close(gnn(x, graph._replace(labels=given), PTR), gnn(x, graph, PTR), rtol=0, atol=0)


def test_unknown_labels_get_the_mean_of_the_known_ones():
    gnn = GNN("gine", 2, 4, 1, EdgeSpec((3,)))
    (vectors,) = gnn.edges
    a, b, c = vectors.weight
    torch.testing.assert_close(vectors(gnn.known), torch.stack([a, b, c, (a + b + c) / 3]).unsqueeze(0))
    gnn.known.copy_(torch.tensor([True, False, True]))
    mean = (a + c) / 2
    torch.testing.assert_close(vectors(gnn.known), torch.stack([a, mean, c, mean]).unsqueeze(0))
    gnn.known.zero_()
    assert not vectors(gnn.known).any()


def test_unknown_values_of_several_columns():
    """The mean is that of the known values of the same column."""
    gnn = GNN("gine", 2, 4, 1, EdgeSpec((3, 2)))
    (vectors,) = gnn.edges
    a, _, c, _, e = vectors.weight
    gnn.known.copy_(torch.tensor([True, False, True, False, True]))
    mean = (a + c) / 2
    torch.testing.assert_close(vectors(gnn.known), torch.stack([a, mean, c, mean, e, e, e]).unsqueeze(0))
    pairs = torch.tensor([[1, 4], [0, 6], [3, 5]])
    torch.testing.assert_close(vectors(gnn.known, pairs), torch.stack([mean + e, a + e, mean + e]).unsqueeze(0))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_network_ignores_what_it_does_not_use(name):
    spec = EdgeSpec((4,)) if name in LABELLED else EdgeSpec()
    gnn = network(name, spec)
    edges, labels = random_graphs(1, [12], 4)
    x = draw_rows(2, 12, 3)
    plain = neighbors_of(edges, 12, labels, 5)
    rich = neighbors_of(edges, 12, labels, 5, draw_rows(3, edges.shape[1], 2), draw_rows(4, edges.shape[1]))
    torch.testing.assert_close(gnn(x, rich, PTR), gnn(x, plain, PTR), rtol=0, atol=0)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_network_without_the_weights_or_attributes_that_it_uses(name):
    x = draw_rows(2, 2, 3)
    ptr = torch.tensor([0, 2])
    plain = labelled(torch.tensor([[0], [1]]), torch.tensor([0]), 2, 3)
    with pytest.raises(ValueError, match=r"weights of edges, but the edges have none.*as Neighbors.values"):
        network(name, EdgeSpec((2,), weights=True))(x, plain, ptr)
    if name in LABELLED:
        gnn = network(name, EdgeSpec(attributes=2))
        with pytest.raises(ValueError, match="uses 2 attributes of edges, but the edges have none"):
            gnn(x, plain, ptr)
        with pytest.raises(ValueError, match="uses 2 attributes of edges, but the edges have 3"):
            gnn(x, neighbors_of(torch.tensor([[0], [1]]), 2, edge_attr=torch.ones(1, 3)), ptr)
        with pytest.raises(ValueError, match="which pooled graphs do not have"):
            gnn(x, Dense(torch.ones(1, 2, 2).double()), ptr)


def test_edges_with_other_columns_than_the_network_uses():
    edges = neighbors_of(torch.tensor([[0], [1]]), 2, torch.tensor([0]), 1)
    pairs = edges._replace(labels=edges.labels._replace(combinations=torch.tensor([[0, 4]])))
    x = draw_rows(2, 2, 3)
    ptr = torch.tensor([0, 2])
    with pytest.raises(ValueError, match="uses 2 columns of categories of edges, but the edges have 1"):
        network("gine", EdgeSpec((3, 2)))(x, edges, ptr)
    with pytest.raises(ValueError, match="uses 1 columns of categories of edges, but the edges have 2"):
        network("gine", EdgeSpec((3,)))(x, pairs, ptr)


def test_what_edges_have_must_be_announced():
    with pytest.raises(ValueError, match="uses categories or attributes of edges, but there are none"):
        GNN("gine", 2, 4, 1)


def test_only_networks_whose_batches_can_be_padded_are_captured():
    assert GNN("gine", 2, 4, 1, EdgeSpec((3, 2))).capturable
    assert not GNN("gine", 2, 4, 1, EdgeSpec(attributes=1)).capturable
    assert not GNN("gcn", 2, 4, 1, EdgeSpec(weights=True)).capturable
    assert GNN("gcn", 2, 4, 1, EdgeSpec(attributes=1)).capturable
