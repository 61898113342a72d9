import json
import math
import statistics

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from sopool.experiments.comparison import corrected_paired_test

fractions = st.integers(0, 1000).map(lambda i: i / 1000)


@st.composite
def pairs(draw):
    """Scores of two poolings on the same folds that do not differ by the same amount everywhere."""
    k = draw(st.integers(2, 12))
    a, b = (draw(st.lists(fractions, min_size=k, max_size=k)) for _ in range(2))
    assume(np.ptp(np.subtract(a, b)) > 1e-9)
    return np.array(a), np.array(b)


@given(pairs())
def test_is_the_paired_test_with_a_wider_variance(pair):
    a, b = pair
    k = len(a)
    plain = stats.ttest_rel(a, b)
    found = corrected_paired_test(a, b, k)
    wider = math.sqrt((1 / k + 1 / (k - 1)) / (1 / k))
    assert found.difference == pytest.approx(a.mean() - b.mean(), abs=1e-12)
    assert found.t == pytest.approx(plain.statistic / wider, abs=1e-9)
    assert found.p == pytest.approx(2 * stats.t.cdf(-abs(plain.statistic / wider), k - 1))
    low, high = plain.confidence_interval(0.95)
    assert found.high - found.low == pytest.approx(wider * (high - low))
    assert found.p >= plain.pvalue - 1e-12


def test_by_hand():
    """Five folds against one value. With 4 degrees of freedom p has a closed form (Abramowitz, Stegun 26.7.4)."""
    found = corrected_paired_test([0.5, 0.6, 0.9, 0.4, 0.6], [0.5] * 5, folds=5)
    variance = (1 / 5 + 1 / 4) * 0.14 / 4
    angle = math.atan(0.1 / math.sqrt(variance) / 2)
    assert found.t == pytest.approx(0.1 / math.sqrt(variance))
    assert found.p == pytest.approx(1 - math.sin(angle) * (1 + math.cos(angle) ** 2 / 2))
    assert found.p == pytest.approx(0.470175, abs=1e-6)
    assert found.high - 0.1 == pytest.approx(2.776445 * math.sqrt(variance), rel=1e-6)


def test_repeated_cross_validations():
    """More differences, but the training sets of each still share eight ninths of their graphs."""
    found = corrected_paired_test([0.0, 0.1] * 25, [0.0] * 50, folds=10, repeats=5)
    error = statistics.stdev([0.0, 0.1] * 25) * math.sqrt(1 / 50 + 1 / 9)
    assert (found.difference, found.folds) == (pytest.approx(0.05), 50)
    assert found.high - 0.05 == pytest.approx(0.05 - found.low) == pytest.approx(2.0096 * error, rel=1e-3)
    with pytest.raises(ValueError, match="for 10 folds, 2 times; expected one for each"):
        corrected_paired_test([0.5] * 10, [0.4] * 10, repeats=2)


@given(pairs())
def test_swapping_turns_the_sign(pair):
    a, b = pair
    found = corrected_paired_test(a, b, len(a))
    transposed = corrected_paired_test(b, a, len(a))
    assert transposed.p == found.p
    assert (transposed.difference, transposed.t) == (-found.difference, -found.t)
    assert (transposed.low, transposed.high) == (-found.high, -found.low)


@given(pairs(), st.floats(-3, 3), st.floats(0.01, 100))
def test_units_and_origin_do_not_matter(pair, shift, scale):
    a, b = pair
    found = corrected_paired_test(a, b, len(a))
    moved = corrected_paired_test(scale * (a + shift), scale * (b + shift), len(a))
    assert moved.p == pytest.approx(found.p, rel=1e-6, abs=1e-9)
    assert (moved.low, moved.high) == pytest.approx((scale * found.low, scale * found.high), rel=1e-6, abs=1e-9)


@given(pairs())
def test_the_interval_leaves_out_zero_where_p_is_below_five_per_cent(pair):
    found = corrected_paired_test(*pair, len(pair[0]))
    assume(abs(found.p - 0.05) > 1e-9)
    assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


@given(st.lists(fractions, min_size=10, max_size=10), fractions.filter(bool))
def test_differences_that_are_all_equal(a, shift):
    same = corrected_paired_test(a, a)
    assert (same.difference, same.t, same.p, same.low, same.high) == (0.0, 0.0, 1.0, 0.0, 0.0)
    above = corrected_paired_test([x + shift for x in a], a)
    assert (above.t, above.p) == (math.inf, 0.0)
    assert above.low == above.difference == above.high == pytest.approx(shift)
    assert corrected_paired_test(a, [x + shift for x in a]).t == -math.inf
    assert json.loads(json.dumps(above.to_json(), allow_nan=False))["t"] is None


@pytest.mark.parametrize(
    ("a", "b", "folds", "message"),
    [
        ([0.5] * 10, [0.5] * 9, 10, r"\[10\] and \[9\] were given for 10 folds"),
        ([0.5] * 30, [0.4] * 30, 10, r"\[30\] .* one for each"),
        ([0.5], [0.5], 1, "at least 2 folds"),
        ([0.5, math.nan], [0.5, 0.5], 2, "not finite"),
    ],
)
def test_refused(a, b, folds, message):
    with pytest.raises(ValueError, match=message):
        corrected_paired_test(a, b, folds)
