"""Over data sets: against closed forms, published values and SciPy's own tests."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from sopool.experiments.statistics import (
    Across,
    compare_across,
    critical_difference,
    declared_tests,
    friedman,
    holm,
    mean_ranks,
    signed_rank_test,
)

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@pytest.mark.parametrize(("lines", "datasets", "expected"), [(4, 14, 1.25), (2, 10, 0.62), (10, 30, 2.47)])
def test_the_critical_difference_is_demsars(lines, datasets, expected):
    """His q are 1.960 for 2 lines, 2.569 for 4, 3.164 for 10; the first case is his example."""
    assert critical_difference(lines, datasets) == pytest.approx(expected, abs=0.01)


def test_ranks_are_shared_between_equals():
    assert mean_ranks(np.array([[0.9, 0.8, 0.9], [0.5, 0.7, 0.6]]), ["a", "b", "c"]) == {"a": 2.25, "b": 2.0, "c": 1.75}


def test_ranks_do_not_hang_on_rounding():
    assert mean_ranks(np.array([[0.1 + 0.2, 0.3]]), ["a", "b"]) == {"a": 1.5, "b": 1.5}


def test_friedman_is_its_formula():
    """12 / (N k (k + 1)) * sum R^2 - 3 N (k + 1) = 6 for three lines in one order on three data sets: p = exp(-3)."""
    assert friedman(np.array([[0.9, 0.8, 0.7]] * 3)) == pytest.approx(np.exp(-3))
    assert friedman(np.full((3, 4), 0.5)) == 1.0


def test_holm_on_an_example():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(probabilities)
def test_holm_rejects_what_its_steps_reject(values):
    """The lowest p against level / m, the next against level / (m - 1), ..., up to the first that fails."""
    for level in (0.05, 0.3):
        left = sorted(range(len(values)), key=values.__getitem__)
        steps = [values[i] * (len(values) - step) <= level for step, i in enumerate(left)]
        rejected = {i for i, _ in zip(left, itertools.takewhile(bool, steps), strict=False)}
        assert {i for i, p in enumerate(holm(values)) if p <= level} == rejected


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=9, unique_by=abs))
def test_wilcoxon_is_scipys_where_no_ranks_are_shared(differences):
    counted = [one for one in differences if one]
    expected = wilcoxon(counted, method="exact").pvalue if len(counted) > 1 else 1.0
    assert signed_rank_test(np.array(differences, float)) == pytest.approx(expected)


def test_wilcoxon_is_exact_where_ranks_are_shared():
    assert signed_rank_test(np.ones(5)) == 2 / 2**5
    assert signed_rank_test(np.zeros(5)) == 1.0


def test_wilcoxon_is_scipys_with_many_data_sets():
    """All signs of 60 differences could never be tried."""
    differences = np.random.default_rng(0).normal(0.2, 1, 60).round(1)
    counted = differences[differences != 0]
    assert signed_rank_test(differences) == wilcoxon(counted).pvalue


def test_a_declared_comparison_uses_the_data_sets_that_both_lines_have():
    scores = {"a": {"x": 0.9, "y": 0.8, "z": 0.7}, "b": {"x": 0.7, "y": 0.7}}
    (test,) = declared_tests(scores, [("a", "b")])
    assert (test.datasets, test.p, test.holm, test.lowest) == (2, 0.5, 0.5, 0.5)
    assert test.median == pytest.approx(0.15)


def test_too_few_data_sets_are_said_to_be_so():
    one = compare_across("fair", {"a": {"x": 0.9}, "b": {"x": 0.8}}, [("a", "b")])
    assert (one.friedman, one.critical_difference) == (None, None)
    assert any("need at least two data sets" in note for note in one.notes)
    several = {name: dict.fromkeys("uvwxyz", score) for name, score in (("a", 0.9), ("b", 0.8), ("c", 0.7))}
    many = compare_across("fair", several, [("a", "b")])
    assert not many.notes
    assert many.declared[0].p == 2 / 2**6
    few = compare_across("fair", {name: {"u": 0.1, "v": 0.2, "w": 0.3} for name in "ab"}, [("a", "b")])
    assert any("cannot reach p = 0.05 on 3 data sets" in note for note in few.notes)


def test_data_sets_that_some_line_lacks_are_left_out_of_the_ranks():
    scores = {"a": {"x": 0.9, "y": 0.8, "z": 0.1}, "b": {"x": 0.7, "y": 0.7}}
    found = compare_across("fair", scores, [])
    assert found.datasets == ("x", "y")
    assert found.ranks == {"a": 1.0, "b": 2.0}
    assert "Ranks do not include z" in found.notes[0]
    assert Across.from_json(json.loads(json.dumps(found.to_json()))) == found
