from dataclasses import replace

import numpy as np
import pytest

from sopool.data.formats.packed import content_key
from sopool.data.sources.catalogue import load
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.judge import judge, whole_settings
from sopool.experiments.stored import facts_of, find_experiments, load_runs
from sopool.models.config import ModelConfig, Setting
from sopool.training.protocols.protocols import PROTOCOLS, choose_settings
from sopool.training.runs.store import RunStore
from tests.helpers.run_saver import checkpoint_facts
from tests.helpers.runs import CONFIG
from tests.helpers.stores import configs, facts, fill, made_up


def only(store):
    (experiment,) = find_experiments(store.list())
    return load_runs(experiment, store)


def test_every_protocol_as_if_its_runs_were_given_by_hand(tmp_path):
    store = fill(tmp_path, pools=[("sum", 0.7)])
    labels = facts().labels
    runs = only(store)
    assert list(judge(runs, labels).outcomes) == ["per-fold-max", "single-epoch", "fair"]
    judged = judge(runs, labels, also=["last-epoch"])  # which counts only where it is asked for
    assert list(judged.outcomes) == list(PROTOCOLS)
    assert judged.missing == {}
    for name in ("per-fold-max", "single-epoch", "last-epoch"):
        assert judged.outcomes[name] == PROTOCOLS[name].outcome(runs["test"], labels)
    chosen = choose_settings(runs["validation"])
    final = [run for run in runs["chosen"] if run.config.setting == chosen[run.config.fold]]
    assert judged.outcomes["fair"] == PROTOCOLS["fair"].outcome(final, labels)


def test_experiments_are_told_apart_by_all_but_fold_setting_and_repeat(tmp_path):
    store = fill(tmp_path, ("TOY", "OTHER"), looks=("test", "chosen"), hidden=(8,))
    fill(tmp_path, looks=("test",), hidden=(8, 16), seed=1)
    found = find_experiments(store.list())
    assert len(found) == 2 * 2 + 2
    assert sum(len(some) for one in found for some in one.configs.values()) == 4 * (4 + 12) + 2 * 8


def test_a_setting_without_all_folds_does_not_count(tmp_path):
    store = fill(tmp_path, pools=[("sum", 0.7)], looks=("test",))
    keys = [info.key for info in store.list() if info.config.fold == 2 and info.config.setting.hidden == 16]
    store.remove(keys)
    runs = only(store)
    assert {run.config.setting for run in whole_settings(runs["test"])} == {Setting(hidden=8)}
    assert judge(runs, facts().labels).outcomes["per-fold-max"].setting == Setting(hidden=8)


@pytest.mark.parametrize("looks", ["test", "chosen"])
def test_what_is_missing_is_said(tmp_path, looks):
    store = fill(tmp_path, pools=[("sum", 0.7)], looks=(looks,), hidden=(8,))
    store.remove([next(info.key for info in store.list() if info.config.fold == 2)])
    judged = judge(only(store), facts().labels)
    assert judged.outcomes == {}
    assert all("are missing: fold 3" in why for why in judged.missing.values())
    assert ("fair" in judged.missing) == (looks == "chosen")


def test_final_runs_that_are_not_there_yet(tmp_path):
    store = fill(tmp_path, pools=[("sum", 0.7)], looks=("validation",))
    assert judge(only(store), facts().labels).missing == {"fair": "the final runs are not there yet."}


def test_unfinished_and_unreadable_runs_are_left_out(tmp_path):
    store = fill(tmp_path, pools=[("sum", 0.7)], looks=("test",), hidden=(8,))
    (data,) = {info.config.fingerprint for info in store.list()}
    config = next(configs(facts(), ModelConfig(), ("test",), (64,), 4, 6))
    store.save_checkpoint(config, {"a": np.zeros(1)}, checkpoint_facts(1))
    (store.folder / store.list()[0].key / "config.json").write_text("{}")
    (found,) = find_experiments(store.list())
    assert len(found.configs["test"]) == 3
    assert data == facts().fingerprint


def test_facts_come_from_the_store_or_else_from_the_same_data_set(tmp_path):
    store = fill(tmp_path, looks=("test",), hidden=(8,))
    assert facts_of(store, replace(CONFIG, fingerprint=facts().fingerprint)).classes == ("no", "yes")
    mutag = load("MUTAG")
    config = replace(CONFIG, data="MUTAG", fingerprint=content_key(mutag))
    np.testing.assert_array_equal(facts_of(store, config).labels, mutag.labels)
    assert facts_of(store, replace(config, fingerprint="0" * 16)) is None
    assert facts_of(store, replace(config, data="NOWHERE")) is None


def test_made_up_runs_are_like_real_ones(tmp_path):
    """The other tests of reports stand on them."""
    for config in configs(facts(), ModelConfig(), ("test", "chosen"), (8,), 4, 6):
        run = made_up(config, facts(), 0.7)
        assert run.predictions["test_logits"].ndim == (3 if config.looks == "test" else 2)
        assert all(len(curve) == 6 for curve in run.curves.values())


def asked(folder, **changes):
    """Train a small request and keep it, as ``sopool evaluate`` does."""
    request = {"pools": ["sum", "covpool"], "protocols": ["per-fold-max"], "folds": 2, "epochs": 1, "steps": 1}
    settings = [Setting(hidden=width, batch_size=8) for width in changes.pop("hidden", (2,))]
    evaluator = Evaluator(load("MUTAG"), Request(**request | changes, settings=settings), RunStore(folder))
    return evaluator.evaluate(workers=1)


def widths(folder):
    """What the report finds: pooling, widths it was chosen from where that must be said, and what runs look at."""
    store = RunStore(folder)
    found = find_experiments(store.list(), store.load_requests())
    return {
        (one.shared.model.pool, one.settings and tuple(sorted(setting.hidden for setting in one.settings))): {
            looks: len(some) for looks, some in one.configs.items()
        }
        for one in found
    }


def test_requests_say_what_belongs_together(tmp_path):
    asked(tmp_path, hidden=(2, 3))
    assert widths(tmp_path) == {(pool, None): {"test": 4} for pool in ("sum", "covpool")}
    asked(tmp_path, hidden=(2, 3), pools=["sum"], protocols=["fair", "single-epoch"])
    whole = {"test": 4, "validation": 4, "chosen": 6}
    assert widths(tmp_path) == {("sum", None): whole, ("covpool", None): {"test": 4}}
    # From the runs alone it could not be told that one setting was asked for by itself.
    asked(tmp_path, hidden=(2,), pools=["covpool"])
    assert widths(tmp_path) == {
        ("sum", (2, 3)): whole,
        ("covpool", (2, 3)): {"test": 4},
        ("covpool", (2,)): {"test": 2},
    }


def test_what_requests_say_is_judged_as_when_it_was_asked(tmp_path):
    for evaluation in asked(tmp_path, hidden=(2, 3), protocols=[*PROTOCOLS]):
        store = RunStore(tmp_path)
        experiments = find_experiments(store.list(), store.load_requests())
        (found,) = [one for one in experiments if one.shared.model.pool == evaluation.pool]
        labels = store.load_dataset(evaluation.fingerprint).labels
        assert judge(load_runs(found, store), labels, also=PROTOCOLS).outcomes == evaluation.outcomes


def test_runs_that_no_request_names_are_joined_with_those_of_requests(tmp_path):
    asked(tmp_path)
    for path in (tmp_path / "requests").iterdir():
        path.unlink()
    asked(tmp_path, protocols=["fair"])
    assert widths(tmp_path) == {(pool, None): {"test": 2, "chosen": 6} for pool in ("sum", "covpool")}
    for path in (tmp_path / "requests").iterdir():
        path.write_text("damaged")
    with pytest.warns(UserWarning, match="counts as missing"):
        assert widths(tmp_path) == {(pool, None): {"test": 2, "chosen": 6} for pool in ("sum", "covpool")}


def test_a_request_is_written_before_anything_is_trained(tmp_path):
    seen = []
    evaluator = Evaluator(load("MUTAG"), Request(["sum"], folds=2, epochs=1), RunStore(tmp_path))
    assert evaluator.evaluate(train=lambda *_: bool(seen.extend(evaluator.runs.load_requests()))) is None
    assert seen == [evaluator.stored_request()]
    assert not evaluator.runs.list()
