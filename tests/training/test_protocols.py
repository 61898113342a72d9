import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.errors import DataError
from sopool.models.config import ModelConfig, Setting
from sopool.objectives import METRICS
from sopool.training.protocols.protocols import PROTOCOLS, choose_settings, fair, per_fold_max, single_epoch
from tests.helpers.runs import config, final_run, looking_run, validated_run

LABELS = np.arange(30) % 2
SMALL = Setting(hidden=16)
LARGE = Setting(hidden=64)
SHARES = [np.arange(0, 10), np.arange(10, 20), np.arange(20, 30)]


def looking(table, setting=SMALL, **changes):
    """Runs of one setting: for each fold how many of its 10 graphs are right in each epoch."""
    epochs = max(len(right) for right in table)
    return [
        looking_run(config(fold, setting, folds=len(table), epochs=epochs, **changes), right, LABELS, SHARES[fold])
        for fold, right in enumerate(table)
    ]


def finals(table, **changes):
    """Final runs: for each fold, for each repeat, (right graphs, chosen epoch)."""
    return [
        final_run(config(fold, repeat=i, looks="chosen", folds=len(table), **changes), right, LABELS, SHARES[fold], at)
        for fold, repeats in enumerate(table)
        for i, (right, at) in enumerate(repeats, start=1)
    ]


def validated(setting, *folds):
    """Runs that choose a setting: for each fold (accuracy, loss), one epoch."""
    return [
        validated_run(config(i, setting, looks="validation", folds=len(folds), epochs=1), [accuracy], [loss], 0)
        for i, (accuracy, loss) in enumerate(folds)
    ]


tables = st.integers(1, 6).flatmap(
    lambda epochs: st.lists(st.lists(st.integers(0, 10), min_size=epochs, max_size=epochs), min_size=2, max_size=3)
)


@given(tables)
def test_on_one_setting(table):
    rights = np.array(table) / 10
    best = per_fold_max(looking(table), LABELS)
    single = single_epoch(looking(table), LABELS)
    assert best.folds == tuple(rights.max(1))
    assert best.epochs == tuple(rights.argmax(1) + 1)
    epoch = max(range(rights.shape[1]), key=lambda i: np.sum(table, axis=0)[i])
    assert single.epochs == epoch + 1
    assert single.folds == tuple(rights[:, epoch])
    assert best.mean >= single.mean
    for outcome in (best, single):
        assert outcome.mean == pytest.approx(np.mean(outcome.folds))
        assert outcome.std == pytest.approx(np.std(outcome.folds))
        assert outcome.setting == SMALL
        assert outcome.stopped == ()


@given(tables, st.permutations(range(3)))
def test_the_order_of_folds_does_not_matter(table, order):
    runs = looking(table)
    shuffled = [runs[i] for i in order if i < len(runs)]
    assert per_fold_max(shuffled, LABELS) == per_fold_max(runs, LABELS)
    assert single_epoch(shuffled, LABELS) == single_epoch(runs, LABELS)


def test_each_protocol_takes_its_own_best_setting():
    runs = looking([[9, 1], [1, 9]], SMALL) + looking([[8, 1], [8, 1]], LARGE)
    best = per_fold_max(runs, LABELS)
    single = single_epoch(runs, LABELS)
    assert (best.setting, best.folds, best.epochs) == (SMALL, (0.9, 0.9), (1, 2))
    assert (single.setting, single.folds, single.epochs) == (LARGE, (0.8, 0.8), 1)
    assert (best.optimistic, single.optimistic) == ("optimistic", "less optimistic")


def test_equal_means_are_equal_whatever_the_order_of_the_sum():
    """0.1 + 0.7 + 0.3 is not 0.3 + 0.7 + 0.1 in binary."""
    runs = looking([[1, 3], [7, 7], [3, 1]], SMALL) + looking([[3, 1], [7, 7], [1, 3]], LARGE)
    assert single_epoch(runs, LABELS).epochs == 1
    assert single_epoch(runs, LABELS).setting == SMALL
    assert per_fold_max(runs, LABELS).setting == SMALL


def test_balanced_accuracy_and_area_are_those_of_the_epoch():
    outcome = per_fold_max(looking([[2, 10], [10, 2]]), LABELS)
    assert outcome.scores["balanced_accuracy"] == (1.0, 1.0)
    assert outcome.scores["roc_auc"] == (1.0, 1.0)
    one_class = np.zeros(30, int)
    runs = [
        looking_run(config(fold, folds=2, epochs=2), right, one_class, SHARES[fold])
        for fold, right in enumerate([[2, 10], [10, 2]])
    ]
    assert per_fold_max(runs, one_class).scores["roc_auc"] == (None, None)


def test_accuracies_that_are_not_those_of_the_predictions_are_refused():
    """Such as a curve that was raised in a forged file, or the classes of another data set."""
    runs = looking([[2, 9], [9, 2]])
    runs[0].curves["test_accuracy"][1] = 1.0
    for protocol in (per_fold_max, single_epoch):
        with pytest.raises(
            DataError, match=r"fold 1, .* accuracy of 1.0000 in epoch 2, but its predictions have 0.9000"
        ):
            protocol(runs, LABELS)
    with pytest.raises(DataError, match="have changed since it was written"):
        per_fold_max(looking([[2, 9], [9, 2]]), 1 - LABELS)


def test_more_classes_than_were_predicted_are_refused():
    with pytest.raises(DataError, match="predicts 2 classes, numbered from 0, but a graph has class 3"):
        per_fold_max(looking([[2, 9], [9, 2]]), LABELS + 2)


def test_a_stopped_run_counts_up_to_there():
    runs = looking([[5, 9, 6], [6], [7, 7, 8]])
    best = per_fold_max(runs, LABELS)
    single = single_epoch(runs, LABELS)
    assert (best.folds, best.epochs) == ((0.9, 0.6, 0.8), (2, 1, 3))
    assert (single.folds, single.epochs) == ((0.5, 0.6, 0.7), 1)  # fold 1 reached no other
    assert best.stopped == single.stopped == ((1, SMALL, 0, 2),)


def test_a_run_stopped_in_its_first_epoch():
    runs = looking([[5, 9], [], [7, 7]])
    best = per_fold_max(runs, LABELS)
    assert (best.folds, best.epochs, best.scores["roc_auc"][1]) == ((0.9, 0.0, 0.7), (2, 0, 1), None)
    assert best.stopped == ((1, SMALL, 0, 1),)
    with pytest.raises(ValueError, match=r"every fold reached .* fold 2, hidden 16, .* lower learning rate"):
        single_epoch(runs, LABELS)
    other = single_epoch(runs + looking([[1, 1], [1, 1], [1, 1]], LARGE), LABELS)
    assert (other.setting, other.folds) == (LARGE, (0.1, 0.1, 0.1))


@pytest.mark.parametrize("metric", ["log_loss", "mcc"])
def test_no_score_stands_for_a_missing_result_where_0_is_not_the_worst(metric):
    def runs(table, setting):
        of = {"folds": len(table), "epochs": 1, "metric": metric}
        made = [looking_run(config(i, setting, **of), [5] * some, LABELS, SHARES[i]) for i, some in enumerate(table)]
        for run in made:
            logits = run.predictions["test_logits"][0]
            known = METRICS[metric].compute(logits, LABELS[run.predictions["test_graphs"]], None)
            value = np.nan if run.stopped == 0 else known
            run.curves[f"test_{metric}"] = np.array([value])
        return made

    whole = runs([1, 1], SMALL)
    assert per_fold_max(whole + runs([1, 0], LARGE), LABELS).setting == SMALL
    with pytest.raises(ValueError, match="has no result"):
        per_fold_max(runs([1, 0], LARGE), LABELS)


def test_an_epoch_with_infinite_scores_is_not_the_best():
    runs = looking([[5, 9], [5, 5]])
    runs[0].curves["test_loss"][1] = np.inf
    assert per_fold_max(runs, LABELS).folds == (0.5, 0.5)
    assert single_epoch(runs, LABELS).epochs == 1


def test_the_best_validated_setting_of_each_fold():
    runs = validated(SMALL, (0.9, 2.0), (0.5, 1.0), (0.7, 1.0), (0.7, np.nan))
    runs += validated(LARGE, (0.8, 0.1), (0.6, 9.0), (0.7, 0.9), (0.7, 3.0))
    assert choose_settings(runs) == {0: SMALL, 1: LARGE, 2: LARGE, 3: LARGE}
    equal = validated(LARGE, (0.9, 1.0)) + validated(SMALL, (0.9, 1.0))
    assert choose_settings(equal) == {0: LARGE}
    assert choose_settings(equal[::-1]) == {0: SMALL}


def test_a_stopped_setting_is_judged_by_its_chosen_epoch():
    """Stopped after it was good it may be chosen, stopped in its first epoch it loses to anything."""
    of = {"looks": "validation", "folds": 1, "epochs": 2}
    good = validated_run(config(0, SMALL, **of), [0.9, np.nan], [1.0, np.nan], chosen=0, stopped=1)
    never = validated_run(config(0, SMALL, **of), [np.nan, np.nan], [np.nan, np.nan], chosen=None, stopped=0)
    other = validated_run(config(0, LARGE, **of), [0.5, 0.6], [1.0, 1.0], chosen=1)
    wrong = validated_run(config(0, LARGE, **of), [0.0, 0.0], [1.0, 1.0], chosen=0)
    assert choose_settings([good, other]) == {0: SMALL}
    assert choose_settings([never, other]) == choose_settings([never, wrong]) == {0: LARGE}


def test_fair_averages_final_runs_within_folds():
    outcome = fair(finals([[(9, 4), (8, 2), (7, 0)], [(5, 1), (5, 1), (8, 1)]]), LABELS)
    assert outcome.folds == pytest.approx((0.8, 0.6))
    assert outcome.mean == pytest.approx(0.7)
    assert outcome.std == pytest.approx(0.1)
    assert outcome.epochs == ((5, 3, 1), (2, 2, 2))
    assert outcome.setting == (Setting(), Setting())
    assert (outcome.repeats, outcome.optimistic) == (3, "")


def test_fair_counts_a_run_that_never_started_as_wrong():
    runs = finals([[(9, 4), (0, None)], [(5, 1), (7, 1)]])
    outcome = fair(runs, LABELS)
    assert outcome.folds == pytest.approx((0.45, 0.6))
    assert outcome.epochs == ((5, 0), (2, 2))
    assert outcome.scores["roc_auc"][0] is None
    assert outcome.scores["roc_auc"][1] is not None
    assert outcome.stopped == ((0, Setting(), 2, 1),)


def test_to_json_is_plain():
    one = per_fold_max(looking([[5, 9], []]), LABELS).to_json()
    many = fair(finals([[(9, 4)], [(5, 1)]]), LABELS).to_json()
    for saved in (one, many):
        assert json.loads(json.dumps(saved, allow_nan=False)) == saved
        assert {"mean", "std", "folds", "epochs", "setting"} <= saved.keys()
    assert one["setting"] == {"hidden": 16, "batch_size": 32, "lr": 0.01, "dropout": 0.5}
    assert one["stopped"] == [{"fold": 1, "setting": one["setting"], "repeat": 0, "epoch": 1}]
    assert [each["hidden"] for each in many["setting"]] == [32, 32]
    assert many["epochs"] == [[5], [2]]


def test_the_registry():
    assert {name: protocol.looks[-1] for name, protocol in PROTOCOLS.items()} == {
        "per-fold-max": "test",
        "single-epoch": "test",
        "last-epoch": "test",
        "fair": "chosen",
    }
    for name in ("per-fold-max", "single-epoch", "last-epoch"):
        assert PROTOCOLS[name].outcome(looking([[5], [5]]), LABELS).protocol == name
    assert PROTOCOLS["fair"].outcome(finals([[(9, 4)]]), LABELS).protocol == "fair"


def changed(runs, at, **changes):
    return [replace(run, config=replace(run.config, **changes)) if i == at else run for i, run in enumerate(runs)]


FINALS = finals([[(9, 4), (8, 2)], [(5, 1), (5, 1)]])
LOOKING = looking([[5], [5], [5]]) + looking([[6], [6], [6]], LARGE)


@pytest.mark.parametrize(
    ("outcome", "runs", "message"),
    [
        (per_fold_max, [], "no runs were given"),
        (per_fold_max, FINALS, "has looks='chosen'; expected runs with looks='test'"),
        (fair, LOOKING, "has looks='test'; expected runs with looks='chosen'"),
        (single_epoch, LOOKING[:4], "2 of 6 are missing: fold 2, hidden 64, .*; fold 3, hidden 64"),
        (per_fold_max, LOOKING[1:], "1 of 6 are missing: fold 1, hidden 16"),
        (per_fold_max, [*LOOKING, LOOKING[0]], "the run of fold 1, hidden 16, .* was given twice"),
        (per_fold_max, changed(LOOKING, 1, fold=7), "fold 8.* there are only 3 folds"),
        (per_fold_max, changed(LOOKING, 5, data="MUTAG"), "data is 'TOY' in one, 'MUTAG' in another"),
        (
            per_fold_max,
            changed(LOOKING, 5, model=ModelConfig(pool="sum")),
            "model.pool is 'sopool-bimap' in one, 'sum' in another",
        ),
        (fair, FINALS[:3], "1 of 4 are missing: fold 2, repeat 2"),
        (fair, FINALS[:2], "2 of 4 are missing: fold 2, repeat 1; fold 2, repeat 2"),
        (fair, [*FINALS, FINALS[0]], "given twice"),
        (fair, changed(FINALS, 1, lr=1.0), "final runs of fold 1 have different settings"),
    ],
)
def test_refused(outcome, runs, message):
    with pytest.raises(ValueError, match=message):
        outcome(runs, LABELS)


def test_settings_are_not_chosen_from_other_runs():
    runs = validated(SMALL, (0.9, 2.0), (0.5, 1.0))
    with pytest.raises(ValueError, match=r"repeat 0, but the run of fold 2, .* was given"):
        choose_settings(changed(runs, 1, repeat=1))
    with pytest.raises(ValueError, match="1 of 2 are missing: fold 2"):
        choose_settings(runs[:1])
    with pytest.raises(ValueError, match="has looks='test'"):
        choose_settings(LOOKING)


def test_too_few_labels():
    with pytest.raises(ValueError, match=r"15 labels were given, but the run of fold 2, .* tests graph 19"):
        per_fold_max(looking([[5], [5]]), LABELS[:15])


def test_what_follows_from_a_fold_may_differ_between_folds():
    """SortPool's k, and the steps of an epoch that is one pass over the training graphs."""
    runs = looking([[5, 9], [6, 7]])
    sorts = [replace(run.config.model, pool="sortpool", pool_options={"k": 10 + i}) for i, run in enumerate(runs)]
    differ = [
        replace(run, config=replace(run.config, model=model, steps=model.pool_options["k"]))
        for run, model in zip(runs, sorts, strict=True)
    ]
    assert per_fold_max(differ, LABELS).folds == per_fold_max(runs, LABELS).folds
