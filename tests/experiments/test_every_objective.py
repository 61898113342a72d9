"""Evaluations, comparisons and controls of labels and numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from sopool.data import load, make_agreement
from sopool.errors import DataError, SettingError
from sopool.experiments import Evaluator, Request, corrected_paired_test
from sopool.experiments.results import Result, compare
from sopool.experiments.summary import summarise
from sopool.experiments.systems import CONTROLS, ControlResult, run_control
from sopool.experiments.systems.learners import LEARNERS
from sopool.experiments.systems.run import read_controls
from sopool.experiments.systems.views import Represented, outputs_of, view_of
from sopool.models.config import Setting
from sopool.objectives import METRICS, MultiLabel, Regression, objective_for
from sopool.training.protocols.outcome import Outcome
from sopool.training.run_splits import Splitter
from sopool.training.runs.requests import StoredRequest
from sopool.training.runs.store import RunStore
from tests.helpers.goals import QUICK, STORES, evaluated, labels, number, numbers


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The evaluation of each kind of objective, and its store of runs."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: (make(), evaluated(make(), folder / name).evaluate(), folder / name) for name, make in STORES.items()}


@pytest.mark.parametrize("kind", STORES)
def test_an_evaluation_says_what_was_predicted_and_scores_every_target(results, kind):
    store, found, _ = results[kind]
    for one in found:
        plain = json.loads(json.dumps(one.to_json()))
        assert plain["task"] == one.task == objective_for(store).task
        for outcome in one.outcomes.values():
            assert outcome.metric == ("roc_auc" if kind == "multi-label" else "rmse")
            assert len(outcome.folds) == 3
            assert tuple(outcome.targets) == (store.target_names if kind != "one" else ())
            assert plain["protocols"][outcome.protocol].get("targets", {}).keys() == outcome.targets.keys()
            for scores in outcome.targets.values():
                assert set(scores) == {name for name, metric in METRICS.items() if one.task in metric.tasks}


@pytest.mark.parametrize("kind", STORES)
def test_the_score_is_that_of_the_stored_predictions(results, kind):
    store, found, _ = results[kind]
    objective = objective_for(store)
    for one in found:
        final = [run for run in one.runs["chosen"] if run.config.fold == 1]
        each = [
            objective.score(run.predictions["test_logits"], store.targets.numpy()[run.predictions["test_graphs"]])
            for run in final
        ]
        expected = np.mean([scores[objective.metric] for scores in each])
        assert one.outcomes["fair"].folds[1] == pytest.approx(expected)


@pytest.mark.parametrize("kind", STORES)
def test_a_gain_is_an_improvement(results, kind):
    _, found, _ = results[kind]
    for one in found.compare("sum"):
        ours, theirs = one.result.outcome, one.reference.outcome
        better = ours.mean < theirs.mean if ours.metric == "rmse" else ours.mean > theirs.mean
        assert (one.comparison.difference > 0) == better
        assert abs(one.comparison.difference) == pytest.approx(abs(ours.mean - theirs.mean))
        assert one.to_json()["metric"] == ours.metric


def test_a_lower_error_is_a_positive_gain():
    def result(pool, folds, metric="rmse"):
        return Result("toy", "gin-0", pool, Outcome("fair", "", folds, (), (), metric=metric))

    low, high = (1.0, 2.0, 1.5), (2.0, 2.5, 3.0)
    (found,) = compare([result("sopool", low), result("sum", high)], "sum")
    assert found.comparison == corrected_paired_test(high, low, 3)
    assert found.comparison.difference == 1.0
    with pytest.raises(DataError, match=r"evaluated by rmse and mae on toy, gin-0, fair; .* the same metric"):
        compare([result("sopool", low), result("sum", high, "mae")], "sum")


@pytest.mark.parametrize("kind", STORES)
def test_a_store_of_runs_is_read_as_it_was_evaluated(results, kind):
    store, found, folder = results[kind]
    summary = summarise(RunStore(folder))
    assert not summary.notes
    for entry in summary.entries:
        (one,) = (one for one in found if one.pool == entry.pool)
        for name, outcome in one.outcomes.items():
            assert entry.outcomes[name].folds == pytest.approx(outcome.folds)
            assert entry.outcomes[name].targets == outcome.targets
        assert entry.targets == store.target_names
        assert not entry.confusion
        assert bool(entry.predicted) == (kind != "multi-label")
    gains = {gain.protocol: gain.comparison for gain in summary.gains}
    for one in found.compare("sum"):
        assert gains[one.result.outcome.protocol] == one.comparison


def test_the_predicted_numbers_of_a_report_are_those_of_all_folds(results):
    store, found, folder = results["regression"]
    (entry,) = (one for one in summarise(RunStore(folder)).entries if one.pool == "sum")
    true, predicted = entry.predicted["fair"]
    np.testing.assert_array_equal(true, store.targets.numpy())
    (one,) = (one for one in found if one.pool == "sum")
    runs = [run for run in one.runs["chosen"] if 7 in run.predictions["test_graphs"]]
    mine = [run.predictions["test_logits"][run.predictions["test_graphs"] == 7][0] for run in runs]
    assert len(mine) == 3
    np.testing.assert_allclose(predicted[7], np.mean(mine, axis=0))


@pytest.mark.parametrize(
    ("store", "given", "goal"),
    [
        (labels, {}, ("multi-label", "roc_auc", None)),
        (labels, {"task": "regression", "loss": "huber"}, ("regression", "mae", "huber")),
        (numbers, {"metric": "r2"}, ("regression", "r2", "squared")),
        (numbers, {"loss": "absolute"}, ("regression", "mae", "absolute")),
        (make_agreement, {"metric": "roc_auc"}, ("classification", "roc_auc", None)),
    ],
)
def test_task_metric_and_loss_can_be_given(store, given, goal, tmp_path):
    request = Request(["sum"], **given)
    evaluator = Evaluator(store(60), request, RunStore(tmp_path))
    for config in evaluator.final_runs():
        assert (config.task, config.metric, config.loss) == goal
    stored = evaluator.stored_request()
    assert StoredRequest.from_json(json.loads(json.dumps(stored.to_json()))) == stored
    assert {name: getattr(stored, name) for name in given} == given


def test_a_request_that_says_nothing_of_the_task_is_stored_as_before(tmp_path):
    """So that equal requests of earlier versions share a file, and runs have the same keys."""
    evaluator = Evaluator(make_agreement(60), Request(["sum"], metric=None), RunStore(tmp_path))
    assert not {"task", "metric", "loss"} & evaluator.stored_request().to_json().keys()
    given = Evaluator(
        make_agreement(60), Request(["sum"], task="classification", metric="accuracy"), RunStore(tmp_path)
    )
    assert [run.key for run in given.final_runs()] == [run.key for run in evaluator.final_runs()]


@pytest.mark.parametrize(
    ("store", "given", "message"),
    [
        (numbers, {"task": "multi-label"}, "targets other than 0 and 1"),
        (numbers, {"task": "classification"}, "has targets and no classes"),
        (numbers, {"metric": "rocauc"}, "no metric 'rocauc'. Did you mean 'roc_auc'"),
        (numbers, {"metric": "roc_auc"}, "no metric 'roc_auc'"),
        (labels, {"loss": "huber"}, "only a regression has a choice of losses"),
        (make_agreement, {"task": "regression"}, "'agree', which is not a number"),
    ],
)
def test_impossible_requests(store, given, message, tmp_path):
    with pytest.raises((SettingError, DataError), match=message):
        Evaluator(store(60), Request(["sum"], **given), RunStore(tmp_path))


def test_targets_that_nothing_can_be_learned_of(tmp_path):
    store = numbers()
    for value, message in ((torch.nan, "'spread' has no value"), (2.5, "nothing to learn of the target 'spread'")):
        targets = store.targets.clone()
        targets[:, 1] = value
        for use in (
            lambda one: Evaluator(one, Request(["sum"]), RunStore(tmp_path)),
            lambda one: run_control("size", one),
        ):
            with pytest.raises(DataError, match=message):
                use(replace(store, targets=targets))


def test_evaluations_by_other_metrics_or_losses_are_told_apart(tmp_path):
    for given in ({}, {"metric": "mae"}, {"loss": "huber"}):
        evaluated(number(), tmp_path, ["sum"], ["per-fold-max"], **given | {"epochs": 1}).evaluate()
    entries = summarise(RunStore(tmp_path)).entries
    assert len({entry.title for entry in entries}) == 3
    assert sorted(entry.outcomes["per-fold-max"].metric for entry in entries) == ["mae", "mae", "rmse"]


def test_a_run_that_is_stopped_at_once_makes_a_result_missing_not_perfect(tmp_path):
    evaluator = evaluated(number(), tmp_path, ["sum"], ["fair"], settings=[Setting(hidden=8, lr=1e30)])
    (one,) = evaluator.evaluate()
    assert not one.outcomes
    assert "not finite in the first epoch" in one.missing["fair"]


def test_the_mean_is_the_control_that_sees_nothing():
    store = numbers()
    truth = store.targets.numpy()
    objective = objective_for(store)
    outcome = run_control("majority", store, folds=3).outcome
    for (train, test), found in zip(Splitter.of(objective, truth).folds(3), outcome.folds, strict=True):
        guess = np.tile(np.nanmean(truth[train], axis=0), (len(test), 1))
        assert found == pytest.approx(objective.score(guess, truth[test])["rmse"])
    shares = run_control("majority", labels(), folds=3).outcome
    assert set(shares.folds) == {0.5}


@pytest.mark.parametrize("kind", STORES)
def test_a_control_finds_the_number_of_edges(kind):
    """The second target, the spread of an attribute, it cannot see."""
    store = STORES[kind]()
    found = run_control("size", store, folds=3)
    nothing = run_control("majority", store, folds=3)
    assert found.task == objective_for(store).task
    if kind == "one":
        assert found.outcome.mean < 0.1 * nothing.outcome.mean
        return
    metric = found.outcome.metric
    own = {name: np.mean(scores[metric]) for name, scores in found.outcome.targets.items()}
    seen, hidden = own.values()
    assert seen > max(0.95, hidden + 0.2) if kind == "multi-label" else seen < 0.5


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize("kind", STORES)
def test_results_of_every_control_are_kept(name, kind, tmp_path):
    store = STORES[kind](30)
    first = run_control(name, store, folds=3, runs_folder=tmp_path)
    assert ControlResult.from_json(json.loads(json.dumps(first.to_json()))) == first
    assert run_control(name, store, folds=3, runs_folder=tmp_path) == first
    assert read_controls(tmp_path) == [first]
    assert CONTROLS[name].seen_for(first.task)


def test_another_metric_is_another_result(tmp_path):
    store = number()
    both = [run_control("size", store, 3, runs_folder=tmp_path, metric=metric) for metric in ("rmse", "r2")]
    assert [one.outcome.metric for one in both] == ["rmse", "r2"]
    assert both[0].outcome.scores["r2"] == pytest.approx(both[1].outcome.folds, abs=0.01)
    assert len(read_controls(tmp_path)) == 2


def test_the_task_of_a_control_can_be_given():
    found = run_control("majority", load("MUTAG"), folds=3, task="regression")
    assert (found.task, found.outcome.metric) == ("regression", "rmse")
    assert 0.9 < found.outcome.mean < 1.0  # the standard deviation of classes -1 and 1


@pytest.mark.parametrize("objective", [Regression(("a", "b", "c")), MultiLabel(("a", "b", "c"))])
@pytest.mark.parametrize("learner", [name for name in LEARNERS if name != "forest"])
def test_a_target_is_learned_from_the_graphs_that_have_it(objective, learner):
    """Each as if it were the only one, and graphs without it were not there."""
    random = np.random.default_rng(1)
    view = view_of(Represented(random.normal(size=(40, 2))), learner)
    truth = (random.random((30, 3)) < 0.5).astype(float)
    truth[random.random((30, 3)) < 0.3] = np.nan
    truth[:, 2] = truth[:, 1]  # two with the same missing values are learned together
    train = np.arange(30)
    wanted = np.arange(30, 40)
    found = outputs_of(view, objective, train, truth, wanted, view.choices)
    assert len(found) == len(view.choices)
    for target in range(3):
        known = ~np.isnan(truth[:, target])
        alone = type(objective)(("a",))
        each = outputs_of(view, alone, train[known], truth[known, target : target + 1], wanted, view.choices)
        for together, own in zip(found, each, strict=True):
            # Support vector machines stop when they are near enough.
            tolerance = {"rtol": 1e-2, "atol": 1e-3} if "svm" in learner else {"rtol": 1e-6}
            np.testing.assert_allclose(together[:, target], own[:, 0], **tolerance)


def test_a_label_that_all_training_graphs_have_is_likely():
    truth = np.array([[1.0, 0.0, np.nan]] * 8)
    (found,) = outputs_of(
        view_of(Represented(np.zeros((10, 0))), "prior"),
        MultiLabel(("a", "b", "c")),
        np.arange(8),
        truth,
        np.arange(8, 10),
        [{}],
    )
    np.testing.assert_allclose(found, [[np.log(9), -np.log(9), 0.0]] * 2)


def test_networks_and_controls_have_the_same_folds(tmp_path):
    store = numbers()
    request = Request(["sum"], settings=[Setting(hidden=4), Setting(hidden=8)], **QUICK)
    evaluator = Evaluator(store, request, RunStore(tmp_path))
    found = run_control("size", store, folds=3).outcome
    tested = [evaluator._folds[fold][1] for fold in range(3)]
    known = [(~np.isnan(store.targets.numpy()[test])).any(0) for test in tested]
    assert len(found.folds) == len(known) == 3
    splits = Splitter.of(objective_for(store), store.targets.numpy())
    for config in evaluator.first_runs():
        np.testing.assert_array_equal(splits(config).test, tested[config.fold])
