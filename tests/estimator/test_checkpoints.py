"""An interrupted fit continues where it was, with the results of one that was not interrupted."""

import warnings

import numpy as np
import pytest
import torch

from sopool.data import with_split
from sopool.errors import SettingError
from sopool.estimator import fitting
from sopool.estimator.estimate import estimate, fit_labelled, searched
from tests.helpers.little_classifier import LABELS, NAMED, STORE, tiny
from tests.helpers.little_targets import NUMBERS, tiny_regressor


class InterruptionError(Exception):
    pass


def interrupt_after(epochs):
    """A callback that ends the fit after so many reports."""
    seen = []

    def call(progress):
        seen.append(progress)
        if len(seen) == epochs:
            raise InterruptionError

    return call


def same(one, other):
    for mine, theirs in zip(
        one.ensemble_.model.state_dict().values(), other.ensemble_.model.state_dict().values(), strict=True
    ):
        assert torch.equal(mine, theirs)
    assert one.best_epochs_ == other.best_epochs_
    for name, curve in one.history_.items():
        np.testing.assert_array_equal(curve, other.history_[name])


@pytest.fixture
def always(monkeypatch):
    """Save after every epoch."""
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", -1.0)


SETTINGS = {"epochs": 8, "patience": 3, "dropout": 0.2, "lr": 0.05, "n_models": 3}
CASES = {
    "classes": (tiny, LABELS, {}),
    "numbers": (tiny_regressor, NUMBERS, {"average": 0.0, "loss": "huber"}),
    "no held-out graphs": (tiny, LABELS, {"validation_fraction": 0.0}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epochs", [1, 4])
def test_a_fit_continues_with_the_same_results(case, epochs, always, tmp_path):
    make, y, settings = CASES[case]
    settings = SETTINGS | settings
    whole = make(**settings).fit(STORE, y)
    with pytest.raises(InterruptionError):
        make(**settings, checkpoints=tmp_path, callback=interrupt_after(epochs)).fit(STORE, y)
    seen = []
    again = make(**settings, checkpoints=str(tmp_path), callback=seen.append).fit(STORE, y)
    same(whole, again)
    assert seen[0].resumed == epochs == seen[0].epoch
    assert all(one.resumed == 0 for one in seen[1:] if one.epoch > epochs)
    assert sum(one.finished for one in seen) == 3
    seen.clear()
    same(whole, make(**settings, checkpoints=tmp_path, callback=seen.append).fit(STORE, y))
    assert all(one.resumed for one in seen)  # nothing was trained


def test_models_that_ended_are_kept_without_waiting(tmp_path):
    """Those that stopped early continue at their end, and the others from the beginning."""
    settings = SETTINGS | {"epochs": 40, "patience": 1}
    whole = tiny(**settings).fit(STORE, LABELS)
    ends = [int((~np.isnan(curve)).sum()) for curve in whole.history_["loss"]]
    assert min(ends) < max(ends)
    with pytest.raises(InterruptionError):
        tiny(**settings, checkpoints=tmp_path, callback=interrupt_after(min(ends))).fit(STORE, LABELS)
    seen = []
    same(whole, tiny(**settings, checkpoints=tmp_path, callback=seen.append).fit(STORE, LABELS))
    assert [one.resumed for one in seen if one.resumed] == [min(ends)]


OTHER = {
    "a setting": ({"lr": 0.04}, STORE, LABELS, None),
    "a seed": ({"random_state": 1}, STORE, LABELS, None),
    "the number of models": ({"n_models": 2}, STORE, LABELS, None),
    "labels": ({}, STORE, LABELS[::-1], None),
    "graphs": ({}, STORE[:30], LABELS[:30], None),
    "weights": ({}, STORE, LABELS, np.arange(1, 41)),
    "groups": ({}, with_split(STORE, groups=np.arange(40) // 2), LABELS, None),
}


@pytest.mark.parametrize("what", OTHER)
def test_another_fit_does_not_continue(what, always, tmp_path):
    changes, graphs, y, weights = OTHER[what]
    settings = SETTINGS | {"epochs": 3}
    tiny(**settings, checkpoints=tmp_path).fit(STORE, LABELS)
    seen = []
    model = tiny(**(settings | changes), checkpoints=tmp_path, callback=seen.append).fit(graphs, y, weights)
    assert not any(one.resumed for one in seen)
    same(model, tiny(**(settings | changes)).fit(graphs, y, weights))


def test_damaged_checkpoints_are_left_out(always, tmp_path):
    settings = SETTINGS | {"epochs": 3, "checkpoints": tmp_path}
    whole = tiny(**settings).fit(STORE, LABELS)
    for number, path in enumerate(sorted(tmp_path.glob("*/checkpoint.safetensors"))):
        content = path.read_bytes()
        path.write_bytes(content[:-1] if number else content[:-9] + b"\x00" + content[-8:])
    with pytest.warns(UserWarning, match="starts over"):
        same(whole, tiny(**settings).fit(STORE, LABELS))


def test_without_a_place_for_checkpoints_training_goes_on(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingError, match="checkpoints=3: the path of a folder is needed, or None"):
        tiny(checkpoints=3).fit(STORE, LABELS)
    model = tiny(checkpoints=tmp_path / "c")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        patch.setattr("sopool.training.runs.store.whole_file", _full)
        patch.setattr("sopool.training.runs.files.whole_file", _full)
        model.fit(STORE, LABELS)
    (one,) = {str(warning.message) for warning in seen}
    assert "No space left on device" in one
    assert "Training goes on, but cannot continue after an interruption." in one


def _full(path):
    raise OSError(28, "No space left on device", str(path))


def test_estimates_and_searches_continue(always, tmp_path):
    settings = {"epochs": 3, "checkpoints": tmp_path}
    model = searched(tiny(**settings), {"hidden": [3, 4]})
    counts = []
    first = estimate(model, NAMED, folds=2, on_epoch=counts.append)
    again = []
    second = estimate(model, NAMED, folds=2, on_epoch=again.append)
    assert second.to_json() == first.to_json()
    assert not any(one.resumed for one in counts)
    assert all(one.resumed for one in again)
    fitted = fit_labelled(model, NAMED).best_estimator_
    fitted.save(tmp_path / "m.sopool")
    assert b"checkpoints" not in (tmp_path / "m.sopool").read_bytes()
    plain = fit_labelled(searched(tiny(epochs=3), {"hidden": [3, 4]}), NAMED).best_estimator_
    same(fitted, plain)
