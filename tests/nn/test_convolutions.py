"""Readouts as ``aggr=`` of PyG's layers, and what such layers do with the result."""

import pytest
import torch
from torch.autograd import gradcheck
from torch_geometric import nn as pyg
from torch_geometric.nn.aggr import Aggregation, MultiAggregation

from sopool.nn import make_readout
from tests.helpers.readouts import CHANNELS, SIZES, batch_of, every_own_readout, readout_of
from tests.helpers.strategies import draw_rows

EDGES = torch.tensor([[0, 1, 2, 3, 3, 0, 5], [2, 0, 0, 2, 2, 3, 5]])
KINDS = torch.tensor([0, 1, 2, 0, 1, 2, 0])
KEEP_WIDTH = {name: {} for name in ("sum", "mean", "max", "sopool-attn", "attnpool")} | {"sopool-m-attn": {"heads": 1}}
every_of_fixed_width = pytest.mark.parametrize("name", KEEP_WIDTH)
WITH_HEADS = {
    "gat": lambda aggr: pyg.GATConv(CHANNELS, CHANNELS, heads=2, aggr=aggr),
    "gat-mean": lambda aggr: pyg.GATConv(CHANNELS, CHANNELS, heads=2, concat=False, residual=True, aggr=aggr),
    "gat-v2": lambda aggr: pyg.GATv2Conv(CHANNELS, CHANNELS, heads=2, aggr=aggr),
    "transformer": lambda aggr: pyg.TransformerConv(CHANNELS, CHANNELS, heads=2, beta=True, aggr=aggr),
    "super-gat": lambda aggr: pyg.SuperGATConv(CHANNELS, CHANNELS, heads=2, aggr=aggr).eval(),
    "general": lambda aggr: pyg.GeneralConv(CHANNELS, CHANNELS, heads=2, attention=True, aggr=aggr),
    "relational": lambda aggr: pyg.RGATConv(CHANNELS, CHANNELS, 3, heads=2, aggr=aggr),
}


class OneByOne(Aggregation):
    """Each head of each node by itself: messages [E, heads, f] over their first dimension."""

    def __init__(self, readout):
        super().__init__()
        self.readout = readout

    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2):
        assert x.dim() == 3
        assert dim in (0, -3)
        ends = [torch.tensor([0, int((index == node).sum())]) for node in range(dim_size)]
        parts = [
            self.readout(x[index == node, head], ptr=ends[node])
            for node in range(dim_size)
            for head in range(x.shape[1])
        ]
        return torch.cat(parts).view(dim_size, x.shape[1], -1)


def fixed_width(name):
    torch.manual_seed(1)
    return make_readout(name, CHANNELS, **KEEP_WIDTH[name]).double()


@every_of_fixed_width
@pytest.mark.parametrize("layer", WITH_HEADS)
def test_layers_with_heads(name, layer):
    """Messages [E, heads, f]: every head is pooled by itself."""
    x = draw_rows(0, 6, CHANNELS)
    readout = fixed_width(name)
    more = [KINDS] if layer == "relational" else []
    conv = WITH_HEADS[layer](readout).double()
    got = conv(x, EDGES, *more)
    conv.aggr_module = MultiAggregation([readout, "sum"], mode="sum")
    with_sum = conv(x, EDGES, *more)
    conv.aggr_module = OneByOne(readout)
    torch.testing.assert_close(got, conv(x, EDGES, *more))
    conv.aggr_module = MultiAggregation([OneByOne(readout), "sum"], mode="sum")
    torch.testing.assert_close(with_sum, conv(x, EDGES, *more))


@every_of_fixed_width
def test_layers_that_change_the_result_in_place(name):
    x = draw_rows(0, 6, CHANNELS).float()
    layer = pyg.GCN2Conv(CHANNELS, alpha=0.1, add_self_loops=False, normalize=False, aggr=fixed_width(name).float())
    layer(x, x, EDGES).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


@every_own_readout
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [0, 1])
def test_the_result_is_contiguous_and_may_be_changed_in_place(name, dtype, dim):
    readout = readout_of(name, dtype)
    _, _, index = batch_of(SIZES)
    for shape in [(len(index), CHANNELS), (len(index), 2, CHANNELS)]:
        x = draw_rows(0, *shape).to(dtype)
        if dim:
            x = x.transpose(0, 1).contiguous()
        x.requires_grad_()
        (gradient,) = torch.autograd.grad((2 * readout(x, index, dim=dim)).sum(), x)
        out = readout(x, index, dim=dim)
        assert out.is_contiguous()
        (in_place,) = torch.autograd.grad(out.mul_(2).sum(), x)
        torch.testing.assert_close(in_place, gradient)


def test_gradients_through_heads():
    readout = readout_of("sopool-attn")
    x = draw_rows(0, 7, 2, CHANNELS).requires_grad_()
    assert gradcheck(lambda x: readout(x, EDGES[1], dim_size=6, dim=0).view(6, -1), (x,))


@every_own_readout
def test_rows_without_channels_are_refused(name):
    with pytest.raises(ValueError, match=r"x has shape \[3\].*x\.unsqueeze\(-1\)"):
        readout_of(name)(torch.ones(3), torch.zeros(3, dtype=torch.long), dim=0)
