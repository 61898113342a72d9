import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sopool.nn import (
    READOUTS,
    BilinearSecondOrderAggregation,
    CovarianceAggregation,
    SegmentAggregation,
    SumAggregation,
    make_readout,
)
from sopool.nn.aggr.base import terms_of
from sopool.nn.aggr.normalize import FOR_MATRICES
from sopool.nn.aggr.terms import Sums, Terms, identity
from sopool.nn.registry import default_options
from tests.helpers.strategies import draw_rows, seeds, widths

MATRICES = [
    {"triangle": triangle, "normalize": normalize, "moments": moments}
    for triangle in (False, True)
    for normalize in FOR_MATRICES
    for moments in ((2,), (1, 2))
]
VECTORS = [{"normalize": normalize} for normalize in (None, "size", "sqrt")]


def cases():
    """Every readout that can be taken apart, with all that its options do to the sums."""
    for name in READOUTS:
        options = default_options(name, blocks=False)
        if type(make_readout(name, 3)).terms is not SegmentAggregation.terms:
            narrow = {size: 3 for size in ("rank", "heads") if size in options}
            each = MATRICES if "triangle" in options else VECTORS if "normalize" in options else [{}]
            yield from ((name, given | narrow) for given in each)
            yield from ((name, given | {"bias": True}) for given in each if "bias" in options)


CASES = [*cases(), ("covpool", {"rank": None}), ("sopool-bimap", {"rank": 3, "lr_scale": 0.1})]
LINEAR = (None, "size", "matrix-sqrt", "size+matrix-sqrt")
EXACT = [case for case in CASES if case[1].get("normalize") in LINEAR]


def of(name, options, channels, seed=0):
    torch.manual_seed(seed)
    return make_readout(name, channels, **options).double().requires_grad_(False)


def test_readouts_that_are_no_sums_over_nodes_have_no_terms():
    assert {"max", "sortpool"} <= set(READOUTS) - {name for name, _ in CASES}
    for name in ("max", "sortpool"):
        assert terms_of(make_readout(name, 3), torch.ones(2, 3)) is None
    assert terms_of(make_readout("diffpool", 3), torch.ones(2, 3)) is None


class Squared(SumAggregation):
    def pool(self, x, ptr):
        return super().pool(x.square(), ptr)


class OfPositives(BilinearSecondOrderAggregation):
    def second_moment(self, z, ptr, order=None):
        return super().second_moment(z.relu(), ptr, order)


class Narrow(CovarianceAggregation):
    def __init__(self, channels):
        super().__init__(channels, rank=2, normalize="size")


class Bent(SumAggregation):
    """Bends the rows on their way to the formula."""

    def __call__(self, x, *args, **given):
        return super().__call__(x.tanh(), *args, **given)


class Halved(SumAggregation):
    def pool(self, x, ptr, order=None):
        return super().pool(x, ptr, order) / 2

    def terms(self, x):
        return Terms(None, Sums(x, identity(x) / 2), lambda s: s, True)


def test_a_formula_of_a_user_s_own_may_come_with_its_terms():
    x = draw_rows(0, 5, 3)
    terms = terms_of(Halved(3), x)
    torch.testing.assert_close(terms.finish(terms.first.pooled()), Halved(3)(x)[0])


def test_readouts_of_a_user_s_own_are_known_while_they_keep_the_formula():
    x = draw_rows(0, 5, 3)
    for other in (Squared(3), OfPositives(3), Bent(3)):
        assert terms_of(other.double(), x) is None
    readout = Narrow(3).double()
    terms = terms_of(readout, x)
    torch.testing.assert_close(terms.finish(terms.second.pooled()), readout(x)[0])


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@settings(max_examples=8)
@given(nodes=st.integers(0, 6), channels=widths, seed=seeds)
def test_the_terms_make_what_the_readout_gives(name, options, nodes, channels, seed):
    readout = of(name, options, channels, seed)
    x = draw_rows(seed, nodes, channels)
    terms = terms_of(readout, x)
    found = terms.finish(*(part.pooled() for part in terms.parts))
    torch.testing.assert_close(found, readout(x, ptr=torch.tensor([0, nodes]))[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@settings(max_examples=8)
@given(nodes=st.integers(1, 6), channels=widths, seed=seeds)
def test_shares_and_pairs_add_up_to_what_they_are_shares_of(name, options, nodes, channels, seed):
    readout = of(name, options, channels, seed)
    x = draw_rows(seed, nodes, channels)
    for part in terms_of(readout, x).parts:
        pooled = part.pooled()
        gradient = draw_rows(seed + 1, *pooled.shape)
        whole = (gradient * pooled).sum()
        torch.testing.assert_close(part.shares(gradient).sum(), whole, rtol=1e-9, atol=1e-9)
        if pooled.dim() == 2:
            torch.testing.assert_close(part.pairs(gradient).sum(), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_it_is_called_exact_where_doubling_the_sums_doubles_the_result(name, options):
    terms = terms_of(of(name, options, 4), draw_rows(0, 5, 4))
    pooled = [part.pooled() for part in terms.parts]
    once = terms.finish(*pooled)
    twice = terms.finish(*(2 * value for value in pooled))
    assert terms.exact == torch.allclose(2 * once, twice, rtol=1e-9)
    assert terms.exact == ((name, options) in EXACT)
