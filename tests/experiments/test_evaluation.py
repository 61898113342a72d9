"""Whole evaluations: protocols from one store, workers, kills."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sopool.data import make_agreement, make_measurements
from sopool.data.sources.catalogue import load
from sopool.errors import DataError, UserError
from sopool.experiments.evaluation import Evaluator, Request, make_grid
from sopool.experiments.executors.banks import make_banks
from sopool.models.config import Setting
from sopool.training.runs.store import RunStore
from tests.helpers.little_evaluation import REQUEST, results
from tests.helpers.runs import assert_trained_alike
from tests.helpers.training_graphs import little_store


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """A store of runs that were trained in one go."""
    folder = tmp_path_factory.mktemp("expected")
    results(folder, 1)
    return folder


def start(folder, workers=1):
    command = [sys.executable, "-m", "tests.helpers.little_evaluation", str(folder), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)


def count(folder, what):
    return len(list(folder.glob(f"*/{what}.safetensors")))


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_the_same_numbers(tmp_path, expected):
    """kill -9 in the midst of runs, with 4, 12 and 20 of the 28 finished."""
    for finished in (4, 12, 20):
        process = start(tmp_path)
        while count(tmp_path, "curves") < finished or not count(tmp_path, "checkpoint"):
            assert process.poll() is None, "it was over before it could be killed"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    last = start(tmp_path)
    assert len(json.loads(last.communicate(timeout=300)[0])) == 2
    assert_trained_alike(tmp_path, expected)


@pytest.mark.slow
def test_workers_change_no_number_and_go_with_their_parent(tmp_path, expected):
    process = start(tmp_path, workers=2)
    while process.poll() is None and not count(tmp_path, "checkpoint"):
        time.sleep(0.01)
    process.kill()
    process.wait()
    process.stdout.close()
    time.sleep(2)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")}
    time.sleep(2)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")}, "the workers train on"
    start(tmp_path, workers=2).communicate(timeout=300)
    assert_trained_alike(tmp_path, expected)


@pytest.mark.slow
def test_two_at_once_on_one_store_train_everything_once(tmp_path, expected):
    first = start(tmp_path)
    second = start(tmp_path)
    outs = [json.loads(process.communicate(timeout=300)[0]) for process in (first, second)]
    assert outs[0] == outs[1]
    assert_trained_alike(tmp_path, expected)


def test_runs_are_planned_once(tmp_path):
    evaluator = Evaluator(load("MUTAG"), REQUEST, RunStore(tmp_path))
    first = evaluator.first_runs()
    assert len({run.key for run in first}) == len(first) == 2 * 2 * 2 * 2  # pools, looks, settings, folds
    assert evaluator.total_epochs == (16 + 2 * 2 * 3) * 6


def test_two_names_of_one_model_share_its_runs(tmp_path):
    request = Request(["sum", "sum-avg"], ["single-epoch"], epochs=1, folds=2, steps=1)
    evaluator = Evaluator(load("MUTAG"), request, RunStore(tmp_path))
    assert len(evaluator.first_runs()) == 2
    one, other = evaluator.evaluate()
    assert one.outcomes == other.outcomes
    assert (one.pool, other.pool) == ("sum", "sum-avg")


def test_progress_adds_up_to_the_total(tmp_path):
    for _ in range(2):  # trained, then found
        seen = []
        evaluator = Evaluator(load("MUTAG"), REQUEST, RunStore(tmp_path))
        evaluator.evaluate(workers=1, report=seen.append)
        assert sum(one.models * one.epochs for one in seen) == evaluator.total_epochs
        assert sum(one.finished for one in seen) == evaluator.total_epochs // REQUEST.epochs


def test_stopped_and_resumed(tmp_path, expected):
    seen = []
    assert (
        Evaluator(load("MUTAG"), REQUEST, RunStore(tmp_path)).evaluate(
            workers=1, report=seen.append, stop=lambda: len(seen) > 4
        )
        is None
    )
    assert len(results(tmp_path, 1)) == 2
    assert_trained_alike(tmp_path, expected)


def test_banks_hold_runs_of_one_shape():
    store = load("MUTAG")
    evaluator = Evaluator(store, REQUEST, RunStore("unused"))
    configs = evaluator.first_runs()
    banks = make_banks(configs, "cpu", 2, [90] * len(configs))
    assert sorted(run.key for bank in banks for run in bank) == sorted(run.key for run in configs)
    for bank in banks:
        assert len({(run.model.hidden, run.model.pool, run.looks) for run in bank}) == 1
    huge = make_banks(configs, "cuda", 1, [90] * len(configs))
    assert len(huge) == 2 * 2 * 2  # pools, looks, widths


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocols": ["fare"]}, "Did you mean 'fair'"),
        ({"pools": ["sopool-bimp"]}, "Did you mean 'sopool-bimap'"),
        ({"gnn": "gin"}, "there is no GNN 'gin'"),
        ({"settings": [Setting(lr=0)]}, "learning rate must be positive, but 0"),
        ({"settings": [Setting(dropout=1.0)]}, "dropout rate must be .* but 1.0"),
        ({"settings": [Setting(hidden=0)]}, "hidden must be at least 1, but 0"),
        ({"epochs": 0}, "epochs must be at least 1, but 0"),
        ({"folds": 80}, "folds"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, changes, message):
    request = Request(**({"pools": ["sum"]} | changes))
    with pytest.raises(UserError, match=message):
        Evaluator(load("MUTAG"), request, RunStore(tmp_path)).evaluate()


def test_graphs_without_labels_are_refused(tmp_path):
    from dataclasses import replace

    store = replace(little_store(), labels=None, classes=())
    with pytest.raises(DataError, match="neither labels nor targets"):
        Evaluator(store, Request(["sum"]), RunStore(tmp_path))


def test_one_name_is_a_list_of_one(tmp_path):
    request = Request("sum", "single-epoch")
    assert (request.pools, request.protocols) == (("sum",), ("single-epoch",))
    assert Evaluator(little_store(), request, RunStore(tmp_path)).first_runs()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"store": "MUTAG"}, r"sopool\.data\.load\(\.\.\.\) and pack\(\.\.\.\) return, not a str: 'MUTAG'"),
        ({"store": [1, 2]}, r"not a list: \[1, 2\]"),
        ({"runs": "runs"}, r"RunStore\(folder\), not a str: 'runs'"),
    ],
)
def test_other_things_than_graphs_and_a_store_are_refused(tmp_path, changes, says):
    given = {"store": little_store(), "request": Request(["sum"]), "runs": RunStore(tmp_path)} | changes
    with pytest.raises(UserError, match=says):
        Evaluator(**given)


def test_a_grid_is_all_combinations_once():
    assert make_grid([16, 32, 16], [32], [0.01], [0.0, 0.5]) == [
        Setting(16, 32, 0.01, 0.0),
        Setting(16, 32, 0.01, 0.5),
        Setting(32, 32, 0.01, 0.0),
        Setting(32, 32, 0.01, 0.5),
    ]


@pytest.mark.parametrize(("make", "dropout"), [(make_agreement, 0.5), (make_measurements, 0.0)])
def test_a_regression_has_no_dropout_unless_it_is_asked_for(tmp_path, make, dropout):
    def of(*settings):
        return Evaluator(make(40), Request(["sum"], settings=settings, folds=2), RunStore(tmp_path)).request.settings

    assert [setting.dropout for setting in of()] == [dropout]
    assert [setting.dropout for setting in of(Setting(dropout=0.25))] == [0.25]
