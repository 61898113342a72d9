"""GINE against PyG's layer, and what becomes of edge labels that are not known."""

import pytest
import torch
from torch_geometric.nn import GINEConv

from sopool.nn.gnn import GNN, VARIANTS
from tests.helpers.strategies import draw_rows
from tests.ops.test_labelled import labelled, random_graphs

LABELLED = [name for name, variant in VARIANTS.items() if variant.labelled]


def perceptron(x, blocks):
    """That of a layer, with torch's own norms."""
    for block in blocks:
        norm = torch.nn.BatchNorm1d(len(block.scale), dtype=torch.float64)
        x = norm(x @ block.weight).relu()
    return x


@pytest.mark.parametrize("name", LABELLED)
def test_layers_are_pyg_s(name):
    torch.manual_seed(0)
    gnn = GNN(name, 3, 5, 3, edge_labels=4).double()
    if gnn.eps is not None:
        torch.nn.init.normal_(gnn.eps)
    edges, labels = random_graphs(1, [12], 4)
    x = draw_rows(2, 12, 3)
    layers = gnn(x, labelled(edges, labels, 12, 5), torch.tensor([0, 12]))
    for number, (blocks, vectors) in enumerate(zip(gnn.layers, gnn.edges, strict=True)):
        layer = GINEConv(torch.nn.Identity()).double()
        layer.eps += 0 if gnn.eps is None else gnn.eps[number].detach()
        want = perceptron(layer(layers[number], edges, vectors.weight[labels]), blocks)
        torch.testing.assert_close(layers[number + 1], want, rtol=1e-12, atol=1e-12)


def test_unknown_labels_get_the_mean_of_the_known_ones():
    gnn = GNN("gine", 2, 4, 1, edge_labels=3)
    (vectors,) = gnn.edges
    a, b, c = vectors.weight
    torch.testing.assert_close(vectors(gnn.known), torch.stack([a, b, c, (a + b + c) / 3]).unsqueeze(0))
    gnn.known.copy_(torch.tensor([True, False, True]))
    mean = (a + c) / 2
    torch.testing.assert_close(vectors(gnn.known), torch.stack([a, mean, c, mean]).unsqueeze(0))
    gnn.known.zero_()
    assert not vectors(gnn.known).any()


def test_labels_must_be_announced():
    with pytest.raises(ValueError, match="edge_labels must be at least 1"):
        GNN("gine", 2, 4, 1)
