import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from sopool.objectives import METRICS, MultiLabel, Regression, SingleLabel


def score(logits, labels, names=None, weights=None):
    classes = np.shape(logits)[1] if np.ndim(logits) == 2 else 2
    return SingleLabel(tuple(range(classes))).score(logits, labels, names, weights)


@st.composite
def scored(draw):
    count = draw(st.integers(2, 4))
    labels = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.normal(size=(len(labels), count)), np.array(labels)


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


@given(scored())
def test_agrees_with_scikit_learn(case):
    logits, labels = case
    classes = logits.shape[1]
    odds = softmax(logits)
    found = score(logits, labels)
    assert found["accuracy"] == pytest.approx((logits.argmax(1) == labels).mean())
    assert found["log_loss"] == pytest.approx(log_loss(labels, odds, labels=range(classes)))
    if len(np.unique(labels)) < classes:
        assert found["roc_auc"] is None
        return
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(labels, logits.argmax(1)))
    expected = roc_auc_score(labels, odds[:, 1] if classes == 2 else odds, multi_class="ovr", average="macro")
    assert found["roc_auc"] == pytest.approx(expected)


@given(scored(), st.floats(-50, 50))
def test_a_shift_of_all_logits_of_a_graph_changes_nothing(case, shift):
    logits, labels = case
    names = ["accuracy", "balanced_accuracy", "roc_auc", "log_loss", "brier", "mcc", "f1"]
    assert score(logits, labels, names) == pytest.approx(score(logits + shift, labels, names), abs=1e-9)


def test_by_hand():
    found = score([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 1.0]], [0, 0, 0, 1])
    assert found["accuracy"] == 0.75
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["roc_auc"] == pytest.approx(2 / 3)
    sure = np.log(1 + np.exp(-2))
    unsure = np.log(1 + np.exp(-1))
    assert found["log_loss"] == pytest.approx((sure + (2 + sure) + sure + unsure) / 4)


def test_one_class_only():
    found = score([[0.0, 1.0], [1.0, 0.0]], [0, 0])
    assert found["roc_auc"] is None
    assert found["balanced_accuracy"] == 0.5  # over the classes that occur, without a warning


def test_sure_networks_are_still_ranked():
    """A softmax in float64 is 1.0 from a difference of 37 on: its area would be 0.5."""
    assert score([[0.0, 50.0], [0.0, 60.0]], [0, 1])["roc_auc"] == 1.0
    assert score(np.float32([[0, 1e6], [0, -1e6]]), [1, 1])["log_loss"] == pytest.approx(5e5)


def test_scores_that_are_not_finite_count_as_wrong():
    found = score([[np.nan, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0, 1])
    assert (found["accuracy"], found["balanced_accuracy"]) == (pytest.approx(2 / 3), 0.75)
    assert found["roc_auc"] is found["log_loss"] is found["brier"] is found["calibration_error"] is None


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (np.zeros((2, 2)), [0], r"logits \[2, 2\] and labels \[1\]"),
        (np.zeros(2), [0, 1], r"logits \[2\]"),
        (np.zeros((0, 2)), [], "at least one graph"),
        (np.zeros((2, 2)), [0, 2], "from 0 to 2 were given for 2 classes"),
        (np.zeros((2, 2)), [-1, 0], "from -1 to 0"),
    ],
)
def test_refused(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        score(logits, labels)


@given(scored(), st.booleans())
def test_further_metrics_agree_with_scikit_learn(case, weighted):
    logits, labels = case
    classes = logits.shape[1]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(labels)) if weighted else None
    shares = softmax(logits)
    predicted = logits.argmax(1)
    found = score(logits, labels, weights=weights)
    own = {"sample_weight": weights}
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(labels, predicted, **own))
    several = len(np.union1d(labels, predicted)) > 1
    assert found["mcc"] == pytest.approx(metrics.matthews_corrcoef(labels, predicted, **own) if several else 0.0)
    assert found["log_loss"] == pytest.approx(log_loss(labels, shares, labels=range(classes), **own))
    if classes == 2:
        assert found["brier"] == pytest.approx(metrics.brier_score_loss(labels, shares[:, 1], pos_label=1, **own))
        expected = metrics.f1_score(labels, predicted, zero_division=0, **own)
    else:
        present = np.unique(labels)
        expected = metrics.f1_score(labels, predicted, labels=present, average="macro", zero_division=0, **own)
    assert found["f1"] == pytest.approx(expected)
    if len(np.unique(labels)) == classes == 2:
        expected = metrics.average_precision_score(labels, shares[:, 1], **own)
        assert found["average_precision"] == pytest.approx(expected)
        assert found["roc_auc"] == pytest.approx(roc_auc_score(labels, shares[:, 1], **own))


def test_the_calibration_error_is_the_gap_between_confidence_and_accuracy_in_each_bin():
    logits = np.log([[0.8, 0.2], [0.8, 0.2], [0.35, 0.65], [0.05, 0.95]])
    found = score(logits, np.array([0, 1, 1, 0]), ["calibration_error"])["calibration_error"]
    assert found == pytest.approx((abs(1.6 - 1) + abs(0.65 - 1) + abs(0.95 - 0)) / 4)


def numbers(seed, graphs=30, targets=3):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(graphs, targets)) * [1.0, 50.0, 1e-3] + [0.0, 1000.0, 0.0]
    outputs = truth + rng.normal(size=truth.shape) * [0.5, 20.0, 1e-3]
    return np.where(rng.random(truth.shape) < 0.3, np.nan, truth), outputs


@given(st.integers(0, 1000), st.booleans())
def test_errors_of_numbers_agree_with_scikit_learn_where_they_are_known(seed, weighted):
    truth, outputs = numbers(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(truth)) if weighted else None
    objective = Regression(("a", "b", "c"), units=(1.0, 50.0, 1e-3))
    found = objective.score_targets(outputs, truth, weights=weights)
    for t in range(3):
        known = ~np.isnan(truth[:, t])
        pair = (truth[known, t], outputs[known, t])
        own = {} if weights is None else {"sample_weight": weights[known]}
        assert found["mae"][t] == pytest.approx(metrics.mean_absolute_error(*pair, **own))
        assert found["rmse"][t] == pytest.approx(metrics.mean_squared_error(*pair, **own) ** 0.5)
        assert found["r2"][t] == pytest.approx(metrics.r2_score(*pair, **own))
    together = objective.score(outputs, truth, weights=weights)
    assert together["r2"] == pytest.approx(np.mean(found["r2"]))
    assert together["mae"] == pytest.approx(np.mean(np.array(found["mae"]) / objective.units))


def test_the_rank_correlation_is_of_ranks():
    objective = Regression(("y",))
    truth = np.arange(5.0)[:, None]
    assert objective.score(np.exp(truth), truth, ["spearman"])["spearman"] == pytest.approx(1.0)
    assert objective.score(np.zeros((5, 1)), truth, ["spearman"])["spearman"] is None


def test_labels_are_scored_where_they_are_known_and_averaged_where_that_is_possible():
    truth = np.array([[0, 1, np.nan], [1, 1, np.nan], [1, np.nan, np.nan]])
    outputs = np.array([[-1.0, 2, 0], [1, -1, 0], [-2, 0, 0]])
    objective = MultiLabel(("a", "b", "c"))
    each = objective.score_targets(outputs, truth, ["accuracy", "roc_auc"])
    assert each == {"accuracy": [pytest.approx(2 / 3), 0.5, None], "roc_auc": [0.5, None, None]}
    found = objective.score(outputs, truth, ["accuracy", "roc_auc"])
    assert found == {"accuracy": pytest.approx((2 / 3 + 0.5) / 2), "roc_auc": 0.5}


def test_every_metric_says_for_which_tasks_it_is():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.tasks in (("classification", "multi-label"), ("regression",))
    errors = {"log_loss", "brier", "calibration_error", "mae", "rmse"}
    assert {name for name, metric in METRICS.items() if metric.lower_is_better} == errors


@pytest.mark.parametrize("kind", [SingleLabel, MultiLabel, Regression])
def test_a_graph_of_weight_0_has_no_influence(kind):
    """Neither has one whose class or target has no graph of another weight."""
    random = np.random.default_rng(0)
    weights = np.array([1.0, 2.0, 0.5, 3.0, 0.0, 0.0, 0.0])
    outputs = random.normal(size=(7, 3))
    if kind is SingleLabel:
        truth = np.array([0, 1, 0, 1, 0, 2, 2])
    else:
        truth = np.array([[0, 1, np.nan]] * 2 + [[1, 0, np.nan]] * 2 + [[1, np.nan, 0], [0, 0, 1], [1, 1, 1]])
    objective = kind(("a", "b", "c"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = objective.score_targets(outputs, truth, weights=weights)
    assert found == objective.score_targets(outputs[:4], truth[:4], weights=weights[:4])
    assert set(objective.score(outputs, truth, weights=np.zeros(7)).values()) == {None}
    assert objective.loss(outputs, truth, np.zeros(7)) == 0
    if kind is not SingleLabel:
        assert {values[2] for values in found.values()} == {None}
