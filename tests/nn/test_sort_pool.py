"""SortPool in any order, where PyG's is bound to one."""

import pytest
import torch
from torch_geometric.nn.aggr import SortAggregation

from sopool.nn import SortConvolutionAggregation
from tests.helpers.strategies import draw_rows

CHANNELS = 4


def test_sortpool_takes_an_index_in_any_order():
    """PyG's SortAggregation asks for one in order, and says so or is wrong."""
    x = draw_rows(0, 8, CHANNELS)
    index = torch.tensor([1, 0, 1, 0, 0, 1, 1, 0])
    layer = SortConvolutionAggregation(CHANNELS).double()
    order = index.argsort(stable=True)
    torch.testing.assert_close(layer(x, index), layer(x[order], index[order]))
    with pytest.raises(ValueError, match="sorted"):
        SortAggregation(3)(x, index)


def test_sortpool_breaks_ties_by_the_sum():
    """ReLU makes the last channel zero for many nodes; in which order they come must not matter."""
    x = draw_rows(0, 12, CHANNELS)
    x[::2, -1] = 0
    layer = SortConvolutionAggregation(CHANNELS).double()
    torch.testing.assert_close(layer(x.flip(0)), layer(x))
    theirs = SortAggregation(5)
    assert not torch.allclose(theirs(x.flip(0), torch.zeros(12, dtype=torch.long)), theirs(x, torch.zeros(12).long()))
