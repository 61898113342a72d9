"""Predicting several labels at once, some of them missing."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold

from sopool import GraphClassifier
from sopool.data import DataError, to_pyg
from sopool.errors import SettingError
from sopool.estimator import UnseenWarning, load_model
from sopool.estimator.validation import label_weights
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import FLAGS, NAN, NUMBERS, SOME_FLAGS, with_targets


@pytest.fixture(autouse=True)
def unseen_values_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWarning)
        yield


def test_it_predicts_as_scikit_learns_classifiers_of_several_labels_do():
    model = tiny(n_models=3).fit(STORE, FLAGS)
    labels, shares, uncertainty = model.predict_with_uncertainty(STORE)
    assert labels.shape == shares.shape == uncertainty.shape == (40, 2)
    assert labels.dtype.kind == "i"
    np.testing.assert_array_equal(labels, shares > 0.5)
    np.testing.assert_array_equal(model.predict(STORE), labels)
    np.testing.assert_array_equal(model.predict_proba(STORE), shares)
    assert [one.tolist() for one in model.classes_] == [[0, 1]] * 2
    assert model.target_names_ == ["target 1", "target 2"]
    scores = model.ensemble_.scores(STORE, model.ensemble_.encode(STORE)).double()
    np.testing.assert_allclose(shares, scores.sigmoid().mean(0))
    np.testing.assert_allclose(uncertainty, scores.sigmoid().std(0, correction=0), atol=1e-12)


def test_it_learns_labels_of_which_many_are_missing():
    model = tiny(hidden=8, epochs=20, steps=10, dropout=0.0, pool="sum").fit(STORE, SOME_FLAGS)
    known = ~np.isnan(SOME_FLAGS[:, 0])
    assert roc_auc_score(SOME_FLAGS[known, 0], model.predict_proba(STORE)[known, 0]) > 0.8


@pytest.mark.parametrize("form", [np.asarray, lambda y: [[None if v != v else bool(v) for v in row] for row in y]])
def test_a_missing_label_is_missing_however_it_is_written(form):
    one, two = (tiny().fit(STORE, y).predict_proba(STORE) for y in (SOME_FLAGS, form(SOME_FLAGS)))
    np.testing.assert_array_equal(one, two)
    carried = tiny().fit(with_targets(SOME_FLAGS, ("large", "third")))
    np.testing.assert_array_equal(carried.predict_proba(STORE), one)
    assert carried.target_names_ == ["large", "third"]


def test_graphs_carry_several_labels():
    graphs = with_targets(SOME_FLAGS)
    expected = tiny().fit(graphs).predict_proba(graphs)
    for form in (to_pyg(graphs), list(graphs)):
        np.testing.assert_allclose(tiny().fit(form).predict_proba(form), expected, atol=1e-6)


def test_a_single_label_is_no_class_when_graphs_are_divided():
    """Scikit-learn makes a list of graphs of a store, for example in a search."""
    graphs = with_targets(SOME_FLAGS[:, :1], ["large"])
    one, two = (tiny(epochs=1).fit(form) for form in (graphs, list(graphs)))
    assert two.objective_ == one.objective_
    assert two.target_names_ == ["large"]
    np.testing.assert_array_equal(one.predict_proba(STORE), two.predict_proba(STORE))
    assert two.score(list(graphs)) == one.score(graphs)


def test_graphs_without_any_label_have_no_influence():
    y = np.where(np.arange(40)[:, None] % 4 > 0, SOME_FLAGS, NAN)
    known = ~np.isnan(y).all(1)
    some = STORE[known.nonzero()[0].tolist()]
    one, two = (tiny().fit(graphs, labels) for graphs, labels in ((STORE, y), (some, y[known])))
    np.testing.assert_array_equal(one.predict_proba(STORE), two.predict_proba(STORE))


def test_the_score_is_the_mean_accuracy_over_the_known_labels():
    model = tiny().fit(STORE, SOME_FLAGS)
    labels = model.predict(STORE)
    shares = model.predict_proba(STORE)
    known = ~np.isnan(SOME_FLAGS)
    columns = [(known[:, t], SOME_FLAGS[known[:, t], t]) for t in range(2)]
    each = [accuracy_score(true, labels[rows, t]) for t, (rows, true) in enumerate(columns)]
    assert model.score(STORE, SOME_FLAGS) == pytest.approx(np.mean(each))
    found = model.scores(STORE, SOME_FLAGS, metrics=["roc_auc", "average_precision"])
    for name, score in (("roc_auc", roc_auc_score), ("average_precision", average_precision_score)):
        assert found[name] == pytest.approx(np.mean([score(y, shares[r, t]) for t, (r, y) in enumerate(columns)]))
    alone = np.where(np.arange(2) == 0, SOME_FLAGS, NAN)
    assert model.score(STORE, alone) == pytest.approx(each[0])  # the other cannot be scored
    with pytest.raises(DataError, match="no label of any graph is known"):
        model.score(STORE, np.full((40, 2), NAN))


def test_balanced_weights_count_both_values_of_each_label_alike():
    weights = np.array(label_weights("balanced", SOME_FLAGS)).reshape(2, 2)
    for label, (zero, one) in zip(SOME_FLAGS.T, weights, strict=True):
        known = label[~np.isnan(label)]
        assert (known == 0).sum() * zero == pytest.approx((known == 1).sum() * one) == pytest.approx(len(known) / 2)
    free, balanced = (tiny(class_weight=given).fit(STORE, SOME_FLAGS) for given in (None, "balanced"))
    assert not np.allclose(free.predict_proba(STORE), balanced.predict_proba(STORE))
    with pytest.raises(SettingError, match="None or 'balanced' is needed for several labels"):
        tiny(class_weight={0: 1.0, 1: 2.0}).fit(STORE, FLAGS)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (NUMBERS, r"graph 0: the target 'target 1' is .*, and 79 others are neither.*predicted by GraphRegressor"),
        ([["yes", "no"]] * 40, "the target 'target 1' is 'yes', expected a number"),
        (np.where(np.arange(80).reshape(40, 2) == 9, np.inf, FLAGS), "graph 4: the target 'target 2' is inf"),
        ([[0, 1]] * 39 + [[0, 1, 1]], "graph 39: 3 targets, expected 2"),
        (FLAGS[:3], r"the targets have shape \[3, 2\] for 40 graphs"),
        (FLAGS * [1, NAN], "the target 'target 2' has no value in any graph"),
        (FLAGS * [1, 0], "nothing to learn of the target 'target 2': all 40 known values are 0"),
    ],
)
def test_labels_that_cannot_be_are_refused(y, message):
    with pytest.raises(DataError, match=message):
        tiny().fit(STORE, y)


def test_one_class_and_several_labels_are_not_mixed_up():
    several = tiny(epochs=1).fit(STORE, FLAGS)
    one = tiny(epochs=1).fit(STORE, LABELS)
    with pytest.raises(DataError, match="the graphs have one class each, but the model predicts several labels"):
        several.score(STORE, LABELS)
    with pytest.raises(DataError, match="the graphs have several labels each, but the model predicts one class"):
        one.score(STORE, FLAGS)
    with pytest.raises(DataError, match="there are 3 targets"):
        several.score(STORE, np.ones((40, 3)))
    with pytest.raises(DataError, match="not among the model's classes"):
        one.scores(STORE, np.where(LABELS == "odd", "odd", "other"))
    again = several.fit(STORE, LABELS)
    assert again.target_names_ == []
    assert set(again.predict(STORE)) <= {"even", "odd"}


def test_what_was_saved_comes_back(tmp_path):
    model = tiny(class_weight="balanced", metric="average_precision").fit(with_targets(SOME_FLAGS, ("a", "b")))
    model.save(tmp_path / "m.sopool")
    for back in (GraphClassifier.load(tmp_path / "m.sopool", "cpu"), load_model(tmp_path / "m.sopool", "cpu")):
        for mine, other in zip(
            model.predict_with_uncertainty(STORE), back.predict_with_uncertainty(STORE), strict=True
        ):
            np.testing.assert_array_equal(mine, other)
        assert back.target_names_ == ["a", "b"]
        assert back.metric == "average_precision"
        assert [one.tolist() for one in back.classes_] == [[0, 1]] * 2
        assert back.was_trained_on(STORE, SOME_FLAGS)
        assert not back.was_trained_on(replace(STORE, labels=1 - STORE.labels), FLAGS)


def test_a_search_chooses_among_settings():
    grid = {"hidden": [2, 4], "pool": ["sum", "sopool-bimap"]}
    search = GridSearchCV(tiny(), grid, cv=KFold(2, shuffle=True, random_state=0)).fit(STORE, FLAGS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(STORE).shape == (40, 2)
