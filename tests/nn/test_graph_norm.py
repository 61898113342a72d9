"""The batch norm of graph embeddings against torch's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.models.stack import stack
from sopool.nn.layers import GraphNorm
from tests.helpers.strategies import draw_rows, seeds

CHANNELS = 3


def drawn_pair(seed):
    """Ours and torch's, with the same parameters."""
    torch.manual_seed(seed)
    mine = GraphNorm(CHANNELS).double()
    theirs = torch.nn.BatchNorm1d(CHANNELS).double()
    for here, there in zip((mine.scale, mine.shift), (theirs.weight, theirs.bias), strict=True):
        torch.nn.init.normal_(here)
        there.data.copy_(here.data)
    return mine, theirs


@given(models=st.integers(1, 3), graphs=st.integers(2, 6), steps=st.integers(1, 3), seed=seeds)
def test_a_stack_is_torch_s_for_each_model(models, graphs, steps, seed):
    pairs = [drawn_pair(seed + m) for m in range(models)]
    stacked = stack([mine for mine, _ in pairs])
    for step in range(steps):
        x = draw_rows(seed + step, models * graphs, CHANNELS)
        expected = torch.cat([norm(part) for (_, norm), part in zip(pairs, x.split(graphs), strict=True)])
        torch.testing.assert_close(stacked(x), expected)
    for _, norm in pairs:
        norm.eval()
    expected = torch.cat([norm(part) for (_, norm), part in zip(pairs, x.split(graphs), strict=True)])
    torch.testing.assert_close(stacked.eval()(x), expected)
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(stacked, name), torch.stack([getattr(norm, name) for _, norm in pairs]))


def test_its_slopes_are_those_of_differences():
    mine, _ = drawn_pair(0)
    x = draw_rows(1, 5, CHANNELS).requires_grad_()
    assert torch.autograd.gradcheck(mine, x)
    assert torch.autograd.gradcheck(mine.eval(), x)


@pytest.mark.parametrize("graphs", [0, 1])
def test_no_graph_and_one_graph_leave_numbers(graphs):
    mine, _ = drawn_pair(0)
    assert mine(torch.ones(graphs, CHANNELS).double()).isfinite().all()
    assert mine.running_mean.isfinite().all()
    assert mine.running_var.isfinite().all()


def test_large_values_with_little_spread_keep_it():
    x = 1e6 + torch.arange(8.0).unsqueeze(1).expand(8, CHANNELS)
    expected = (torch.arange(8.0) - 3.5) / torch.arange(8.0).var(correction=0).sqrt()
    torch.testing.assert_close(GraphNorm(CHANNELS)(x)[:, 0], expected, rtol=1e-3, atol=1e-3)
