"""It goes where scikit-learn's own estimators go."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import estimator_checks

from sopool import GraphClassifier
from sopool.data import to_networkx, to_pyg
from sopool.data.names import plain
from sopool.estimator import UnseenWarning
from tests.helpers.little_classifier import LABELS, STORE, tiny

FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)


@pytest.fixture(autouse=True)
def unseen_values_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWarning)
        yield


def test_parameters_are_got_set_and_cloned():
    model = tiny(pool="sum", class_weight={"even": 1.0, "odd": 2.0})
    copied = clone(model.fit(STORE, LABELS))
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "classes_")
    assert copied.set_params(hidden=8, pool="sopool").hidden == 8
    assert repr(GraphClassifier(hidden=8)) == "GraphClassifier(hidden=8)"


def test_before_it_is_fitted_it_says_so():
    for method in ("predict", "predict_proba", "transform", "predict_with_uncertainty"):
        with pytest.raises(NotFittedError):
            getattr(tiny(), method)(STORE)
    with pytest.raises(NotFittedError):
        tiny().save("nowhere")


@pytest.mark.parametrize("graphs", [STORE, to_pyg(STORE), to_networkx(STORE)], ids=["store", "pyg", "networkx"])
def test_cross_validation(graphs):
    scores = cross_val_score(tiny(), graphs, LABELS, cv=FOLDS, scoring="balanced_accuracy")
    assert scores.shape == (2,)
    assert (scores >= 0).all()


def test_folds_of_a_store_are_those_of_its_own_slices():
    by_hand = np.empty((40, 2))
    for train, test in FOLDS.split(LABELS, LABELS):
        by_hand[test] = tiny().fit(STORE[train.tolist()], LABELS[train]).predict_proba(STORE[test.tolist()])
    found = cross_val_predict(tiny(), STORE, LABELS, cv=FOLDS, method="predict_proba")
    np.testing.assert_allclose(found, by_hand, atol=1e-6)


def test_grid_search():
    search = GridSearchCV(tiny(), {"hidden": [2, 4], "pool": ["sum", "sopool-bimap"]}, cv=FOLDS).fit(STORE, LABELS)
    assert search.best_params_["hidden"] in (2, 4)
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(STORE).shape == (40,)


@pytest.mark.filterwarnings("ignore::sopool.estimator.SingleGraphWarning")
def test_a_fold_that_leaves_a_single_graph_of_a_class_is_scored():
    labels = np.array(["rare", "rare", *LABELS[2:]])
    scores = cross_val_score(tiny(), STORE, labels, cv=FOLDS, error_score="raise")
    assert np.isfinite(scores).all()


def test_what_a_search_found_knows_the_classes_by_their_names():
    """So that the graphs' own labels, or those of their file, can be compared with what it predicts."""
    graphs = replace(STORE, classes=(-1, 1))
    search = GridSearchCV(tiny(), {"pool": ["sum"]}, cv=2).fit(graphs, graphs.class_labels)
    model = search.best_estimator_
    assert model.classes_.tolist() == [-1, 1]
    assert model.score(graphs) == search.score(graphs, graphs.class_labels)


def test_what_a_random_search_draws_can_be_saved(tmp_path):
    """It draws NumPy's numbers."""
    drawn = {
        "hidden": np.array([4, 6], np.int32),
        "epochs": np.arange(1, 3),
        "batch_size": np.array([8]),
        "lr": np.logspace(-3, -2, 4),
        "dropout": np.array([0.25, 0.5], np.float32),
        "patience": np.array([3]),
        "n_models": np.array([1, 2]),
        "random_state": np.arange(3),
        "gnn": np.array(["gin-0", "gcn"]),
        "pool_options": [{"rank": np.int64(3), "normalize": np.str_("size")}],
        "class_weight": [{np.str_("even"): np.float64(2), "odd": np.int64(1)}],
    }
    search = RandomizedSearchCV(tiny(), drawn, n_iter=2, cv=FOLDS, random_state=0, error_score="raise")
    best = search.fit(STORE, LABELS).best_estimator_
    assert isinstance(best.hidden, np.integer)  # as it was given
    best.save(tmp_path / "m.sopool")
    again = GraphClassifier.load(tmp_path / "m.sopool", device="cpu")
    np.testing.assert_array_equal(again.predict_proba(STORE), best.predict_proba(STORE))
    assert again.get_params() == best.get_params()
    assert clone(again).get_params() == again.get_params()
    same = tiny(**{name: plain(value) for name, value in search.best_params_.items()}).fit(STORE, LABELS)
    np.testing.assert_array_equal(same.predict_proba(STORE), best.predict_proba(STORE))


def test_pipelines_with_it_at_the_end_and_in_the_middle():
    halved = make_pipeline(FunctionTransformer(lambda graphs: graphs), tiny()).fit(STORE, LABELS)
    assert halved.score(STORE, LABELS) == tiny().fit(STORE, LABELS).score(STORE, LABELS)
    embedded = make_pipeline(tiny(pool="sum"), StandardScaler(), LogisticRegression()).fit(STORE, LABELS)
    assert set(embedded.predict(STORE)) <= {"even", "odd"}


def test_calibration():
    calibrated = CalibratedClassifierCV(tiny(), cv=FOLDS).fit(to_networkx(STORE), LABELS)
    found = calibrated.predict_proba(to_networkx(STORE))
    np.testing.assert_allclose(found.sum(1), 1)
    assert calibrated.predict(STORE).shape == (40,)


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimators_unfitted",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
    ],
)
def test_scikit_learns_own_checks_that_need_no_rows(check):
    if not hasattr(estimator_checks, check):
        pytest.skip(f"this version of scikit-learn has no {check}")
    getattr(estimator_checks, check)("GraphClassifier", tiny())


def test_pickles_predict_the_same():
    model = tiny().fit(STORE, LABELS)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(STORE), model.predict_proba(STORE))
