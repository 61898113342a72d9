"""A trace made with one batch is run with others: of another size, with other graphs, in another order."""

import numpy as np
import pytest
import torch

from sopool.ops import backend, segment_gram
from tests.helpers.marks import needs_triton
from tests.helpers.readouts import OURS, batch_of, every_own_readout, readout_of
from tests.helpers.strategies import draw_rows

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
OTHERS = [[5, 1, 0, 9, 3], [2, 1], [1, 1, 1], [300]]
KERNELS = pytest.param("triton", marks=needs_triton)


@pytest.mark.parametrize(
    ("name", "by"),
    [
        *((name, "torch") for name in OURS),
        *(pytest.param(name, "triton", marks=[pytest.mark.slow, needs_triton]) for name in OURS),
    ],
)
def test_readouts(name, by):
    readout = readout_of(name)
    (x, ptr, index) = batch_of([3, 4, 2])
    readout.requires_grad_(False)
    with backend(by), np.errstate(all="ignore"):
        by_ptr = torch.jit.trace(lambda x, ptr: readout(x, ptr=ptr), (x, ptr), check_trace=False)
        by_index = torch.jit.trace(lambda x, index: readout(x, index), (x, index), check_trace=False)
        for sizes in OTHERS[:: 1 if by == "torch" else 2]:
            x, ptr, index = batch_of(sizes)
            shuffle = torch.randperm(len(x))
            want = readout(x, ptr=ptr)
            torch.testing.assert_close(by_ptr(x, ptr), want)
            torch.testing.assert_close(by_index(x, index), want)
            torch.testing.assert_close(by_index(x[shuffle], index[shuffle]), want)


@every_own_readout
def test_a_given_number_of_graphs_stays(name):
    readout = readout_of(name)
    (x, _, index) = batch_of([3, 4, 2])
    readout.requires_grad_(False)
    traced = torch.jit.trace(lambda x, index: readout(x, index, dim_size=3), (x, index), check_trace=False)
    fewer, ptr, index = batch_of([4, 2])
    torch.testing.assert_close(traced(fewer, index)[:2], readout(fewer, ptr=ptr))
    with pytest.raises(RuntimeError, match=r"only 3 segments \(dim_size=3\)"):
        traced(x, torch.arange(9))


@pytest.mark.parametrize("by", ["torch", KERNELS])
def test_operators_refuse_what_does_not_fit(by):
    """Nothing outside of the given tensors is read, whatever a recorded program puts together."""
    x = draw_rows(0, 9, 3)
    ptr = torch.tensor([0, 4, 9])
    gram = torch.ops.sopool.segment_gram
    with backend(by):
        with pytest.raises(ValueError, match="y has 5 entries for 9 rows in 2 segments: it needs 9"):
            gram(x, x[:5], ptr)
        with pytest.raises(ValueError, match="order has 5 entries"):
            segment_gram(x, x, ptr, order=torch.arange(5))
        with pytest.raises(ValueError, match="s has 1 entries for 9 rows in 2 segments: it needs 2"):
            torch.ops.sopool.segment_apply(x, draw_rows(1, 1, 2, 3), ptr)
