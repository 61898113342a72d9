"""The server and a worker's link to it, in one process: what is lost, found again and refused."""

from dataclasses import replace

import numpy as np
import pytest

import sopool
from sopool.errors import ResourceError
from sopool.experiments.executors.run_server import BankAttempt, RunServer, SupersededError, WorkerLink
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Trainer, TrainingProgress
from tests.helpers.run_saver import checkpoint_facts
from tests.helpers.training_graphs import little_store, run_config, tables_of


@pytest.fixture(scope="module")
def tables():
    return tables_of(little_store())


def configs(count=3, **changes):
    return [run_config(fold=fold, **changes) for fold in range(count)]


class KilledError(Exception):
    """Stands for the end of a worker."""


def worker(server, attempt, dies_after=None):
    """A link that breaks after so many calls."""
    calls = 0

    def ask(method, *arguments):
        nonlocal calls
        calls += 1
        if dies_after is not None and calls > dies_after:
            raise KilledError
        return getattr(server, method)(*arguments)

    return WorkerLink(ask, attempt)


def train(link, tables, stop=None):
    found = link.begin()
    if found:
        Trainer(tables, link, link.report, stop or link.stop, lambda: -1.0).train(found)
    link.end()


def curves(folder, runs):
    found = [RunStore(folder).load(config) for config in runs]
    return [{name: curve.tolist() for name, curve in run.curves.items() if name != "seconds"} for run in found]


@pytest.fixture
def expected(tmp_path, tables):
    Trainer(tables, RunStore(tmp_path / "expected")).train(configs())
    return curves(tmp_path / "expected", configs())


@pytest.mark.parametrize(
    "dies_after",
    [after if after % 4 == 1 else pytest.param(after, marks=pytest.mark.slow) for after in range(1, 24, 2)],
)
def test_whenever_a_worker_dies_the_next_one_ends_with_the_same_numbers(tmp_path, tables, expected, dies_after):
    server = RunServer(tmp_path / "runs", [configs()], -1.0)
    try:
        train(worker(server, BankAttempt(0, 0), dies_after), tables)
    except KilledError:
        server.died(0)
    train(worker(server, BankAttempt(0, 1)), tables)
    for found, want in zip(curves(tmp_path / "runs", configs()), expected, strict=True):
        assert found.keys() == want.keys()
        for name, curve in want.items():  # in other company a matrix product may round otherwise
            np.testing.assert_allclose(found[name], curve, rtol=1e-7)
    news = server.news()
    assert sum(one.models * one.epochs for one in news) == 3 * configs()[0].epochs
    assert sum(one.finished for one in news) == 3
    assert server.left() == []
    assert {info.kind for info in RunStore(tmp_path / "runs").list()} == {"finished"}


def test_who_was_thought_dead_is_refused(tmp_path, tables):
    server = RunServer(tmp_path, [configs()], 20.0)
    first = worker(server, BankAttempt(0, 0))
    second = worker(server, BankAttempt(0, 1))
    assert len(first.begin()) == len(second.begin()) == 3
    finished = Trainer(tables, RunStore(tmp_path / "other"))
    finished.train(configs())
    run = RunStore(tmp_path / "other").load(configs()[0])
    for call in (
        lambda: first.save(run),
        lambda: first.save_checkpoint(run.config, {}, {}),
        lambda: first.load_checkpoint(run.config),
        first.end,
        first.begin,
    ):
        with pytest.raises(SupersededError):
            call()
    second.save(run)
    with pytest.raises(KeyError):
        second.save(run)  # a run is saved once


def test_runs_of_other_processes_are_left_to_them(tmp_path, tables):
    others = configs()[0]
    free = configs()[1]
    Trainer(tables, RunStore(tmp_path)).train([configs()[2]])
    server = RunServer(tmp_path, [configs()], 20.0)
    with RunStore(tmp_path).claim(others) as mine:
        assert mine
        assert worker(server, BankAttempt(0, 0)).begin() == [free]
    assert server.left() == [others, configs()[2]]
    with RunStore(tmp_path).claim(free) as mine:
        assert not mine
    server.end(BankAttempt(0, 0))
    with RunStore(tmp_path).claim(free) as mine:
        assert mine


def test_told_to_stop_workers_write_checkpoints_and_none_begins(tmp_path, tables):
    server = RunServer(tmp_path, [configs(2), [configs()[2]]], 20.0)
    link = worker(server, BankAttempt(0, 0))
    seen = []

    def stop():
        seen.append(server.stop() if len(seen) == 1 else None)
        return server.pulse(BankAttempt(0, 0), []).stop

    train(link, tables, stop)
    assert seen[1] == [0]
    assert server.stop() == []
    assert worker(server, BankAttempt(1, 0)).begin() == []
    infos = {info.key: info for info in RunStore(tmp_path).list()}
    assert {(infos[config.key].kind, infos[config.key].epoch) for config in configs(2)} == {("interrupted", 2)}


def test_deaths_count_until_something_is_saved(tmp_path):
    config = configs()[0]
    server = RunServer(tmp_path, [[config]], 20.0)
    assert server.died(0) == 1
    link = worker(server, BankAttempt(0, 1))
    link.begin()
    assert server.died(0) == 2
    link.save_checkpoint(config, {"x": np.zeros(2)}, checkpoint_facts(1))
    assert server.died(0) == 1
    server.give_up(0)
    with RunStore(tmp_path).claim(config) as mine:
        assert mine


def test_a_worker_with_another_version_is_refused(tmp_path):
    server = RunServer(tmp_path, [configs()], 20.0)
    with pytest.raises(ResourceError, match=f"sopool 0.0.0, this machine {sopool.__version__}: install the same"):
        server.begin(BankAttempt(0, 0), "0.0.0")


def test_many_workers_say_less_often_how_far_they_are(tmp_path):
    """A hundred at a millisecond each: a second for a tenth of the server's time."""
    server = RunServer(tmp_path, [[replace(configs()[0], seed=seed)] for seed in range(100)], 20.0)
    server.begin(BankAttempt(0, 0), sopool.__version__)
    assert server.pulse(BankAttempt(0, 0), []).pulse == 0.5
    for bank in range(1, 100):
        server.begin(BankAttempt(bank, 0), sopool.__version__)
    assert server.pulse(BankAttempt(0, 0), []).pulse == pytest.approx(100 * 0.001 / 0.1)


def test_many_runs_write_checkpoints_less_often(tmp_path, monkeypatch):
    """Ten runs at a second each: a hundred seconds for a tenth of the server's time."""
    clock = iter(range(1000))
    server = RunServer(tmp_path, [configs(epochs=9), [replace(one, seed=1) for one in configs(epochs=9)]], 4.0)
    for bank in range(2):
        server.begin(BankAttempt(bank, 0), sopool.__version__)
    assert server.pulse(BankAttempt(0, 0), []).pause == 4.0
    monkeypatch.setattr("sopool.experiments.executors.run_server.time.monotonic", lambda: float(next(clock)))
    server.save_checkpoint(BankAttempt(0, 0), configs(epochs=9)[0], {"x": np.zeros(1)}, checkpoint_facts(1))
    assert server.pulse(BankAttempt(0, 0), [TrainingProgress(3, 1)]).pause == pytest.approx(6 * 1.0 / 0.1)
