"""What is not a number stays so: a maximum must not hide that something went wrong."""

import pytest
import torch

from sopool.ops.message_passing.neighbors import aggregate
from sopool.ops.numba.network import Layers, run_network
from sopool.ops.segment.largest import segment_max
from tests.helpers.strategies import draw_rows
from tests.ops.test_layout import norm
from tests.ops.test_transforms import CHANNELS, FUNCTIONS, GRAPH, LABELLED, PTR, SIZES


def spoilt(row):
    x = draw_rows(0, sum(SIZES), CHANNELS)
    x[row, 1] = torch.nan
    return x


@pytest.mark.parametrize("row", [0, 2, 3, 7])
def test_largest_of_a_graph(row):
    x = spoilt(row).requires_grad_()
    parts = [rows.max(0).values if len(rows) else rows.new_zeros(CHANNELS) for rows in x.split(SIZES)]
    got = segment_max(x, PTR)
    want = torch.stack(parts)
    torch.testing.assert_close(got, want, equal_nan=True)
    torch.testing.assert_close(*(torch.autograd.grad(out.sum(), x) for out in (got, want)))
    assert segment_max(torch.full((2, 1), -torch.inf), torch.tensor([0, 2])).item() == -torch.inf


@pytest.mark.parametrize("rows", [[0], [1, 2], [7]])
def test_largest_of_neighbours(rows):
    """Of several the gradient goes to all, as that of equal ones does."""
    x = spoilt(rows).requires_grad_()
    got = aggregate(x, GRAPH, "max")
    gradients = torch.zeros_like(x)
    for node, own in enumerate(GRAPH.nodes.split(GRAPH.ptr.diff().tolist())):
        rows = x[own].detach()
        largest = rows.max(0).values
        torch.testing.assert_close(got[node], largest, equal_nan=True)
        chosen = (rows == largest) | (rows.isnan() & largest.isnan())
        gradients.index_add_(0, own, chosen.double() / chosen.sum(0))
    torch.testing.assert_close(torch.autograd.grad(got.sum(), x)[0], gradients)


def test_relu():
    """Along edges for all that aggregate it; after a batch norm for the whole model."""
    lists = LABELLED.nodes.split(LABELLED.ptr.diff().tolist())
    targets = torch.tensor([1 in own.tolist() for own in lists])
    assert torch.equal(FUNCTIONS["labelled"](spoilt(1))[:, 1].isnan(), targets)
    assert torch.equal(norm(spoilt(1)).isnan().all(1), torch.arange(sum(SIZES)) < 3)


@pytest.mark.parametrize("way", ["loops"], indirect=True)
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_through_a_folded_network(way, how):
    eps = torch.zeros(1, 1).double()
    weight = draw_rows(1, 1, CHANNELS, 2)
    bias = draw_rows(2, 1, 2)
    for row in (0, 1):
        out = run_network(spoilt(row), GRAPH, PTR, Layers(how, eps, [weight], [bias]))[1]
        assert out[:2].isnan().all()  # nodes 0 and 1 are neighbors
