"""Normalised readouts of features of any magnitude, against the same in float64."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.nn import (
    AttentionalSecondOrderAggregation,
    BilinearSecondOrderAggregation,
    CovarianceAggregation,
    MultiHeadSecondOrderAggregation,
    SecondOrderAggregation,
)
from sopool.nn.aggr.normalize import FOR_MATRICES, FOR_VECTORS, normalize_pooled
from tests.helpers.strategies import draw_rows, seeds

CHANNELS = 5
PTR = torch.tensor([0, 4, 4, 9])
MAKE = {
    "second-order": lambda how: SecondOrderAggregation(normalize=how),
    "bilinear": lambda how: BilinearSecondOrderAggregation(CHANNELS, 3, normalize=how),
    "covariance": lambda how: CovarianceAggregation(CHANNELS, normalize=how),
    "attentional": lambda how: AttentionalSecondOrderAggregation(CHANNELS, bias=True, normalize=how),
    "multi-head": lambda how: MultiHeadSecondOrderAggregation(CHANNELS, 2, normalize=how),
}
VECTORS = ("attentional", "multi-head")
CASES = [(name, how) for name in MAKE for how in (FOR_VECTORS if name in VECTORS else FOR_MATRICES)]
REPRESENTED = 1e-14, 1e17
"""Features whose products, and sums of a few of them, are neither infinite in float32 nor so small that they count as
zero."""


def graphs(seed, magnitude):
    """Rows in float32, zeros among them as ReLU makes them; the graph in the middle is empty."""
    rows = draw_rows(seed, 9, CHANNELS)
    return (rows.where(rows.abs() > 0.3, 0.0) * magnitude).float()


def values_and_gradient(function, x):
    x = x.detach().requires_grad_()
    out = function(x)
    weights = draw_rows(1, *out.shape, dtype=out.dtype)
    (gradient,) = torch.autograd.grad((out * weights).sum(), x)
    return out.detach(), gradient


def assert_alike(found, expected, tolerance):
    """Within a part of the largest value of each tensor."""
    for mine, theirs in zip(found, expected, strict=True):
        largest = float(theirs.abs().max())
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize(("name", "how"), CASES)
@given(seeds, st.floats(-30, 30))
def test_right_or_not_finite(name, how, seed, exponent):
    """Values and gradients; Newton-Schulz iterations magnify rounding some thousand times."""
    torch.manual_seed(0)
    readout = MAKE[name](how)
    exact = copy.deepcopy(readout).double()
    magnitude = 10.0**exponent
    x = graphs(seed, magnitude)
    found = values_and_gradient(lambda x: readout(x, ptr=PTR), x)
    expected = values_and_gradient(lambda x: exact(x, ptr=PTR), x.double())
    if magnitude < REPRESENTED[0]:
        assert all(tensor.isfinite().all() for tensor in found)
    elif magnitude <= REPRESENTED[1] or found[0].isfinite().all():
        assert_alike(found, expected, 3e-3)


@pytest.mark.parametrize("how", ["trace", "sqrt", "matrix-sqrt"])
@given(seeds, st.floats(-29, 37))
def test_pooled_values_of_any_magnitude(how, seed, exponent):
    """Up to the largest numbers of float32, of which neither squares nor sums are any more."""
    rows = draw_rows(seed, 4, 3, CHANNELS)
    pooled = (rows.mT @ rows * 10.0**exponent).float()
    pooled[1] = 0
    sizes = torch.arange(5)
    found = values_and_gradient(lambda s: normalize_pooled(s, sizes, how), pooled)
    expected = values_and_gradient(lambda s: normalize_pooled(s, sizes, how), pooled.double())
    assert_alike(found, expected, 3e-3)


@pytest.mark.parametrize("how", [how for how in FOR_MATRICES if how])
def test_infinite_values_never_give_finite_ones(how):
    rows = draw_rows(0, 2, 3, CHANNELS).float()
    pooled = rows.mT @ rows
    pooled[0, 2, 2] = torch.inf
    found = normalize_pooled(pooled, torch.arange(3), how)
    assert not found[0, 2, 2].isfinite()
    assert how in ("size",) or found[0].isnan().all()
    assert found[1].isfinite().all()


def test_the_fault():
    """Pooled values of 1e38 were divided by an infinite length: all zeros, and finite."""
    readout = AttentionalSecondOrderAggregation(CHANNELS, normalize="sqrt")
    with torch.no_grad():
        readout.query.fill_(0.3)
    found = readout(torch.full((1, CHANNELS), 1e19), ptr=torch.tensor([0, 1]))
    torch.testing.assert_close(found, torch.full((1, CHANNELS), CHANNELS**-0.5))


@pytest.mark.parametrize("how", [how for how in FOR_VECTORS if how])
def test_no_features(how):
    assert SecondOrderAggregation(normalize=how)(torch.zeros(9, 0), ptr=PTR).shape == (3, 0)
