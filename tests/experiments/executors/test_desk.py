"""The desk and a worker's line to it, in one process: what is lost, found again and refused."""

from dataclasses import replace

import numpy as np
import pytest

import sopool
from sopool.errors import ResourceError
from sopool.experiments.executors.desk import Desk, Line, SupersededError, Ticket
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Progress, Trainer
from tests.helpers.run_saver import checkpoint_facts
from tests.helpers.training_graphs import little_store, run_config, tables_of


@pytest.fixture(scope="module")
def tables():
    return tables_of(little_store())


def configs(count=3, **changes):
    return [run_config(fold=fold, **changes) for fold in range(count)]


class KilledError(Exception):
    """Stands for the end of a worker."""


def worker(desk, ticket, dies_after=None):
    """A line that breaks after so many calls."""
    calls = 0

    def ask(method, *arguments):
        nonlocal calls
        calls += 1
        if dies_after is not None and calls > dies_after:
            raise KilledError
        return getattr(desk, method)(*arguments)

    return Line(ask, ticket)


def train(line, tables, stop=None):
    found = line.begin()
    if found:
        Trainer(tables, line, line.report, stop or line.stop, lambda: -1.0).train(found)
    line.end()


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
    desk = Desk(tmp_path / "runs", [configs()], -1.0)
    try:
        train(worker(desk, Ticket(0, 0), dies_after), tables)
    except KilledError:
        desk.died(0)
    train(worker(desk, Ticket(0, 1)), tables)
    for found, want in zip(curves(tmp_path / "runs", configs()), expected, strict=True):
        assert found.keys() == want.keys()
        for name, curve in want.items():  # in other company a matrix product may round otherwise
            np.testing.assert_allclose(found[name], curve, rtol=1e-7)
    news = desk.news()
    assert sum(one.models * one.epochs for one in news) == 3 * configs()[0].epochs
    assert sum(one.finished for one in news) == 3
    assert desk.left() == []
    assert {info.kind for info in RunStore(tmp_path / "runs").list()} == {"finished"}


def test_who_was_thought_dead_is_refused(tmp_path, tables):
    desk = Desk(tmp_path, [configs()], 20.0)
    first = worker(desk, Ticket(0, 0))
    second = worker(desk, Ticket(0, 1))
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
    desk = Desk(tmp_path, [configs()], 20.0)
    with RunStore(tmp_path).claim(others) as mine:
        assert mine
        assert worker(desk, Ticket(0, 0)).begin() == [free]
    assert desk.left() == [others, configs()[2]]
    with RunStore(tmp_path).claim(free) as mine:
        assert not mine
    desk.end(Ticket(0, 0))
    with RunStore(tmp_path).claim(free) as mine:
        assert mine


def test_told_to_stop_workers_write_checkpoints_and_none_begins(tmp_path, tables):
    desk = Desk(tmp_path, [configs(2), [configs()[2]]], 20.0)
    line = worker(desk, Ticket(0, 0))
    seen = []

    def stop():
        seen.append(desk.stop() if len(seen) == 1 else None)
        return desk.pulse(Ticket(0, 0), []).stop

    train(line, tables, stop)
    assert seen[1] == [0]
    assert desk.stop() == []
    assert worker(desk, Ticket(1, 0)).begin() == []
    infos = {info.key: info for info in RunStore(tmp_path).list()}
    assert {(infos[config.key].kind, infos[config.key].epoch) for config in configs(2)} == {("interrupted", 2)}


def test_deaths_count_until_something_is_saved(tmp_path):
    config = configs()[0]
    desk = Desk(tmp_path, [[config]], 20.0)
    assert desk.died(0) == 1
    line = worker(desk, Ticket(0, 1))
    line.begin()
    assert desk.died(0) == 2
    line.save_checkpoint(config, {"x": np.zeros(2)}, checkpoint_facts(1))
    assert desk.died(0) == 1
    desk.give_up(0)
    with RunStore(tmp_path).claim(config) as mine:
        assert mine


def test_a_worker_with_another_version_is_refused(tmp_path):
    desk = Desk(tmp_path, [configs()], 20.0)
    with pytest.raises(ResourceError, match=f"sopool 0.0.0, this machine {sopool.__version__}: install the same"):
        desk.begin(Ticket(0, 0), "0.0.0")


def test_many_workers_say_less_often_how_far_they_are(tmp_path):
    """A hundred at a millisecond each: a second for a tenth of the desk's time."""
    desk = Desk(tmp_path, [[replace(configs()[0], seed=seed)] for seed in range(100)], 20.0)
    desk.begin(Ticket(0, 0), sopool.__version__)
    assert desk.pulse(Ticket(0, 0), []).pulse == 0.5
    for bank in range(1, 100):
        desk.begin(Ticket(bank, 0), sopool.__version__)
    assert desk.pulse(Ticket(0, 0), []).pulse == pytest.approx(100 * 0.001 / 0.1)


def test_many_runs_write_checkpoints_less_often(tmp_path, monkeypatch):
    """Ten runs at a second each: a hundred seconds for a tenth of the desk's time."""
    clock = iter(range(1000))
    desk = Desk(tmp_path, [configs(epochs=9), [replace(one, seed=1) for one in configs(epochs=9)]], 4.0)
    for bank in range(2):
        desk.begin(Ticket(bank, 0), sopool.__version__)
    assert desk.pulse(Ticket(0, 0), []).pause == 4.0
    monkeypatch.setattr("sopool.experiments.executors.desk.time.monotonic", lambda: float(next(clock)))
    desk.save_checkpoint(Ticket(0, 0), configs(epochs=9)[0], {"x": np.zeros(1)}, checkpoint_facts(1))
    assert desk.pulse(Ticket(0, 0), [Progress(3, 1)]).pause == pytest.approx(6 * 1.0 / 0.1)
