"""How scores are written, for any metric."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.experiments.comparison import Comparison
from sopool.objectives import METRICS
from sopool.report.scores import (
    axis_of,
    gain_cells,
    gain_columns,
    gain_of,
    number_text,
    score_cell,
    score_text,
    spread_note,
)

numbers = st.floats(-1e5, 1e5).filter(lambda x: abs(x) >= 1e-3)


@given(numbers, st.floats(1e-6, 1e4))
def test_a_number_and_its_spread_have_the_same_decimals_and_stay_what_they_are(mean, std):
    first, second = number_text(mean, std).replace(",", "").split(" ± ")
    assert len(first.partition(".")[2]) == len(second.partition(".")[2])
    assert float(first) == pytest.approx(mean, abs=max(0.06 * std, 5e-6 * abs(mean)) + 0.5 * (abs(mean) >= 10))
    digits = re.sub(r"[-.]", "", first).lstrip("0")
    assert len(digits) <= 6


@given(numbers)
def test_a_number_alone_has_three_digits_at_least(number):
    assert float(number_text(number).replace(",", "")) == pytest.approx(number, rel=6e-3)


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (0.65432, 0.03123, "0.654 ± 0.031"),
        (12345.6, 678.9, "12,346 ± 679"),
        (0.5, 0.0, "0.500 ± 0.000"),
        (-0.0001, 0.2, "0.00 ± 0.20"),
        (1.2e-7, 3e-8, "1.20e-07 ± 3.00e-08"),
        (3e9, None, "3.00e+09"),
        (0.0, None, "0.00"),
    ],
)
def test_numbers_as_they_are_written(mean, std, text):
    assert number_text(mean, std) == text


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_shares_are_in_percent_and_others_are_not(metric):
    cell = score_cell(metric.name, 0.5, 0.25)
    assert cell == ("50.0 ± 25.0" if metric.share else "0.50 ± 0.25", 0.5, False)
    assert score_text(metric.name, 0.5) == ("50.0 %" if metric.share else "0.500")
    assert axis_of(metric.name).endswith(", %") == metric.share
    assert bool(gain_of(metric.name)) == metric.lower_is_better


def test_gains_are_in_points_or_in_the_digits_of_their_interval():
    found = Comparison(0.0312, 1.0, 0.02, 0.0012, 0.0612, 10)
    assert [cell.text for cell in gain_cells("accuracy", found)] == ["+3.1", "+0.1 to +6.1", "0.020"]
    assert [cell.text for cell in gain_cells("rmse", found)] == ["+0.031", "+0.001 to +0.061", "0.020"]
    assert gain_cells("rmse", found)[0].strong
    assert gain_columns(["accuracy", "roc_auc"])[0] == "gain,\npoints"
    assert gain_columns(["accuracy", "rmse"])[0] == "gain"


def test_the_note_says_what_is_in_percent():
    assert spread_note(["accuracy"]).startswith("Percent: mean ±")
    assert spread_note(["rmse"]).startswith("Mean ±")
    assert spread_note(["rmse", "accuracy"]).startswith("Shares in percent, mean ±")
