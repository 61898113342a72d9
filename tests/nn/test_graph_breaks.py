"""Readouts where PyG's callers give the number of graphs: compiled in one graph, and a wrong number refused."""

import pytest
import torch

from tests.helpers.readouts import CHANNELS, batch_of, every_own_readout, few_readouts, readout_of

X, PTR, INDEX = batch_of([3, 2, 4, 1], torch.float32)


class Network(torch.nn.Module):
    """A readout between two layers."""

    def __init__(self, readout):
        super().__init__()
        self.linear = torch.nn.Linear(CHANNELS, CHANNELS)
        self.readout = readout

    def forward(self, x, **given):
        return self.readout(self.linear(x).relu(), **given).relu()


def breaks(readout, **given):
    torch._dynamo.reset()
    return torch._dynamo.explain(Network(readout))(X, **given).graph_break_count


@few_readouts
def test_no_break_where_the_number_of_graphs_is_known(name, fresh_compiler):
    readout = readout_of(name, torch.float32)
    assert breaks(readout, index=INDEX, dim_size=4) == 0
    assert breaks(readout, ptr=PTR) == 0


@every_own_readout
def test_a_small_dim_size_is_refused_as_in_pyg(name):
    with pytest.raises(ValueError, match=r"invalid 'dim_size' \(got '3' but expected >= '4'\)") as caught:
        readout_of(name, torch.float32)(X, INDEX, dim_size=3)
    assert "Pass a dim_size of at least 4" in str(caught.value)
