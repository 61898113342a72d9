"""Attentional pooling of small batches by their index gives the values and derivatives of the operator."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from sopool.nn import AttentionalSecondOrderAggregation
from sopool.ops import segment_attend
from sopool.ops.segment.attend_small import attend_by_index
from sopool.ops.segment.size_classes import SMALL, graphs_apart
from tests.helpers.strategies import draw_rows, ptr_of, seeds, sizes

pytestmark = pytest.mark.parametrize("way", ["loops", "torch"], indirect=True)


def draw_inputs(sizes, seed, with_bias, width=3):
    """Return rows, query and bias that need gradients, and the segment of each row in random order."""
    generator = torch.Generator().manual_seed(seed)
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes, dtype=torch.long))
    inputs = [draw_rows(seed, sum(sizes), width), draw_rows(seed + 1, width, 1), draw_rows(seed + 2, 1)]
    x, query, bias = (one.requires_grad_() for one in inputs)
    return x, query, bias if with_bias else None, index[torch.randperm(len(index), generator=generator)]


@given(sizes, seeds, st.booleans())
def test_agrees_with_the_operator(sizes, seed, with_bias):
    x, query, bias, index = draw_inputs(sizes, seed, with_bias)
    inputs = [one for one in (x, query, bias) if one is not None]
    weights = draw_rows(seed + 3, len(sizes), 3)

    def results(pooled):
        return pooled, *torch.autograd.grad((pooled * weights).sum(), inputs, allow_unused=True)

    with graphs_apart():
        want = segment_attend(x, query, ptr_of(sizes), bias, order=index.argsort(stable=True)).squeeze(2)
    torch.testing.assert_close(results(attend_by_index(x, query, index, len(sizes), bias)), results(want))


@pytest.mark.parametrize("with_bias", [False, True])
def test_derivatives(with_bias):
    x, query, bias, index = draw_inputs([3, 0, 1, 4], 0, with_bias)

    def pool(x, query, *bias):
        return attend_by_index(x, query, index, 4, *bias)

    inputs = (x, query, bias) if with_bias else (x, query)
    assert gradcheck(pool, inputs, check_batched_grad=True)
    assert gradgradcheck(pool, inputs)


def test_sorted_rows_take_the_same_path():
    x, query, bias, _ = draw_inputs([3, 0, 4], 0, True)
    index = torch.tensor([0, 0, 0, 2, 2, 2, 2])
    by_index = attend_by_index(x, query, index, None, bias)
    assert torch.equal(segment_attend(x, query, ptr_of([3, 0, 4]), bias).squeeze(2), by_index)


@pytest.mark.parametrize(
    ("index", "dim_size", "says"),
    [
        ([0, 0, 3], 3, r"invalid 'dim_size' \(got '3' but expected >= '4'\): index\[2\] is 3"),
        ([0, -1, 2], 3, r"index\[1\] is -1: it must not be negative"),
        ([0, -1, 2], None, r"index\[1\] is -1: it must not be negative"),
        ([-5, -1, -2], None, r"index\[0\] is -5: it must not be negative"),
        ([0, 0, 0], 0, r"invalid 'dim_size' \(got '0' but expected >= '1'\)"),
        ([0, 0], 3, "index has 2 entries for 3 rows"),
        ([0, 0, 0], -1, "dim_size=-1 is negative"),
    ],
)
@pytest.mark.parametrize("width", [1, 3, 64])
def test_a_wrong_index_is_refused(index, dim_size, says, width):
    with pytest.raises(ValueError, match=says):
        attend_by_index(draw_rows(0, 3, width), draw_rows(1, width, 1), torch.tensor(index), dim_size)


def test_where_graphs_may_not_depend_on_others_and_in_half_precision_the_operator_is_used():
    x, query, _, index = draw_inputs([2, 3], 0, False)
    large = torch.zeros(SMALL // 2 + 1, 2)
    with graphs_apart():
        assert attend_by_index(x, query, index, 2) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert attend_by_index(x.float(), query.float(), index, 2) is None
    assert attend_by_index(x.bfloat16(), query.bfloat16(), index, 2) is None
    assert attend_by_index(large, large[:2, :1], torch.zeros(len(large), dtype=torch.long), 1) is None


class Twofold:
    """A formula that a class may take from another place than its base class."""

    def pool(self, x, ptr, order=None):
        return 2 * super().pool(x, ptr, order)


class Twice(Twofold, AttentionalSecondOrderAggregation):
    pass


class Fourfold(Twice):
    def pool(self, x, ptr, order=None):
        return 2 * super().pool(x, ptr, order)


@pytest.mark.parametrize(("kind", "factor"), [(Twice, 2), (Fourfold, 4)])
def test_a_class_with_another_formula_keeps_it(kind, factor):
    x, _, _, index = draw_inputs([2, 3], 0, False)
    readout = AttentionalSecondOrderAggregation(3).double()
    other = kind(3).double()
    other.load_state_dict(readout.state_dict())
    torch.testing.assert_close(other(x, index), factor * readout(x, index))
