"""Calibrated probabilities of a classifier: in memory, in model files and in ONNX files alike."""

import json

import numpy as np
import pytest

from sopool import GraphClassifier
from sopool.data import DataError
from sopool.estimator import load_model
from sopool.estimator.estimate import estimate
from sopool.estimator.model_file import FOURTH
from sopool.objectives.calibration import fit_temperature
from tests.helpers.forging import facts_of, forge
from tests.helpers.little_classifier import LABELS, NAMED, STORE, tiny
from tests.helpers.little_targets import FLAGS, NUMBERS, tiny_regressor, with_targets

TRAIN, HELD = slice(0, 24), slice(24, 40)


@pytest.fixture(params=["classes", "labels"])
def calibrated(request):
    """A classifier before and after, and what is true of held-out graphs."""
    y = LABELS if request.param == "classes" else np.array(FLAGS, float)
    before = tiny().fit(STORE[TRAIN], y[TRAIN])
    return before, tiny().fit(STORE[TRAIN], y[TRAIN]).calibrate(STORE[HELD], y[HELD]), y


def test_held_out_graphs_set_the_temperature(calibrated):
    before, after, y = calibrated
    assert before.temperature_ is None
    codes = np.unique(y, return_inverse=True)[1] if y.ndim == 1 else y
    want = fit_temperature(before.objective_, before.outputs(STORE[HELD]), codes[HELD])
    assert after.temperature_ == want
    assert after.calibrate(STORE[HELD], y[HELD]).temperature_ == want  # again, from what the models say
    np.testing.assert_array_equal(after.predict(STORE), before.predict(STORE))
    assert not np.allclose(after.predict_proba(STORE), before.predict_proba(STORE))
    found = after.predict_with_uncertainty(STORE)
    np.testing.assert_array_equal(found.probabilities, after.predict_proba(STORE))
    explained = after.explain(STORE[:2])
    np.testing.assert_allclose([one.probabilities for one in explained], found.probabilities[:2], atol=1e-5)
    assert after.fit(STORE[TRAIN], y[TRAIN]).temperature_ is None  # another fit begins anew


def test_model_files_keep_them_and_earlier_files_have_none(calibrated, tmp_path):
    _, model, _ = calibrated
    path = tmp_path / "m.sopool"
    model.save(path)
    again = load_model(path, device="cpu")
    assert again.temperature_ == model.temperature_
    np.testing.assert_array_equal(again.predict_proba(STORE), model.predict_proba(STORE))
    assert facts_of(path.read_bytes())["temperature"] == model.temperature_
    facts = facts_of(path.read_bytes())
    for name in FOURTH:
        del facts[name]
    path.write_bytes(forge(path.read_bytes(), format="sopool model 3", facts=json.dumps(facts)))
    assert GraphClassifier.load(path, device="cpu").temperature_ is None


def test_what_cannot_calibrate():
    model = tiny().fit(STORE[TRAIN], LABELS[TRAIN])
    with pytest.raises(DataError, match="these are the training graphs"):
        model.calibrate(STORE[TRAIN], LABELS[TRAIN])
    with pytest.raises(DataError, match="not among the model's classes"):
        model.calibrate(STORE[HELD], ["other", "even"] * 8)
    with pytest.raises(DataError, match="have one class each"):
        tiny().fit(STORE, FLAGS).calibrate(STORE[HELD], LABELS[HELD])
    assert model.temperature_ is None


def test_estimates_show_them_for_classes_and_labels_only():
    found = estimate(tiny(), NAMED, folds=2)
    assert found.to_json()["calibration"]["used"] == found.calibration.helps
    assert found.calibration.before.keys() == {"log_loss", "calibration_error"}
    assert (found.temperature is None) != found.calibration.helps
    assert estimate(tiny(), NAMED, folds=2, calibrate=False).calibration is None
    assert estimate(tiny(), with_targets(FLAGS), folds=2).calibration.temperature != 1
    numbers = estimate(tiny_regressor(), with_targets(NUMBERS), folds=2)
    assert numbers.calibration is None
    assert "calibration" not in numbers.to_json()
