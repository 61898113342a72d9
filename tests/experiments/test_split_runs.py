"""Evaluations and controls on graphs that carry a split: their runs, how they are stored, and what is reported."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from sopool.data import DataError, make_agreement, with_split
from sopool.data.division import Division, with_columns
from sopool.experiments import Evaluator, Request
from sopool.experiments.summary import summarise
from sopool.experiments.systems import ControlResult, run_control
from sopool.experiments.systems.run import read_controls
from sopool.report.grids.controls import controls_grid
from sopool.report.grids.results import results_grid
from sopool.training.runs.store import RunStore

GRAPHS = make_agreement(60)
GROUPS = np.arange(60) // 3
REQUEST = Request(["sum", "mean"], ["fair", "single-epoch"], epochs=1, steps=1, folds=3)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """An evaluation by groups, and one at random in the same store of runs."""
    runs = RunStore(tmp_path_factory.mktemp("runs"))
    evaluator = Evaluator(GRAPHS, REQUEST, runs, groups=GROUPS)
    return runs, evaluator, evaluator.evaluate(workers=1), Evaluator(GRAPHS, REQUEST, runs).evaluate(workers=1)


def test_no_run_tests_on_a_group_that_it_was_trained_on(evaluated):
    _, evaluator, found, at_random = evaluated
    for run in (run for one in found for some in one.runs.values() for run in some):
        assert run.config.split == evaluator.division.key
        test = run.predictions.get("test_graphs", np.zeros(0, int))
        held = run.predictions.get("validation_graphs", np.zeros(0, int))
        train = np.setdiff1d(np.arange(60), [*test, *held])
        assert not set(GROUPS[train]) & {*GROUPS[test], *GROUPS[held]}
    assert {run.config.split for one in at_random for some in one.runs.values() for run in some} == {"random"}


def test_it_is_continued_and_reported_under_its_split(evaluated):
    runs, _, found, at_random = evaluated
    again = Evaluator(GRAPHS, REQUEST, runs, groups=GROUPS).evaluate(
        workers=1, train=lambda store, runs, configs, *rest: all(runs.load(config) for config in configs)
    )
    assert again.to_json() == found.to_json()
    assert [(one.to_json()["split"], one.to_json()["fold_seed"]) for one in found] == [("groups", 0)] * 2
    assert [row.dataset for row in found.results()] == ["agreement (groups split)"] * 4
    assert "agreement (groups split)" in results_grid(found.results()).title
    assert "split" not in results_grid(at_random.results()).title
    summary = summarise(runs)
    assert summary.datasets == ["agreement", "agreement (groups split)"]
    assert {(gain.entry.data, gain.reference.data) for gain in summary.gains} == {
        (name, name) for name in summary.datasets
    }


def test_another_seed_gives_other_folds_and_keys(tmp_path):
    first, second = (
        Evaluator(GRAPHS, Request(["sum"], folds=3, fold_seed=seed), RunStore(tmp_path)) for seed in (0, 1)
    )
    configs = first.first_runs() or first.final_runs(), second.first_runs() or second.final_runs()
    assert {config.split_seed for config in configs[1]} == {1}
    assert not {config.key for config in configs[0]} & {config.key for config in configs[1]}
    assert any(a[1].tolist() != b[1].tolist() for a, b in zip(first._folds, second._folds, strict=True))


def test_given_folds_decide_their_number(tmp_path):
    request = Request(["sum"], epochs=1, steps=1)
    evaluator = Evaluator(GRAPHS, request, RunStore(tmp_path), splits=GroupKFold(4), groups=GROUPS)
    assert evaluator.request.folds == 4
    (found,) = evaluator.evaluate(workers=1)
    assert len(found.outcomes["fair"].folds) == 4


def test_one_test_set_has_scores_but_no_comparison(tmp_path):
    store = with_columns(GRAPHS, {"column:set": np.arange(60) % 3})
    runs = RunStore(tmp_path)
    found = Evaluator(store, REQUEST, runs).evaluate(workers=1)
    assert all(len(one.outcomes["fair"].folds) == 1 for one in found)
    assert found.compare() == []
    assert all("±" not in cell.text for row in results_grid(found.results()).rows for cell in row)
    for run in (run for one in found for run in one.runs["chosen"]):
        assert run.predictions["test_graphs"].tolist() == list(range(2, 60, 3))
    summary = summarise(runs)
    assert (len(summary.entries), summary.gains) == (2, [])


def test_controls_have_the_same_split(tmp_path):
    store = with_split(GRAPHS, groups=GROUPS)
    grouped = run_control("size", store, folds=3, runs_folder=tmp_path)
    at_random = run_control("size", GRAPHS, folds=3, runs_folder=tmp_path)
    other = run_control("size", store, folds=3, runs_folder=tmp_path, fold_seed=1)
    assert (grouped.split, at_random.split, other.split_seed) == (Division.of(store).key, "random", 1)
    assert ControlResult.from_json(grouped.to_json()) == grouped
    assert "split" not in at_random.to_json()
    assert len(read_controls(tmp_path)) == 3
    assert controls_grid([grouped]).title.endswith("agreement (groups split), 3 folds")
    single = run_control("majority", with_columns(GRAPHS, {"column:set": np.arange(60) % 3}), runs_folder=tmp_path)
    assert len(single.outcome.folds) == 1
    assert single in read_controls(tmp_path)


def test_too_few_groups_are_refused_before_training(tmp_path):
    with pytest.raises(DataError, match="2 groups cannot be divided into 3 folds"):
        Evaluator(GRAPHS, REQUEST, RunStore(tmp_path), groups=np.arange(60) % 2)
    with pytest.raises(DataError, match="2 groups cannot be divided into 10 folds"):
        run_control("majority", with_split(GRAPHS, groups=np.arange(60) % 2))
