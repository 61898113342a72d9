import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sopool.nn import READOUTS, BilinearSecondOrderAggregation, CovarianceAggregation, make_readout
from sopool.nn.aggr.first_order import SumAggregation
from sopool.nn.aggr.normalize import FOR_MATRICES
from sopool.nn.aggr.terms import terms_of
from tests.helpers.strategies import draw_rows, seeds, widths

MATRICES = [
    {"triangle": triangle, "normalize": normalize, "moments": moments}
    for triangle in (False, True)
    for normalize in FOR_MATRICES
    for moments in ((2,), (1, 2))
]
VECTORS = [{"normalize": normalize} for normalize in (None, "size", "sqrt")]
CASES = [(name, {}) for name in ("sum", "mean", "attnpool")]
CASES += [("sopool", options) for options in MATRICES]
CASES += [(name, options | {"rank": 3}) for name in ("sopool-bimap", "covpool") for options in MATRICES]
CASES += [("covpool", {"rank": None}), ("sopool-bimap", {"rank": 3, "lr_scale": 0.1})]
CASES += [("sopool-attn", options | {"bias": bias}) for options in VECTORS for bias in (False, True)]
CASES += [("sopool-m-attn", options | {"heads": 3}) for options in VECTORS]
LINEAR = (None, "size", "matrix-sqrt", "size+matrix-sqrt")
EXACT = [case for case in CASES if case[1].get("normalize") in LINEAR]


def of(name, options, channels, seed=0):
    torch.manual_seed(seed)
    return make_readout(name, channels, **options).double().requires_grad_(False)


def test_every_readout_that_is_a_sum_over_nodes_is_here():
    assert {name for name, _ in CASES} == set(READOUTS) - {"max", "sortpool"}
    for name in ("max", "sortpool"):
        assert terms_of(make_readout(name, 3), torch.ones(2, 3)) is None


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
