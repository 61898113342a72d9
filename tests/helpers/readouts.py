"""Every readout in the registry, and a batch of graphs for it."""

import pytest
import torch

from sopool.nn import READOUTS, SegmentAggregation, make_readout
from tests.helpers.strategies import draw_rows, index_of, ptr_of

CHANNELS = 3
SIZES = [0, 4, 1, 0, 6, 2, 0]  # empty graphs first, in the middle and last
every_readout = pytest.mark.parametrize("name", READOUTS)
OURS = [name for name in READOUTS if isinstance(make_readout(name, CHANNELS), SegmentAggregation)]
every_own_readout = pytest.mark.parametrize("name", OURS)
FEW = ("sopool-bimap", "sopool-attn")
few_readouts = pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in OURS]
)
"""For what takes PyTorch's compiler seconds each; all of them in make test-all."""


def batch_of(sizes, dtype=torch.float64, seed=0):
    return draw_rows(seed, sum(sizes), CHANNELS, dtype=dtype), ptr_of(sizes), index_of(sizes)


def readout_of(name, dtype=torch.float64):
    torch.manual_seed(1)
    return make_readout(name, CHANNELS).to(dtype)
