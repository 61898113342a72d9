"""Runs of every objective with a store: curves, checkpoints, failures, and what the protocols make of them."""

from dataclasses import replace

import numpy as np
import pytest

from sopool.errors import DataError
from sopool.models.config import Setting
from sopool.objectives import METRICS, Regression
from sopool.training.protocols.protocols import choose_settings, fair, per_fold_max, single_epoch
from sopool.training.runs.record import Run
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Trainer
from tests.helpers.runs import config
from tests.helpers.training_graphs import GOALS, goal_store, run_config, tables_of

MASKED = [goal for goal in GOALS if "classes" not in goal]
TRUTH = np.array([[1.0], [2.0], [4.0], [8.0]])
ONE = Regression(("target",))


def folds(goal, **changes):
    return [run_config(fold=fold, epochs=3, steps=2, **GOALS[goal] | changes) for fold in range(3)]


def trained(tables, folder, configs, **given):
    store = RunStore(folder)
    Trainer(tables, store, **given).train(configs)
    return [store.load(one) for one in configs]


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("looks", ["test", "chosen"])
def test_an_interrupted_run_of_any_objective_ends_with_the_same_numbers(goal, looks, tmp_path):
    tables = tables_of(goal_store(goal), unknown=True, **GOALS[goal])
    configs = folds(goal, looks=looks)
    whole = trained(tables, tmp_path / "whole", configs)
    seen = []
    trained(tables, tmp_path / "broken", configs, report=seen.append, stop=lambda: len(seen) >= 2)
    for run, again in zip(whole, trained(tables, tmp_path / "broken", configs), strict=True):
        assert run.chosen_epoch == again.chosen_epoch
        for ours, theirs in ((run.curves, again.curves), (run.predictions, again.predictions)):
            for name in ours.keys() - {"seconds"}:
                assert np.isfinite(ours[name]).all()
                np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("goal", MASKED)
def test_curves_are_the_scores_of_the_stored_outputs(goal, tmp_path):
    """And the best epoch by them, however good is told, is the one that is kept."""
    tables = tables_of(goal_store(goal), unknown=True, **GOALS[goal])
    objective, truth = tables.goal
    metric = METRICS[objective.metric]
    for run in trained(tables, tmp_path, folds(goal)):
        outputs, true = run.predictions["test_logits"], truth.numpy()[run.predictions["test_graphs"]]
        expected = [objective.score(one, true)[metric.name] for one in outputs]
        np.testing.assert_allclose(run.curves[f"test_{metric.name}"], expected, rtol=1e-5)
    for run in trained(tables, tmp_path, folds(goal, looks="chosen")):
        curve = run.curves[f"validation_{metric.name}"]
        ranks = list(zip(-metric.sign * curve, run.curves["validation_loss"], strict=True))
        assert run.chosen_epoch == min(range(3), key=ranks.__getitem__)


@pytest.mark.parametrize("goal", MASKED)
def test_no_choice_depends_on_the_true_values_of_test_graphs(goal, tmp_path):
    store = goal_store(goal)
    found = []
    for changed in (False, True):
        targets = store.targets.clone()
        if changed:
            tested = found[0].predictions["test_graphs"]
            targets[tested] = 1 - targets[tested] if "labels" in goal else -100 * targets[tested]
        tables = tables_of(replace(store, targets=targets), unknown=True, **GOALS[goal])
        found += trained(tables, tmp_path / str(changed), folds(goal, looks="chosen")[:1])
    one, other = found
    assert one.chosen_epoch == other.chosen_epoch
    for name in one.curves.keys() - {"seconds"}:
        np.testing.assert_array_equal(one.curves[name], other.curves[name])
    np.testing.assert_array_equal(one.predictions["test_logits"], other.predictions["test_logits"])


@pytest.mark.parametrize("goal", MASKED)
def test_a_run_whose_loss_is_not_finite_is_stopped_alone(goal, tmp_path):
    tables = tables_of(goal_store(goal), **GOALS[goal])
    configs = folds(goal)
    configs[1] = replace(configs[1], lr=1e200)
    first, lost, last = trained(tables, tmp_path, configs)
    assert lost.stopped is not None
    assert first.stopped is last.stopped is None
    assert np.isnan(lost.predictions["test_logits"][lost.stopped :]).all()


def test_a_mean_that_is_large_and_a_spread_that_is_small_are_learned_in_single_precision(tmp_path):
    """Outputs are stored in double precision."""
    store = goal_store("one number")
    far = replace(store, targets=1e8 + (store.targets - 100) / 1e3)
    shape = GOALS["one number"] | {"precision": "float32"}
    (run,) = trained(tables_of(far, **shape), tmp_path, [run_config(epochs=3, **shape)])
    outputs = run.predictions["test_logits"]
    assert outputs.dtype == np.float64
    assert np.abs(outputs - 1e8).max() < 1
    assert len(np.unique(outputs[0])) > 2


def guess(fold, errors, setting=None, stopped=None, **changes):
    """A run that looks at the test fold of two graphs, and is wrong by so much in each epoch."""
    graphs = np.array([0, 1]) + 2 * fold
    outputs = TRUTH[graphs] + np.asarray(errors, float)[:, None, None]
    shared = {"task": "regression", "metric": "rmse", "loss": "squared", "folds": 2, "epochs": len(errors)}
    curves = {"test_rmse": np.abs(errors).astype(float), "test_loss": np.ones(len(errors))}
    if stopped is not None:
        curves = {name: np.full(len(errors), np.nan) for name in curves}
    made = config(fold, setting, **shared | changes)
    return Run(made, curves, {"test_graphs": graphs, "test_logits": outputs}, stopped=stopped)


def test_the_lowest_error_is_the_best():
    runs = [guess(0, [3, 1, 2]), guess(1, [4, 4, 1])]
    assert per_fold_max(runs, TRUTH, ONE).folds == (1.0, 1.0)
    assert per_fold_max(runs, TRUTH, ONE).epochs == (2, 3)
    outcome = single_epoch(runs, TRUTH, ONE)
    assert (outcome.epochs, outcome.folds, outcome.signed, outcome.metric) == (3, (2.0, 1.0), (-2.0, -1.0), "rmse")
    worse = [guess(fold, [9, 9, 9], Setting(hidden=64)) for fold in range(2)]
    for protocol in (per_fold_max, single_epoch):
        assert protocol([*worse, *runs], TRUTH, ONE).setting == Setting()


def test_a_setting_with_a_run_that_has_no_error_at_all_is_not_the_best():
    runs = [guess(fold, [5, 5]) for fold in range(2)]
    lost = [guess(0, [1, 1], Setting(hidden=64)), guess(1, [1, 1], Setting(hidden=64), stopped=0)]
    for protocol in (per_fold_max, single_epoch):
        assert protocol([*lost, *runs], TRUTH, ONE).setting == Setting()
    with pytest.raises(DataError, match="no result, since its loss was not finite in the first epoch"):
        per_fold_max(lost, TRUTH, ONE)


@pytest.mark.parametrize(("metric", "scores"), [("rmse", (0.5, 2.0)), ("r2", (-0.5, -2.0)), ("mae", (0.5, 2.0))])
def test_settings_are_chosen_by_the_better_score_and_never_one_without(metric, scores):
    runs = []
    shared = {"task": "regression", "metric": metric, "loss": "squared", "looks": "validation", "folds": 2, "epochs": 1}
    for hidden, score in ((8, scores[1]), (16, scores[0]), (32, None)):
        for fold in range(2):
            curves = {f"validation_{metric}": np.array([score or np.nan]), "validation_loss": np.ones(1)}
            made = config(fold, Setting(hidden=hidden), **shared)
            runs.append(Run(made, curves, {}, None if score is None else 0, None if score else 0))
    assert {setting.hidden for setting in choose_settings(runs).values()} == {16}


def final(fold, repeat, outputs, graphs, **changes):
    shared = {"task": "regression", "metric": "rmse", "loss": "squared", "folds": 2, "epochs": 1, "looks": "chosen"}
    made = config(fold, repeat=repeat, **shared | changes)
    return Run(made, {}, {"test_graphs": graphs, "test_logits": outputs}, 0)


def test_several_targets_are_told_apart_in_their_own_units_and_averaged_in_their_spread():
    truth = np.array([[1.0, 100.0], [2.0, 300.0], [3.0, np.nan], [4.0, np.nan]])
    objective = Regression(("a", "b"), units=(2.0, 50.0))
    runs = [
        final(
            fold,
            repeat,
            np.nan_to_num(truth[[2 * fold, 2 * fold + 1]]) + np.array([repeat, 10.0]),
            np.array([0, 1]) + 2 * fold,
        )
        for fold in range(2)
        for repeat in (1, 2)
    ]
    outcome = fair(runs, truth, objective)
    assert outcome.targets["a"]["rmse"] == (1.5, 1.5)
    assert outcome.targets["b"]["mae"] == (10.0, None)
    assert outcome.folds == pytest.approx([(1.5 / 2 + 10 / 50) / 2, 1.5 / 2])
    assert outcome.to_json()["targets"]["b"]["rmse"] == [10.0, None]
    assert not fair(
        [
            replace(run, predictions=run.predictions | {"test_logits": run.predictions["test_logits"][:, :1]})
            for run in runs
        ],
        truth[:, :1],
        ONE,
    ).targets


def test_a_score_that_no_test_graph_allows_is_missing_and_not_the_best():
    truth = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    runs = [final(fold, 1, np.zeros((2, 1)), np.array([0, 1]) + 2 * fold) for fold in range(2)]
    with pytest.raises(DataError, match=r"fold 2.* has no RMSE: it cannot be computed from .* 2 test graphs"):
        fair(runs, truth, ONE)
