import os
import signal

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV

from sopool import GraphClassifier
from sopool._runtime.processes import WorkerDiedError
from sopool.data.splits import stratified_folds
from sopool.errors import DataError
from sopool.estimator.estimate import estimate, fits_of, searched, watched
from tests.helpers.little_classifier import LABELS, STORE, tiny


def test_folds_are_scored_by_models_that_have_not_seen_them():
    found = estimate(tiny(), STORE, LABELS, folds=3)
    for (train, test), scores in zip(stratified_folds(LABELS, 3), found.folds, strict=True):
        shares = tiny().fit(STORE[train.tolist()], LABELS[train]).predict_proba(STORE[test.tolist()])
        predicted = np.array(["even", "odd"])[shares.argmax(1)]
        assert scores["accuracy"] == accuracy_score(LABELS[test], predicted)
        assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(LABELS[test], predicted))
        assert scores["roc_auc"] == pytest.approx(roc_auc_score(LABELS[test] == "odd", shares[:, 1]))
    values = [scores["accuracy"] for scores in found.folds]
    assert found.mean("accuracy") == pytest.approx(np.mean(values))
    assert found.std("accuracy") == pytest.approx(np.std(values))
    assert found.largest_class == 0.5
    assert found.to_json()["accuracy"] == {"mean": found.mean("accuracy"), "std": found.std("accuracy")}


def test_a_class_too_small_for_the_folds_is_named():
    with pytest.raises(DataError, match="class 'rare' has fewer graphs"):
        estimate(tiny(), STORE, np.array(["rare", *LABELS[1:]]), folds=3)


def test_a_choice_of_settings_is_searched_inside():
    assert searched(tiny(), {"pool": ["sum"], "hidden": [8]}).hidden == 8
    search = searched(tiny(), {"pool": ["sum"], "hidden": [2, 3]})
    assert isinstance(search, GridSearchCV)
    assert search.param_grid == {"hidden": [2, 3]}
    assert search.estimator.pool == "sum"
    assert len(estimate(search, STORE, LABELS, folds=2).folds) == 2


@pytest.mark.parametrize("hidden", [[2], [2, 3]])
def test_each_epoch_of_all_that_is_trained_is_told(hidden):
    model = searched(tiny(), {"hidden": hidden})
    seen = []
    watched(model, seen.append).fit(STORE, LABELS)
    assert sum(one.finished for one in seen) == 2 * fits_of(model)
    assert [one.epoch for one in seen] == [1, 2, 3] * fits_of(model)
    told = []
    estimate(model, STORE, LABELS, folds=2, watch=told.append)
    assert sum(one.finished for one in told) == 2 * 2 * fits_of(model)


def test_processes_find_the_same_and_tell_as_much():
    here = []
    there = []
    found = [
        estimate(tiny(), STORE, LABELS, folds=2, workers=workers, watch=seen.append)
        for workers, seen in ((1, here), (2, there))
    ]
    assert found[0] == found[1]
    assert sorted(here) == sorted(there)


class Killed(GraphClassifier):
    """Has its process killed when it is to learn."""

    def fit(self, graphs, y=None):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_told():
    with pytest.raises(WorkerDiedError, match="fewer --workers"):
        estimate(Killed(), STORE, LABELS, folds=2, workers=2)
