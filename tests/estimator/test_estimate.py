import os
import re
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV

from sopool import GraphClassifier
from sopool._runtime.processes import WorkerDiedError
from sopool.data.splits import stratified_folds
from sopool.errors import DataError
from sopool.estimator.estimate import (
    Estimate,
    check_classes,
    estimate,
    fits_of,
    least_of_class,
    searched,
    with_callback,
)
from sopool.estimator.validation import label_graphs
from sopool.objectives import SingleLabel
from tests.helpers.little_classifier import LABELS, NAMED, STORE, tiny


def test_folds_are_scored_by_models_that_have_not_seen_them():
    found = estimate(tiny(), NAMED, folds=3)
    for (train, test), each in zip(stratified_folds(LABELS, 3), found.folds, strict=True):
        scores = {name: score for name, (score,) in each.items()}
        shares = tiny().fit(STORE[train.tolist()], LABELS[train]).predict_proba(STORE[test.tolist()])
        predicted = np.array(["even", "odd"])[shares.argmax(1)]
        assert scores["accuracy"] == accuracy_score(LABELS[test], predicted)
        assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(LABELS[test], predicted))
        assert scores["roc_auc"] == pytest.approx(roc_auc_score(LABELS[test] == "odd", shares[:, 1]))
    values = [scores["accuracy"][0] for scores in found.folds]
    assert found.mean("accuracy") == pytest.approx(np.mean(values))
    assert found.std("accuracy") == pytest.approx(np.std(values))
    assert found.baseline_mean("accuracy") == pytest.approx(0.5, abs=0.05)
    assert found.to_json()["scores"]["accuracy"] == {"mean": found.mean("accuracy"), "std": found.std("accuracy")}


def test_a_class_too_small_for_the_folds_is_named():
    with pytest.raises(DataError, match="class 'rare' has fewer graphs"):
        estimate(tiny(), replace(STORE, labels=torch.tensor([2, *STORE.labels[1:]]), classes=(0, 1, "rare")), folds=3)


@given(st.integers(1, 12), st.integers(0, 6).filter(lambda folds: folds != 1), st.integers(1, 3))
def test_too_small_a_class_is_refused_with_a_way_out(count, folds, needed):
    """If and only if some fold leaves too few to train on; a number of folds that is offered does."""
    labels = ["rare"] * count + ["common"] * 30
    graphs = label_graphs(STORE[[0] * len(labels)], labels)
    assume(count >= folds)

    def left(folds):
        splits = stratified_folds(labels, folds) if folds else [(range(len(labels)), [])]
        return min(sum(labels[i] == "rare" for i in train) for train, _ in splits)

    if left(folds) >= needed:
        check_classes(graphs, folds, needed)
        return
    with pytest.raises(DataError, match="class 'rare' has") as caught:
        check_classes(graphs, folds, needed)
    assert "validation_fraction" not in str(caught.value)
    offered = re.search(r"use folds=(\d+)", str(caught.value))
    if offered:
        assert left(int(offered[1])) >= needed
    else:
        assert count < needed or folds == 0


def test_a_search_needs_graphs_for_its_own_folds():
    assert least_of_class(tiny()) == 1
    assert least_of_class(searched(tiny(), {"hidden": [2, 3]})) == 3


@pytest.mark.parametrize(("accuracy", "balanced", "missed"), [(0.9, 0.5, True), (0.9, 0.85, False), (0.9, 0.95, False)])
def test_rare_classes_are_missed_where_balanced_accuracy_is_far_lower(accuracy, balanced, missed):
    scores = {"accuracy": [accuracy], "balanced_accuracy": [balanced], "roc_auc": [None]}
    assert Estimate(SingleLabel(("a", "b")), [scores], []).misses_rare_classes is missed


def test_a_choice_of_settings_is_searched_inside():
    assert searched(tiny(), {"pool": ["sum"], "hidden": [8]}).hidden == 8
    search = searched(tiny(), {"pool": ["sum"], "hidden": [2, 3]})
    assert isinstance(search, GridSearchCV)
    assert search.param_grid == {"hidden": [2, 3]}
    assert search.estimator.pool == "sum"
    assert len(estimate(search, NAMED, folds=2).folds) == 2


@pytest.mark.parametrize("hidden", [[2], [2, 3]])
def test_each_epoch_of_all_that_is_trained_is_told(hidden):
    model = searched(tiny(), {"hidden": hidden})
    seen = []
    with_callback(model, seen.append).fit(STORE, LABELS)
    assert sum(one.finished for one in seen) == 2 * fits_of(model)
    assert [one.epoch for one in seen] == [1, 2, 3] * fits_of(model)
    told = []
    estimate(model, NAMED, folds=2, on_epoch=told.append)
    assert sum(one.finished for one in told) == 2 * 2 * fits_of(model)


def test_processes_find_the_same_and_tell_as_much():
    here = []
    there = []
    found = [
        estimate(tiny(), NAMED, folds=2, workers=workers, on_epoch=seen.append)
        for workers, seen in ((1, here), (2, there))
    ]
    assert found[0] == found[1]
    assert sorted(here) == sorted(there)


class Killed(GraphClassifier):
    """Has its process killed when it is to learn."""

    def fit(self, graphs, y=None, sample_weight=None):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_told():
    with pytest.raises(WorkerDiedError, match="fewer workers"):
        estimate(Killed(), NAMED, folds=2, workers=2)
