"""Predicting numbers: units, missing values, weights, and what scikit-learn expects of a regressor."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils import estimator_checks

from sopool import GraphClassifier, GraphRegressor
from sopool.data import DataError, Graph, make_measurements, pack, to_networkx, to_pyg
from sopool.errors import SettingError
from sopool.estimator import UnseenWarning, load_model
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import NAN, NUMBERS, SOME, tiny_regressor, with_targets

SIZES = NUMBERS[:, 0]


@pytest.fixture(autouse=True)
def unseen_values_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWarning)
        yield


def test_it_learns_numbers_of_unseen_graphs():
    graphs = make_measurements(150, most_nodes=16)
    model = tiny_regressor(pool="sum", hidden=8, epochs=25, steps=10, batch_size=32, dropout=0.0)
    assert model.fit(graphs[:120]).scores(graphs[120:], metrics=["r2"])["r2"] > 0.3
    assert model.target_names_ == ["edges", "spread"]


@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 2)])
@pytest.mark.parametrize("form", [np.asarray, torch.as_tensor, lambda y: y.tolist()])
def test_predictions_have_the_shape_of_the_numbers(shape, form):
    y = NUMBERS[:, : shape[1]] if len(shape) == 2 else SIZES
    model = tiny_regressor(n_models=1, epochs=1).fit(STORE, form(y))
    found = model.predict_with_uncertainty(STORE[:7])
    assert found.values.shape == found.uncertainty.shape == (7, *shape[1:])
    assert found.values.dtype == np.float64
    assert model.predict(STORE[:7]).shape == (7, *shape[1:])


def test_numbers_may_have_any_unit():
    """The same training on standardized numbers: predictions, spreads and explanations change as the unit does."""
    model = tiny_regressor().fit(STORE, SIZES)
    other = tiny_regressor().fit(STORE, 1000 * SIZES - 7e5)
    one, two = (found.predict_with_uncertainty(STORE) for found in (model, other))
    np.testing.assert_allclose(two.values, 1000 * one.values - 7e5, rtol=1e-5)
    np.testing.assert_allclose(two.uncertainty, 1000 * one.uncertainty, rtol=1e-2, atol=0.1)
    one, two = (found.explain(STORE[:1])[0].decompose() for found in (model, other))
    np.testing.assert_allclose(two.nodes, 1000 * one.nodes, rtol=1e-2, atol=0.1)
    assert two.bias == pytest.approx(1000 * one.bias - 7e5, rel=1e-5)


def test_numbers_are_means_and_uncertainty_their_spread():
    model = tiny_regressor(n_models=3).fit(STORE, NUMBERS)
    scores = model.ensemble_.scores(STORE, model.ensemble_.encode(STORE)).double().numpy()
    each = [one * own.scale + own.shift for one, own in zip(scores, model.ensemble_.objectives, strict=True)]
    found = model.predict_with_uncertainty(STORE)
    np.testing.assert_allclose(found.values, np.mean(each, axis=0))
    np.testing.assert_allclose(found.uncertainty, np.std(each, axis=0), rtol=1e-6)
    assert len({own.shift for own in model.ensemble_.objectives}) == 3  # of the graphs that each was trained on
    alone = tiny_regressor(n_models=1).fit(STORE, SIZES)
    assert np.isnan(alone.predict_with_uncertainty(STORE).uncertainty).all()


def test_every_kind_of_graphs_gives_the_same():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    edges = ring + [pair[::-1] for pair in ring]
    y = [0.5 * i for i in range(12)]
    plain = [Graph(5, edges, node_labels=[0, 1, i % 3, 0, 1], label=y[i]) for i in range(12)]
    store = pack(plain)
    kinds = [store, list(store), plain, to_networkx(store), to_pyg(store)]
    first, *others = [tiny_regressor().fit(graphs).predict(graphs) for graphs in kinds]
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-5)
    given = tiny_regressor().fit(store, y)
    np.testing.assert_array_equal(given.predict(store), first)


def test_the_order_of_graphs_does_not_matter_in_prediction():
    model = tiny_regressor().fit(STORE, NUMBERS)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(model.predict(STORE[order.tolist()]), model.predict(STORE)[order], rtol=1e-5)


def test_classes_that_are_numbers_can_be_predicted_as_numbers():
    model = tiny_regressor().fit(replace(STORE, classes=(-1, 1)))
    assert model.predict(STORE).shape == (40,)
    assert abs(model.predict(STORE)).max() < 3


def test_graphs_without_any_number_have_no_influence():
    known = np.arange(40) % 4 > 0
    y = np.where(known[:, None], SOME, NAN)
    known &= ~np.isnan(y).all(1)
    some = STORE[known.nonzero()[0].tolist()]
    weights = np.linspace(1, 2, 40)
    found = tiny_regressor().fit(STORE, y, sample_weight=weights)
    again = tiny_regressor().fit(some, y[known], sample_weight=weights[known])
    np.testing.assert_array_equal(found.predict(STORE), again.predict(STORE))
    assert found.was_trained_on(STORE, y)
    assert found.was_trained_on(some, y[known])
    assert not found.was_trained_on(STORE, NUMBERS)


def test_a_missing_number_is_not_learned_from():
    """Whatever stands for it, and whatever the number of another target is."""
    none = [[None if np.isnan(one) else one for one in row] for row in SOME]
    models = [tiny_regressor().fit(STORE, y) for y in (SOME, none, torch.as_tensor(SOME))]
    carried = tiny_regressor().fit(with_targets(SOME))
    for model in (*models[1:], carried):
        np.testing.assert_array_equal(model.predict(STORE), models[0].predict(STORE))
    assert carried.target_names_ == ["size", "noise"]


def test_only_ratios_of_weights_matter_and_a_weight_of_0_leaves_a_graph_out():
    weights = np.arange(40) % 3 + 0.5
    one, two = (tiny_regressor().fit(STORE, SIZES, w).predict(STORE) for w in (weights, 2**10 * weights))
    np.testing.assert_array_equal(one, two)
    kept = np.arange(40) % 5 > 0
    zero = tiny_regressor().fit(STORE, SIZES, np.where(kept, weights, 0)).predict(STORE)
    some = tiny_regressor().fit(STORE[kept.nonzero()[0].tolist()], SIZES[kept], weights[kept]).predict(STORE)
    np.testing.assert_array_equal(zero, some)
    plain = tiny_regressor().fit(STORE, SIZES).predict(STORE)
    np.testing.assert_array_equal(tiny_regressor().fit(STORE, SIZES, np.full(40, 3)).predict(STORE), plain)
    assert not np.allclose(one, plain)


@pytest.mark.parametrize("make", [tiny_regressor, tiny])
def test_a_graph_of_weight_2_counts_as_two(make):
    """In the first loss, which is that of all graphs here, a half that counts twice and the other half add up."""
    y = SIZES if make is tiny_regressor else LABELS
    whole = {"validation_fraction": 0, "batch_size": 40, "steps": 1, "epochs": 1, "dropout": 0.0}
    half = np.arange(40) < 20

    def total(weights):
        loss = make(**whole).fit(STORE, y, sample_weight=weights).history_["loss"][:, 0]
        return loss * weights.sum()

    found = total(np.where(half, 2.0, 1.0)) + total(np.where(half, 1.0, 2.0))
    np.testing.assert_allclose(found, 3 * total(np.ones(40)), rtol=1e-5)
    assert not np.allclose(total(np.where(half, 2.0, 1.0)), total(np.where(half, 1.0, 2.0)))


def test_the_score_is_scikit_learns_over_the_known_values():
    model = tiny_regressor().fit(STORE, SOME)
    found = model.predict(STORE)
    known = ~np.isnan(SOME)
    weights = np.linspace(1, 3, 40)
    each = [(known[:, t], SOME[known[:, t], t], found[known[:, t], t]) for t in range(2)]
    assert model.score(STORE, SOME) == pytest.approx(np.mean([r2_score(true, values) for _, true, values in each]))
    weighted = [r2_score(true, values, sample_weight=weights[rows]) for rows, true, values in each]
    assert model.score(STORE, SOME, weights) == pytest.approx(np.mean(weighted))
    spreads = np.nanstd(SOME, axis=0)
    errors = [root_mean_squared_error(true, values) for _, true, values in each] / spreads
    scores = model.scores(STORE, SOME, metrics=["rmse", "mae"])
    assert scores["rmse"] == pytest.approx(np.mean(errors))
    one = tiny_regressor().fit(STORE, SIZES)
    assert one.scores(STORE, SIZES)["mae"] == pytest.approx(mean_absolute_error(SIZES, one.predict(STORE)))
    assert one.score(with_targets(NUMBERS[:, :1], ["size"])) == one.score(STORE, SIZES)


@pytest.mark.parametrize(("loss", "metric"), [("squared", "rmse"), ("absolute", "mae"), ("huber", "mae")])
def test_the_metric_chooses_the_epoch(loss, metric):
    model = tiny_regressor(loss=loss, epochs=6).fit(STORE, SIZES)
    assert model.objective_.metric == metric
    for curve, losses, best in zip(
        model.history_["validation_score"], model.history_["validation_loss"], model.best_epochs_, strict=True
    ):
        ranks = list(zip(curve, losses, strict=True))
        assert ranks.index(min(ranks)) == best
    other = tiny_regressor(loss=loss, epochs=6, metric="r2").fit(STORE, SIZES)
    for curve, best in zip(other.history_["validation_score"], other.best_epochs_, strict=True):
        assert curve[best] == curve.max()


@pytest.mark.parametrize("flat", [True, False])
def test_what_was_saved_comes_back(flat, tmp_path):
    path = tmp_path / "m.sopool"
    model = tiny_regressor(loss="huber", metric="mae").fit(STORE, SIZES if flat else SOME)
    model.save(path)
    for back in (GraphRegressor.load(path, "cpu"), load_model(path, "cpu")):
        assert type(back) is GraphRegressor
        assert back.get_params() == model.get_params()
        assert back.objective_ == model.objective_
        for mine, other in zip(model.ensemble_.objectives, back.ensemble_.objectives, strict=True):
            np.testing.assert_array_equal(mine.scaling, other.scaling)
        assert back.target_names_ == model.target_names_
        for mine, other in zip(
            model.predict_with_uncertainty(STORE), back.predict_with_uncertainty(STORE), strict=True
        ):
            np.testing.assert_array_equal(mine, other)
        for name, curve in model.history_.items():
            np.testing.assert_array_equal(curve, back.history_[name])
    with pytest.raises(
        DataError, match=r"it is a GraphRegressor, not a GraphClassifier: read it with GraphRegressor\."
    ):
        GraphClassifier.load(path)
    tiny(n_models=1, epochs=1).fit(STORE, LABELS).save(path)
    with pytest.raises(
        DataError, match=r"it is a GraphClassifier, not a GraphRegressor: read it with GraphClassifier\."
    ):
        GraphRegressor.load(path)
    assert type(load_model(path, "cpu")) is GraphClassifier


HOLED = np.where(np.arange(80).reshape(40, 2) == 7, np.inf, NUMBERS)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (HOLED, "graph 3: the target 'target 2' is inf, expected a number of at most"),
        ([*SIZES[:-1], "much"], "graph 39: the label 'much' is text"),
        ([[1.0, "x"]] * 40, "graph 0: the target 'target 2' is 'x', expected a number"),
        (LABELS, "targets of type <U4 were given; expected numbers"),
        (NUMBERS[:7], r"the targets have shape \[7, 2\] for 40 graphs"),
        ([[1.0, 2.0]] * 39 + [[1.0]], "graph 39: 1 targets, expected 2"),
        (np.ones((40, 2, 2)), r"the targets have shape \[40, 2, 2\]"),
        (np.full(40, NAN), "the target 'target' has no value in any graph: leave it out"),
        (NUMBERS * [1, NAN], "the target 'target 2' has no value in any graph: leave it out"),
        (np.ones(40), "nothing to learn of the target 'target': all 40 known values are 1"),
        ([3.0] + [None] * 39, "the only known value is 3"),
        (NUMBERS * 1j, "targets of type complex128"),
        ("numbers", "give a list with one for each graph"),
    ],
)
def test_numbers_that_cannot_be_are_refused(y, message):
    with pytest.raises(DataError, match=message):
        tiny_regressor().fit(STORE, y)


@pytest.mark.parametrize("method", ["predict", "predict_with_uncertainty", "score", "scores", "outputs"])
def test_warnings_point_to_the_caller(method):
    model = tiny_regressor(epochs=1).fit(with_targets(NUMBERS))
    strange = with_targets(NUMBERS, store=replace(STORE, node_label_names=(7, 8, 9)))
    with pytest.warns(UnseenWarning, match="that no training graph has") as seen:
        getattr(model, method)(strange)
    assert seen[0].filename == __file__


def test_few_values_that_are_all_held_out_are_told_of():
    y = np.stack([SIZES, np.full(40, NAN)], axis=1)
    y[:2, 1] = 1, 2
    with pytest.raises(DataError, match="the target 'target 2' is known of 2 of 40 graphs, and all of these were held"):
        tiny_regressor(n_models=30, epochs=1, validation_fraction=0.6).fit(STORE, y)
    assert tiny_regressor(epochs=1, validation_fraction=0).fit(STORE, y).predict(STORE).shape == (40, 2)


def test_other_targets_are_not_scored():
    model = tiny_regressor(epochs=1).fit(with_targets(NUMBERS))
    with pytest.raises(DataError, match=r"there are 1 targets, \['target'\], but the model was fitted to 2"):
        model.score(STORE, SIZES)
    with pytest.raises(DataError, match=r"the targets are \['noise', 'size'\], but the model was fitted to \['size'"):
        model.score(with_targets(NUMBERS, ("noise", "size")))
    with pytest.raises(DataError, match="fewer than two numbers are known of each target"):
        model.score(STORE[:1], NUMBERS[:1])
    assert model.scores(STORE[:1], NUMBERS[:1])["r2"] is None
    with pytest.raises(SettingError, match="there is no metric 'accuracy'"):
        model.scores(STORE, NUMBERS, metrics=["accuracy"])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight has shape \[3\], expected one weight for each of 40 graphs"),
        ([-1.0] * 40, "sample_weight of graph 0 is -1: finite numbers of at least 0"),
        ([1.0, NAN] * 20, "sample_weight of graph 1 is nan"),
        (np.zeros(40), "sample_weight is 0 for all graphs"),
        (["heavy"] * 40, "numbers are needed"),
    ],
)
@pytest.mark.parametrize("make", [tiny, tiny_regressor])
def test_weights_that_cannot_be_are_refused(make, weights, message):
    y = SIZES if make is tiny_regressor else LABELS
    with pytest.raises(DataError, match=message):
        make().fit(STORE, y, sample_weight=weights)
    with pytest.raises(DataError, match=message):
        make(n_models=1, epochs=1).fit(STORE, y).score(STORE, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "there is no loss 'hinge'"),
        ({"loss": None}, "loss=None: 'squared', 'absolute' or 'huber' is needed"),
        ({"metric": "accuracy"}, "there is no metric 'accuracy'. Known: mae, rmse, r2, spearman"),
        ({"metric": 3}, "metric=3: a name such as"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        tiny_regressor(**settings).fit(STORE, SIZES)


FOLDS = KFold(2, shuffle=True, random_state=0)


def test_it_goes_where_scikit_learns_regressors_go():
    assert is_regressor(tiny_regressor())
    assert np.isfinite(cross_val_score(tiny_regressor(), STORE, SIZES, cv=FOLDS)).all()
    assert cross_val_predict(tiny_regressor(), STORE, NUMBERS, cv=FOLDS).shape == (40, 2)
    grid = {"hidden": [2, 4], "loss": ["squared", "huber"]}
    search = GridSearchCV(tiny_regressor(), grid, cv=FOLDS, scoring="neg_mean_absolute_error").fit(STORE, SIZES)
    assert search.best_params_["loss"] in grid["loss"]
    assert len(search.predict(STORE)) == 40
    embedded = make_pipeline(tiny_regressor(pool="sum"), StandardScaler(), SVR()).fit(STORE, SIZES)
    assert embedded.predict(STORE).shape == (40,)


def test_before_it_is_fitted_it_says_so():
    for method in ("predict", "transform", "predict_with_uncertainty", "explain", "scores", "outputs", "score"):
        with pytest.raises(NotFittedError):
            getattr(tiny_regressor(), method)(STORE)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = tiny_regressor().fit(STORE, SIZES)
    before = model.predict(STORE)
    with pytest.raises(ZeroDivisionError):
        model.set_params(callback=lambda _: 1 / 0).fit(STORE, NUMBERS)
    np.testing.assert_array_equal(model.predict(STORE), before)
    assert model.target_names_ == ["target"]


def test_copies_predict_the_same():
    model = tiny_regressor(loss="absolute").fit(STORE, SIZES)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(STORE), model.predict(STORE))
    assert clone(model).get_params() == model.get_params()
    assert repr(GraphRegressor(hidden=8, loss="huber")) == "GraphRegressor(hidden=8, loss='huber')"


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
    getattr(estimator_checks, check)("GraphRegressor", tiny_regressor())
