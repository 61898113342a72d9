"""Columns made side by side are joined without a copy, and otherwise as torch.cat does it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.ops._columns import ALIGNED, join, side_by_side
from tests.helpers.strategies import draw_rows, seeds

pytestmark = pytest.mark.parametrize("way", ["torch"], indirect=True)
some_widths = st.lists(st.integers(1, 40), min_size=2, max_size=5)


def filled(rows, widths, seed):
    """What :func:`side_by_side` gives, filled with numbers; and the numbers."""
    parts = side_by_side(rows, widths, like=torch.empty(0, dtype=torch.float64))
    values = [draw_rows(seed + i, rows, width) for i, width in enumerate(widths)]
    return [part.copy_(value) for part, value in zip(parts, values, strict=True)], values


@given(st.integers(0, 6), some_widths, seeds)
def test_is_concatenation_without_a_copy(rows, widths, seed):
    parts, values = filled(rows, widths, seed)
    joined = join(parts)
    assert torch.equal(joined, torch.cat(values, dim=1))
    assert joined.data_ptr() == parts[0].data_ptr()
    assert [part.shape for part in parts] == [(rows, width) for width in widths]


@given(some_widths)
def test_rows_begin_where_several_values_can_be_read_at_a_time(widths):
    parts = side_by_side(3, widths, like=torch.empty(0))
    assert parts[1].storage_offset() % ALIGNED == 0
    assert parts[0].stride(0) % ALIGNED == 0
    # No part reaches into the next row.
    assert parts[0].storage_offset() + sum(widths) <= parts[0].stride(0)


@given(st.integers(1, 6), some_widths, seeds)
def test_gradients_are_those_of_concatenation(rows, widths, seed):
    places, values = filled(rows, widths, seed)
    leaves = [value.requires_grad_() for value in values]
    # As a layer does it: written to its place by an operator of its own.
    made = [_Write.apply(leaf, place) for leaf, place in zip(leaves, places, strict=True)]
    weights = draw_rows(seed, rows, sum(widths))
    got = torch.autograd.grad((join(made).square() * weights).sum(), leaves)
    plain = torch.cat([2 * leaf for leaf in leaves], dim=1)
    want = torch.autograd.grad((plain.square() * weights).sum(), leaves)
    torch.testing.assert_close(got, want)


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, place):
        return place.copy_(2 * x)

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient, None


@pytest.mark.parametrize("choose", [[1, 0], [0, 2], [0, 0], [1], [1, 2]])
def test_any_other_matrices_are_copied_or_seen_right(choose):
    parts, _ = filled(4, [3, 5, 2], 0)
    some = [parts[i] for i in choose]
    assert torch.equal(join(some), torch.cat(some, dim=1))


def test_matrices_of_their_own_are_copied():
    parts = [draw_rows(0, 4, 3), draw_rows(1, 4, 2)]
    assert torch.equal(join(parts), torch.cat(parts, dim=1))
