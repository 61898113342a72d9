import os
import re
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold

from sopool import GraphClassifier
from sopool._runtime.processes import WorkerDiedError
from sopool.data.splits import random_folds, stratified_folds
from sopool.errors import DataError
from sopool.estimator.estimate import (
    Estimate,
    check_classes,
    estimate,
    fit_labelled,
    fits_of,
    least_of_class,
    searched,
    with_callback,
)
from sopool.estimator.validation import label_graphs
from sopool.objectives import SingleLabel
from tests.helpers.little_classifier import LABELS, NAMED, STORE, tiny
from tests.helpers.little_targets import FLAGS, NAN, NUMBERS, SOME, tiny_regressor, with_targets


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


@pytest.mark.parametrize("values", [NUMBERS, SOME])
def test_numbers_are_scored_by_models_that_have_not_seen_them(values):
    graphs = with_targets(values)
    known = ~np.isnan(values).all(1)
    some, true = graphs[known.nonzero()[0].tolist()], values[known]
    found = estimate(tiny_regressor(), graphs, folds=3)
    for (train, test), scores, alike in zip(random_folds(len(some), 3), found.folds, found.baseline, strict=True):
        predicted = tiny_regressor().fit(some[train.tolist()]).predict(some[test.tolist()])
        for t in range(2):
            rows = ~np.isnan(true[test, t])
            own = true[test, t][rows]
            assert scores["mae"][t] == pytest.approx(mean_absolute_error(own, predicted[rows, t]))
            assert scores["r2"][t] == pytest.approx(r2_score(own, predicted[rows, t]))
            mean = np.nanmean(true[train, t])
            assert alike["mae"][t] == pytest.approx(mean_absolute_error(own, np.full(len(own), mean)))
    spreads = np.nanstd(true, axis=0)
    folds = [np.mean([fold["rmse"][t] / spreads[t] for t in range(2)]) for fold in found.folds]
    assert found.mean("rmse") == pytest.approx(np.mean(folds))
    assert found.std("rmse") == pytest.approx(np.std(folds))
    assert found.mean("rmse", 1) == pytest.approx(np.mean([fold["rmse"][1] for fold in found.folds]))
    assert set(found.to_json()["targets"]) == {"size", "noise"}


@pytest.mark.parametrize("hidden", [[2], [2, 3]])
def test_a_label_with_one_value_in_a_fold_has_no_score_there(hidden):
    """Neither in a test fold nor in a training fold is this a reason to stop; averages leave it out."""
    rare = np.stack([FLAGS[:, 0], np.arange(40) == 3, np.where(np.arange(40) < 2, np.arange(40), NAN)], axis=1)
    graphs = with_targets(rare, ("large", "rare", "hardly known"))
    found = estimate(searched(tiny(epochs=1), {"hidden": hidden}), graphs, folds=4)
    assert found.incomplete("roc_auc") == ["rare", "hardly known"]
    for fold, scores in enumerate(found.folds):
        assert scores["roc_auc"][0] is not None
        assert (scores["roc_auc"][1] is None) == (3 not in random_folds(40, 4)[fold][1])
    known = [scores["roc_auc"][1] for scores in found.folds if scores["roc_auc"][1] is not None]
    assert found.mean("roc_auc", 1) == pytest.approx(np.mean(known))
    assert found.mean("roc_auc") is not None
    with pytest.raises(DataError, match="nothing to learn of the target 'rare'"):
        estimate(tiny(epochs=1), with_targets(rare * [1, 0, 1], graphs.target_names), folds=4)


@pytest.mark.parametrize("metric", ["mae", "r2", None])
def test_a_search_prefers_what_is_better_by_its_metric(metric):
    graphs = with_targets(NUMBERS)
    search = searched(tiny_regressor(metric=metric), {"epochs": [1, 3], "pool": ["sum"]})
    found = fit_labelled(search, graphs)
    sign = 1 if metric == "r2" else -1
    for setting, score in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        folds = KFold(3, shuffle=True, random_state=0).split(np.zeros(40))
        each = [
            tiny_regressor(metric=metric, pool="sum", **setting)
            .fit(graphs[train.tolist()])
            .scores(graphs[test.tolist()], metrics=[metric or "rmse"])[metric or "rmse"]
            for train, test in folds
        ]
        assert score == pytest.approx(sign * np.mean(each))
    assert found.best_score_ == max(found.cv_results_["mean_test_score"])
    assert found.best_estimator_.target_names_ == ["size", "noise"]


def test_a_fold_without_a_score_leaves_the_choice_to_the_others():
    """The only graph of a label is in one of the inner folds; the others have no ROC-AUC, whatever the settings."""
    graphs = with_targets((np.arange(40) == 7)[:, None].astype(float), ["rare"])
    search = fit_labelled(searched(tiny(epochs=1, validation_fraction=0), {"hidden": [2, 4]}), graphs)
    each = np.stack([search.cv_results_[f"split{fold}_test_score"] for fold in range(search.n_splits_)])
    assert (each == 0).all(1).sum() >= 2
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
