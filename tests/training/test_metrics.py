import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from sopool.training.protocols.metrics import score


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
    assert found["loss"] == pytest.approx(log_loss(labels, odds, labels=range(classes)))
    if len(np.unique(labels)) < classes:
        assert found["roc_auc"] is None
        return
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(labels, logits.argmax(1)))
    expected = roc_auc_score(labels, odds[:, 1] if classes == 2 else odds, multi_class="ovr", average="macro")
    assert found["roc_auc"] == pytest.approx(expected)


@given(scored(), st.floats(-50, 50))
def test_a_shift_of_all_logits_of_a_graph_changes_nothing(case, shift):
    logits, labels = case
    assert score(logits, labels) == pytest.approx(score(logits + shift, labels), abs=1e-9)


def test_by_hand():
    found = score([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 1.0]], [0, 0, 0, 1])
    assert found["accuracy"] == 0.75
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["roc_auc"] == pytest.approx(2 / 3)
    sure = np.log(1 + np.exp(-2))
    unsure = np.log(1 + np.exp(-1))
    assert found["loss"] == pytest.approx((sure + (2 + sure) + sure + unsure) / 4)


def test_one_class_only():
    found = score([[0.0, 1.0], [1.0, 0.0]], [0, 0])
    assert found["roc_auc"] is None
    assert found["balanced_accuracy"] == 0.5  # over the classes that occur, without a warning


def test_sure_networks_are_still_ranked():
    """A softmax in float64 is 1.0 from a difference of 37 on: its area would be 0.5."""
    assert score([[0.0, 50.0], [0.0, 60.0]], [0, 1])["roc_auc"] == 1.0
    assert score(np.float32([[0, 1e6], [0, -1e6]]), [1, 1])["loss"] == pytest.approx(5e5)


def test_scores_that_are_not_finite_count_as_wrong():
    found = score([[np.nan, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0, 1])
    assert found == {"accuracy": pytest.approx(2 / 3), "balanced_accuracy": 0.75, "roc_auc": None, "loss": None}


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
