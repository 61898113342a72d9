import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.errors import MissingPackageError
from sopool.experiments.curves import band
from sopool.report.figures.curves import plot_curves, spread
from sopool.training.runs.record import Run
from tests.helpers.runs import config


def run(fold, accuracy, looks="test", stopped=None, repeat=0):
    part = "test" if looks == "test" else "validation"
    curves = {"train_accuracy": np.asarray(accuracy), f"{part}_accuracy": np.asarray(accuracy) / 2}
    return Run(config(fold, looks=looks, repeat=repeat), curves, {}, stopped=stopped)


def runs(**kinds):
    return [run(fold, np.linspace(0.5, 0.8 + fold / 100, 30), **kinds) for fold in range(10)]


SERIES = {
    "sum": runs(),
    "sopool": runs(),
    "covpool [a] $b": [*runs()[:9], run(9, [0.5] * 9 + [np.nan] * 21, stopped=9)],
}


def test_equal_runs_give_equal_files(tmp_path):
    for suffix in ("svg", "png"):
        first = tmp_path / f"first.{suffix}"
        second = tmp_path / f"second.{suffix}"
        plot_curves(SERIES, first)
        plot_curves(dict(SERIES), second)
        assert first.read_bytes() == second.read_bytes()
    assert len(list(tmp_path.iterdir())) == 4  # nothing half-written is left
    text = (tmp_path / "first.svg").read_text()
    assert "<dc:date>" not in text
    for said in ("covpool [a] $b (1 of 10 runs stopped)", "accuracy, %", "epoch", "train", "test", "sum", "sopool"):
        assert f"<!-- {said}" in text  # glyphs are drawn; matplotlib writes what they say beside them


def test_validation_runs_and_a_single_series(tmp_path):
    plot_curves({"sum": runs(looks="validation")}, tmp_path / "curves.SVG")
    assert "<!-- validation" in (tmp_path / "curves.SVG").read_text()


def test_runs_that_all_stopped_at_once_are_drawn_empty(tmp_path):
    plot_curves({"sum": [run(0, [np.nan] * 5, stopped=0)]}, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 0


def test_a_band_is_taken_over_folds_after_seeds():
    shown = band(
        [run(0, [0.2, 0.4]), run(0, [0.4, 0.6], repeat=1), run(1, [0.7, np.nan]), run(2, [0.5])], "train_accuracy"
    )
    np.testing.assert_allclose(shown.mean, [0.5, 0.5])
    np.testing.assert_allclose(shown.low, [np.quantile([0.3, 0.5, 0.7], 0.1), 0.5])
    np.testing.assert_allclose(shown.high, [np.quantile([0.3, 0.5, 0.7], 0.9), 0.5])
    assert np.isnan(band([run(0, [np.nan])], "train_accuracy").mean).all()


@given(st.lists(st.floats(0, 100), max_size=8).map(sorted), st.floats(0.1, 20))
def test_labels_never_overlap(places, gap):
    found = spread(places, gap)
    assert len(found) == len(places)
    assert all(after - before >= gap - 1e-9 for before, after in pairwise(found))
    if all(after - before > gap + 1e-9 for before, after in pairwise(places)):
        assert found == pytest.approx(places)


@pytest.mark.parametrize(
    ("series", "name", "message"),
    [
        (SERIES, "curves.pdf", r"\.svg or \.png, not '\.pdf'"),
        ({}, "curves.svg", "no runs to plot"),
        ({"sum": []}, "curves.svg", "no runs to plot for sum"),
        ({"sum": runs(), "max": runs(looks="validation")}, "curves.svg", "some on validation graphs"),
    ],
)
def test_refused(series, name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        plot_curves(series, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'sopool\[report\]'"):
        plot_curves(SERIES, tmp_path / "curves.svg")
