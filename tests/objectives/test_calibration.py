"""Temperatures: found where they are known, near 1 with few graphs, and without influence on what is predicted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.objectives import MultiLabel, SingleLabel
from sopool.objectives.calibration import COOLEST, HOTTEST, cross_calibrate, fit_temperature
from sopool.objectives.metrics import softmax

THREE = SingleLabel(("a", "b", "c"))
PAIR = MultiLabel(("p", "q"))


def drawn(temperature, graphs=4000, seed=0):
    """Logits that are too large by a factor, and classes drawn by the true probabilities."""
    random = np.random.RandomState(seed)
    logits = random.normal(size=(graphs, 3)) * 1.5
    labels = (softmax(logits).cumsum(1) < random.uniform(size=(graphs, 1))).sum(1)
    return logits * temperature, labels


def drawn_labels(temperature, graphs=4000):
    random = np.random.RandomState(1)
    odds = random.normal(size=(graphs, 2)) * 2
    truth = (random.uniform(size=odds.shape) < PAIR.shares(odds)).astype(float)
    truth[random.uniform(size=odds.shape) < 0.3] = np.nan
    return odds * temperature, truth


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_known_temperature_is_found(temperature):
    found = fit_temperature(THREE, *drawn(temperature))
    assert found == pytest.approx(temperature, rel=0.1)


def test_all_labels_share_one_and_missing_values_have_no_influence():
    outputs, truth = drawn_labels(3.0)
    found = fit_temperature(PAIR, outputs, truth)
    assert found == pytest.approx(3.0, rel=0.1)
    outputs[np.isnan(truth)] = 1e6
    assert fit_temperature(PAIR, outputs, truth) == found
    truth[:, 0] = np.nan
    assert fit_temperature(PAIR, outputs, truth) == pytest.approx(3.0, rel=0.1)
    truth[:] = np.nan
    assert fit_temperature(PAIR, outputs, truth) == pytest.approx(1.0, abs=1e-4)


def test_a_few_graphs_change_little_and_extremes_stay_in_range():
    right = np.array([[4.0, 0.0, 0.0]] * 3)
    assert 0.9 < fit_temperature(THREE, right, np.zeros(3, int)) <= 1
    assert fit_temperature(THREE, right, np.ones(3, int)) < 4
    wrong = np.array([[1e6, 0.0, 0.0]] * 500)
    assert fit_temperature(THREE, wrong, np.ones(500, int)) == pytest.approx(HOTTEST, rel=0.01)
    assert COOLEST <= fit_temperature(THREE, wrong / 1e9, np.zeros(500, int)) < 1


@given(st.integers(0, 1000), st.floats(COOLEST, HOTTEST))
def test_what_is_predicted_stays(seed, temperature):
    random = np.random.RandomState(seed)
    scores = random.normal(size=(2, 20, 3)) * 10
    combined = THREE.combine(scores)
    after = THREE.calibrated(combined, temperature)
    np.testing.assert_array_equal(after.predicted, combined.predicted)
    np.testing.assert_array_equal(after.uncertainty, combined.uncertainty)
    np.testing.assert_allclose(after.probabilities.sum(1), 1)
    np.testing.assert_array_equal(after.probabilities.argmax(1), combined.predicted)
    labels = PAIR.combine(scores[..., :2])
    after = PAIR.calibrated(labels, temperature)
    np.testing.assert_array_equal(after.predicted, labels.predicted)
    np.testing.assert_array_equal(after.probabilities > 0.5, labels.probabilities > 0.5)
    np.testing.assert_allclose(PAIR.calibrated(labels, 1.0).probabilities, labels.probabilities, atol=1e-12)


@pytest.mark.parametrize(("temperature", "helps"), [(3.0, True), (1.0, False)])
def test_folds_are_measured_with_temperatures_of_the_others(temperature, helps):
    outputs, labels = drawn(temperature, graphs=600, seed=3)
    folds = np.arange(600) % 4
    found, after = cross_calibrate(
        THREE, [outputs[folds == k] for k in range(4)], [labels[folds == k] for k in range(4)]
    )
    assert found.temperature == pytest.approx(fit_temperature(THREE, outputs, labels))
    assert found.helps == helps == (found.after["log_loss"] < found.before["log_loss"])
    own = fit_temperature(THREE, outputs[folds != 2], labels[folds != 2])
    np.testing.assert_allclose(after[2], THREE.tempered(outputs[folds == 2], own), atol=1e-9)
    labels = np.where(folds == 2, (labels + 1) % 3, labels)  # what is true of a fold has no influence on its own
    again = cross_calibrate(THREE, [outputs[folds == k] for k in range(4)], [labels[folds == k] for k in range(4)])[1]
    np.testing.assert_array_equal(after[2], again[2])
    assert not np.array_equal(after[1], again[1])
