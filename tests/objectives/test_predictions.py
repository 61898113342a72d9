"""Joint predictions as metrics take them, and the best prediction that is the same for all graphs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.objectives import MultiLabel, Regression, SingleLabel

NAMES = ("a", "b", "c")


def example(kind, seed):
    """An objective with some true values, and outputs of three models for them."""
    random = np.random.default_rng(seed)
    if kind is SingleLabel:
        return SingleLabel(NAMES), np.arange(12) % 3, random.normal(size=(3, 12, 3))
    truth = random.normal(3.0, 2.0, size=(12, 3))
    truth = truth if kind is Regression else (truth > 3.0).astype(float)
    truth[random.random(truth.shape) < 0.3] = np.nan
    truth[:2] = [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    return kind(NAMES), truth, random.normal(size=(3, 12, 3))


kinds = pytest.mark.parametrize("kind", [SingleLabel, MultiLabel, Regression])


@kinds
@given(seed=st.integers(0, 1000))
def test_what_is_the_same_for_all_graphs_is_the_best_of_its_kind(kind, seed):
    """No other constant has a smaller loss."""
    objective, truth, _ = example(kind, seed)
    best = objective.constant(truth)
    others = best + np.random.default_rng(seed).normal(scale=0.3, size=(20, 3))
    losses = [objective.loss(np.tile(one, (12, 1)), truth) for one in (best, *others)]
    assert losses[0] <= min(losses[1:]) + 1e-12


@kinds
@given(seed=st.integers(0, 1000))
def test_a_joint_prediction_is_scored_as_it_is_told(kind, seed):
    objective, truth, outputs = example(kind, seed)
    combined = objective.combine(outputs)
    joint = objective.joint(combined)
    assert joint.shape == (12, 3)
    if kind is Regression:
        np.testing.assert_array_equal(joint, outputs.mean(0))
        return
    (accuracy,) = objective.score(joint, truth, ["accuracy"]).values()
    right = combined.predicted == truth
    each = [right.mean()] if kind is SingleLabel else [right[~np.isnan(truth[:, t]), t].mean() for t in range(3)]
    assert accuracy == pytest.approx(np.mean(each))
    # A single model's outputs say the same as its joint prediction, but for a common shift of the scores of classes.
    alone = objective.joint(objective.combine(outputs[:1]))
    centre = alone.mean(1, keepdims=True) - outputs[0].mean(1, keepdims=True) if kind is SingleLabel else 0
    np.testing.assert_allclose(alone - centre, outputs[0], atol=1e-9)


@kinds
def test_scores_are_scaled_and_shifted_to_outputs(kind):
    objective, truth, outputs = example(kind, 0)
    fitted = objective.fit(truth)
    scale, shift = fitted.scaling
    np.testing.assert_allclose(fitted.outputs(outputs), outputs * scale + shift)
    assert (scale != 1).any() == (kind is Regression)


def test_a_label_that_is_never_known_is_even():
    truth = np.array([[1.0, np.nan], [0.0, np.nan]])
    assert MultiLabel(("a", "b")).constant(truth).tolist() == [0.0, 0.0]
