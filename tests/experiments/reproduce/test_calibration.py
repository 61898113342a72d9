"""The time is that of steps, whatever had to be compiled before, and a sample of the graphs is enough for it."""

from dataclasses import replace

import numpy as np
import pytest

from sopool.data.sources.catalogue import load
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.reproduce import calibration
from sopool.experiments.reproduce.calibration import Calibration, sample
from sopool.models.config import Setting
from sopool.training.runs.store import RunStore

SETTING = Setting(hidden=4, batch_size=16)


@pytest.fixture(scope="module")
def graphs():
    return load("MUTAG")


def runs_of(graphs, folder, *pools):
    request = Request(pools, ["per-fold-max"], settings=[SETTING], folds=3, steps=10)
    return Evaluator(graphs, request, RunStore(folder)).first_runs()


def test_a_sample_has_the_sizes_of_all(graphs):
    some = sample(graphs, 40)
    assert len(set(some.tolist())) == 40
    sizes = graphs.sizes.numpy()
    for share in (0.1, 0.5, 0.9):
        assert abs(np.quantile(sizes[some], share) - np.quantile(sizes, share)) <= 1
    assert sizes[some].mean() == pytest.approx(sizes.mean(), rel=0.02)
    assert sorted(sample(graphs, 1000).tolist()) == list(range(len(graphs)))


def test_what_happens_only_once_does_not_count():
    now = iter([0.0, 100.0, 100.0, 102.0])
    assert calibration._shortest(lambda: None, lambda: next(now)) == 2.0


def test_each_kind_of_model_is_timed_once_on_few_graphs(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "SAMPLE", 20)
    banks = []

    class Seen(calibration.Bank):
        def __init__(self, tables, configs, *rest):
            banks.append((configs[0].model.pool, configs[0].setting, len(tables)))
            super().__init__(tables, configs, *rest)

    monkeypatch.setattr(calibration, "Bank", Seen)
    timed = Calibration(graphs, SETTING, "cpu")
    wide = SETTING._replace(hidden=8)
    runs = runs_of(graphs, tmp_path, "sum", "sopool-bimap", "sopool-bimap-random", "eigenpool")
    for run in runs + [run.with_setting(wide) for run in runs]:
        assert timed.seconds(run) > 0
    usual = [(pool, SETTING, 20) for pool in ("sum", "sopool-bimap", "eigenpool")]
    assert sorted(banks) == sorted([*usual, ("sum", wide, 20)])


def test_time_is_steps_and_scores(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(Calibration, "_time", lambda self, config: (2.0 * config.model.hidden, 0.5))
    (run, *_) = runs_of(graphs, tmp_path, "sum")
    timed = Calibration(graphs, SETTING, "cpu")
    scores = 0.5 * len(graphs)
    assert timed.seconds(run) == 10 * 8 + scores
    assert timed.seconds(replace(run, steps=20)) == 20 * 8 + scores
    assert timed.seconds(run.with_setting(SETTING._replace(hidden=8))) == pytest.approx(10 * 16 + scores)
