"""Systems are registered by a decorator, and evaluated beside networks."""

import numpy as np
import pytest
import torch

from sopool.data import load
from sopool.errors import DataError, SettingError
from sopool.experiments import Evaluator, Request
from sopool.experiments.summary import summarise
from sopool.experiments.systems import SYSTEMS, Gram, fixed, learners, run_control, trained
from sopool.experiments.systems.learners import LEARNERS
from sopool.experiments.systems.views import Represented
from sopool.training.runs.store import RunStore
from tests.helpers.goals import STORES

QUICK = {"epochs": 1, "steps": 1, "folds": 3}


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """What a test registers is removed again."""
    monkeypatch.setattr(learners, "TREES", 10)
    before = dict(SYSTEMS)
    yield SYSTEMS
    SYSTEMS.clear()
    SYSTEMS.update(before)


@pytest.fixture(scope="module")
def mutag():
    return load("MUTAG")


def evaluated(store, folder, *pools, protocols=("fair",), **changes):
    return Evaluator(store, Request(pools, protocols, **QUICK | changes), RunStore(folder))


def sizes(store):
    return np.stack([store.node_ptr.diff().numpy(), store.edge_ptr.diff().numpy()], axis=1)


def test_systems_and_networks_are_compared(mutag, tmp_path):
    protocols = ("fair", "single-epoch", "last-epoch", "per-fold-max")
    evaluator = evaluated(mutag, tmp_path, "size", "sum", "gcn+sum", "wl", protocols=protocols)
    found = evaluator.evaluate()
    assert {row.pool: row.network for row in found.results()} == {
        "size": "",
        "sum": "gin-0",
        "gcn+sum": "gcn",
        "wl": "",
    }
    assert {(row.pool, row.outcome.protocol) for row in found.results()} == {
        (pool, name) for pool in ("size", "sum", "gcn+sum", "wl") for name in protocols
    }
    for reference, others in {"sum": ["size", "gcn+sum", "wl"], "wl": ["size", "sum", "gcn+sum"]}.items():
        compared = found.compare(reference)
        assert [one.result.pool for one in compared[:: len(protocols)]] == others
    saved = {one["pool"]: one for one in found.to_json()}
    assert (saved["size"]["gnn"], saved["gcn+sum"]["gnn"]) == (None, "gcn")
    assert saved["wl"]["strengths"] == [0.1, 1.0, 10.0, 100.0]
    assert set(saved["wl"]["protocols"]["single-epoch"]["setting"]) == {"iterations", "normalised"}
    assert sum(len(runs) for one in found for runs in one.runs.values()) == evaluator.total_runs
    entries = {(entry.network, entry.pool): entry for entry in summarise(RunStore(tmp_path)).entries}
    for one in found:
        assert entries[one.network, one.pool.rpartition("+")[2]].outcomes == one.outcomes
    gains = {(gain.entry.pool, gain.reference.pool) for gain in summarise(RunStore(tmp_path)).gains}
    assert gains == {("size", "sum"), ("wl", "sum")}
    against_wl = summarise(RunStore(tmp_path), reference="wl").gains
    assert {gain.entry.title for gain in against_wl} == {"MUTAG, size", "MUTAG, gin-0, sum", "MUTAG, gcn, sum"}


def test_fair_gives_what_controls_give(mutag, tmp_path):
    for name in ("size", "wl"):
        (found,) = evaluated(mutag, tmp_path, name, seed=2).evaluate()
        control = run_control(name, mutag, folds=3, seed=2)
        outcome = found.outcomes["fair"]
        assert outcome.folds == control.outcome.folds
        assert outcome.scores == control.outcome.scores
        strengths = [{"C": SYSTEMS[name].path[epoch - 1]} for (epoch,) in outcome.epochs]
        chosen = [setting.to_json() | strength for setting, strength in zip(outcome.setting, strengths, strict=True)]
        assert chosen == list(control.settings)


def test_the_last_epoch_is_the_last_strength(mutag, tmp_path):
    (found,) = evaluated(mutag, tmp_path, "size", protocols=["last-epoch"]).evaluate()
    outcome = found.outcomes["last-epoch"]
    assert outcome.folds == tuple(run.curves["test_accuracy"][-1] for run in found.runs["test"])
    assert outcome.epochs == (4, 4, 4)
    assert outcome.optimistic == ""  # there was nothing to choose


def test_a_refusal_is_a_reason_instead_of_a_result(mutag, tmp_path):
    @fixed("picky", sees="nothing", refuses=lambda store: "needs more graphs" if len(store) < 1000 else None)
    def picky(store):
        raise AssertionError("it was called")

    evaluator = evaluated(mutag, tmp_path, "picky", "size", protocols=["fair", "per-fold-max"])
    refused, other = evaluator.evaluate()
    assert refused.missing == dict.fromkeys(["fair", "per-fold-max"], "needs more graphs")
    assert refused.outcomes == {}
    assert list(other.outcomes) == ["fair", "per-fold-max"]
    assert evaluator.total_runs == 6
    with pytest.raises(DataError, match="picky cannot be evaluated on MUTAG: needs more graphs"):
        run_control("picky", mutag)


def test_random_systems_have_three_final_runs_with_seeds_of_their_own(mutag, tmp_path):
    seeds = []

    @fixed("noise", sees="random numbers", learner="logistic")
    def noise(store, seed):
        seeds.append(seed)
        return np.random.default_rng(seed).normal(size=(len(store), 2))

    assert SYSTEMS["noise"].chance
    (found,) = evaluated(mutag, tmp_path, "noise").evaluate()
    assert found.outcomes["fair"].repeats == 3
    assert len(set(seeds)) == 3  # the folds of a repeat share one
    again = seeds.copy()
    seeds.clear()
    evaluated(mutag, tmp_path / "again", "noise").evaluate()
    assert sorted(seeds) == sorted(again)
    evaluated(mutag, tmp_path / "other", "noise", seed=1).evaluate()
    assert not set(seeds[3:]) & set(again)


def test_the_source_of_your_own_system_is_part_of_its_runs(mutag, tmp_path):
    fixed("mine", sees="sizes", learner="logistic")(sizes)
    first = evaluated(mutag, tmp_path, "mine").final_runs()
    assert first[0].model.system_version.startswith("1 ")

    @fixed("mine", sees="sizes", learner="logistic")
    def others(store):
        return sizes(store) + 1

    assert evaluated(mutag, tmp_path, "mine").final_runs()[0].key != first[0].key
    assert evaluated(mutag, tmp_path, "size").final_runs()[0].model.system_version == "1"


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_predicts_everything(learner, tmp_path):
    fixed("mine", sees="sizes", learner=learner, strengths=LEARNERS[learner].strengths[:2])(sizes)
    for make in STORES.values():
        (found,) = evaluated(make(), tmp_path, "mine", protocols=["fair", "single-epoch"]).evaluate()
        assert found.missing == {}
        assert found.outcomes["fair"].repeats == (3 if learner == "forest" else 1)


@pytest.mark.parametrize("learner", [name for name in LEARNERS if name != "prior"])
def test_learners_learn(learner, mutag):
    fixed("mine", sees="sizes", learner=learner, strengths=LEARNERS[learner].strengths[:3])(sizes)
    assert run_control("mine", mutag, folds=3).outcome.mean > 0.75
    assert run_control("mine", STORES["one"](150), folds=3, metric="spearman").outcome.mean > 0.7


def test_kernels_are_given_or_made_of_features(mutag):
    features = sizes(mutag).astype(float)
    results = []
    for found in (features, Gram(features @ features.T)):
        fixed("mine", sees="sizes", settings=[{"width": 1.0}, {"width": 0.1}], learner="svm-rbf", normalize="either")(
            lambda store, found=found: found
        )
        results.append(run_control("mine", mutag, folds=3))
    assert results[0].outcome == results[1].outcome
    assert set(results[0].settings[0]) == {"width", "normalised", "C"}


def test_what_cannot_be_registered_or_learned(mutag):
    with pytest.raises(SettingError, match="no learner 'svn'"):
        fixed("mine", sees="", learner="svn")
    with pytest.raises(SettingError, match="expected one with the strength of svm"):
        fixed("mine", sees="", settings=[{"learner": "forest"}])
    with pytest.raises(SettingError, match="expected numbers, texts or booleans"):
        fixed("mine", sees="", settings=[{"size": None}])
    for settings in ([], [{"size": 3}, {"size": 3}]):
        with pytest.raises(SettingError, match="equal or missing"):
            fixed("mine", sees="", settings=settings)
    fixed("mine", sees="")(lambda store: np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"mine returned shape \[3, 2\] for 188 graphs"):
        run_control("mine", mutag, folds=3)
    with pytest.raises(ValueError, match="'logistic' needs features"):
        Represented(Gram(np.eye(3))).inputs(LEARNERS["logistic"], False, np.arange(2), np.arange(2, 3))


@pytest.mark.parametrize("name", ["histgram", "gcn+som", "gnc+sum"])
def test_unknown_names(name, mutag, tmp_path):
    with pytest.raises(SettingError, match="Did you mean"):
        evaluated(mutag, tmp_path, name)


@pytest.mark.parametrize("name", ["diffpool", "sum-avg", "sopool-bimap"])
def test_a_system_cannot_have_the_name_of_a_pooling(name):
    with pytest.raises(SettingError, match=f"{name} is the name of a pooling"):
        fixed(name, sees="nothing")
    with pytest.raises(SettingError, match=f"{name} is the name of a pooling"):
        trained(name, sees="nothing")(torch.nn.Module)
    assert name not in SYSTEMS
