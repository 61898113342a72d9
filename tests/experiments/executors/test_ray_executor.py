"""Training on a real Ray cluster of three nodes, one of which is killed half-way; all on this machine."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest

from sopool._runtime.processes import WorkerDiedError
from sopool.data.sources.catalogue import load
from sopool.errors import DataError, UserError
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.executors import ray_executor as executor
from sopool.experiments.executors.local import train_all
from sopool.experiments.executors.ray_executor import train_on_ray
from sopool.experiments.executors.run_server import WorkerLink
from sopool.models.config import Setting
from sopool.training import trainer
from sopool.training.runs.store import RunStore
from tests.helpers.runs import assert_trained_alike

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'sopool[cluster]'")
pytestmark = [
    pytest.mark.slow,  # a cluster takes its time to start, and to lose a node
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

HALF = 30
REQUEST = Request(["sopool-bimap"], ["single-epoch"], settings=[Setting(hidden=4)], epochs=2 * HALF, folds=4, steps=2)


@pytest.fixture(scope="module")
def cluster():
    """The head, where no bank is trained, and two nodes of one core."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # or tests beside this one would starve its workers
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        made.nodes = [made.add_node(num_cpus=1) for _ in range(2)]
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def graphs():
    return load("MUTAG")


@pytest.fixture
def many_checkpoints(monkeypatch):
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", -1.0)


def plan(graphs, folder, **changes):
    evaluator = Evaluator(graphs, replace(REQUEST, **changes), RunStore(folder))
    return evaluator.runs, evaluator.first_runs()


def count(folder, what):
    return len(list(folder.glob(f"*/{what}.safetensors")))


def trained(reports):
    return sum(one.models * one.epochs for one in reports if one.score is not None)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """First attempts at a bank wait after ``HALF`` epochs, all of them reported, until the file ``open`` is there."""
    train_bank = executor.train_bank
    folder = tmp_path / "gate"
    folder.mkdir()

    def gated(server, shared, attempt, device):
        stop = WorkerLink.stop
        asked = []

        def wait(link):
            asked.append(stop(link))
            if len(asked) == HALF and attempt.number == 0:
                link._pulse()
                (folder / f"waits-{attempt.bank}").write_text(str(os.getpid()))
                while not (folder / "open").exists():
                    time.sleep(0.05)
            return asked[-1]

        WorkerLink.stop = wait
        try:
            train_bank(server, shared, attempt, device)
        finally:
            WorkerLink.stop = stop

    monkeypatch.setattr(executor, "train_bank", gated)
    return folder


def wait_for_a_death(gate):
    """Of one of the workers that wait: it outlives its node by a moment, and would train on."""
    workers = [int(path.read_text()) for path in gate.glob("waits-*")]
    end = time.monotonic() + 60
    while all(map(is_alive, workers)):
        assert time.monotonic() < end, "no worker ended with its node"
        time.sleep(0.05)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_node_killed_half_way_changes_no_number(cluster, graphs, tmp_path, many_checkpoints, gate):
    runs, configs = plan(graphs, tmp_path / "runs")
    seen = []

    def report(progress):
        seen.append(progress)
        waiting = len(list(gate.glob("waits-*")))
        if (waiting, len(cluster.nodes)) == (2, 2) and "3 nodes, 2/2 cores" in {one.where for one in seen}:
            assert (count(runs.folder, "checkpoint"), count(runs.folder, "curves")) == (len(configs), 0)
            cluster.remove_node(cluster.nodes.pop(), allow_graceful=False)
            wait_for_a_death(gate)
            (gate / "open").touch()

    assert train_on_ray(graphs, runs, configs, report=report, address=cluster.address)
    assert len(cluster.nodes) == 1
    cluster.nodes.append(cluster.add_node(num_cpus=1))

    other, _ = plan(graphs, tmp_path / "local")
    assert train_all(graphs, other, configs, workers=1)
    assert_trained_alike(runs.folder, other.folder)

    total = len(configs) * REQUEST.epochs
    assert sum(one.models * one.epochs for one in seen) == total
    assert sum(one.finished for one in seen) == len(configs)
    resumed = [one.epochs for one in seen if one.epochs > 0 and one.score is None]
    assert len(resumed) == 2, "both runs of the lost bank go on from their checkpoints, no other run begins again"
    assert 0 < min(resumed) <= max(resumed) < HALF
    lost = -sum(one.models * one.epochs for one in seen if one.epochs < 0)
    assert lost == 2 * HALF
    assert trained(seen) == total + lost - sum(resumed)
    assert count(runs.folder, "checkpoint") == 0


def test_stopped_and_resumed(cluster, graphs, tmp_path):
    runs, configs = plan(graphs, tmp_path, epochs=30, pools=["sum"])
    seen = []

    def stop():
        return any(one.score is not None for one in seen)

    assert not train_on_ray(graphs, runs, configs, report=seen.append, stop=stop, address=cluster.address)
    infos = [info for info in runs.list() if info.kind == "interrupted"]
    assert infos
    assert all(info.epoch for info in infos)  # those that had not begun left nothing
    for config in configs:
        with runs.claim(config) as mine:
            assert mine
    assert train_on_ray(graphs, runs, configs, address=cluster.address)
    other, _ = plan(graphs, tmp_path / "local")
    assert train_all(graphs, other, configs, workers=1)
    assert_trained_alike(runs.folder, other.folder)


def test_no_core_has_two_banks_at_a_time(cluster, graphs, tmp_path, monkeypatch):
    """Also while they wait for the server, and others wait for a core."""
    train_bank = executor.train_bank
    log = tmp_path / "log"

    def logged(server, shared, attempt, device):
        for word, work in (("begin", lambda: train_bank(server, shared, attempt, device)), ("end", lambda: None)):
            with log.open("a") as file:
                print(time.time(), word, os.getpid(), file=file)
            work()

    monkeypatch.setattr(executor, "train_bank", logged)
    settings = [Setting(hidden=4, batch_size=size) for size in range(4, 14)]
    runs, configs = plan(graphs, tmp_path / "runs", epochs=3, settings=settings)
    assert train_on_ray(graphs, runs, configs, address=cluster.address)
    events = sorted((float(when), word, pid) for when, word, pid in map(str.split, log.read_text().splitlines()))
    assert len(events) == 2 * len(settings)
    at_once = np.cumsum([1 if word == "begin" else -1 for _, word, _ in events])
    assert at_once.max() <= 2
    assert len({pid for _, _, pid in events}) <= 2


def test_a_bank_that_kills_its_workers_is_given_up(cluster, graphs, tmp_path, monkeypatch):
    train_bank = executor.train_bank

    def die_with_fold_0(server, shared, attempt, device):
        if attempt.bank == 0:
            os._exit(1)
        train_bank(server, shared, attempt, device)

    monkeypatch.setattr(executor, "train_bank", die_with_fold_0)
    runs, configs = plan(graphs, tmp_path, epochs=1)
    with pytest.raises(WorkerDiedError, match=r"3 workers that trained 2 models of sopool-bimap on MUTAG"):
        train_on_ray(graphs, runs, configs, address=cluster.address)
    assert [runs.load(config) is None for config in configs].count(False) == 2


def test_an_error_in_a_task_is_the_users(cluster, graphs, tmp_path, monkeypatch):
    def fail(*_):
        raise DataError("the disk is full.")

    monkeypatch.setattr(executor, "train_bank", fail)
    runs, configs = plan(graphs, tmp_path, epochs=1)
    with pytest.raises(DataError, match=r"^the disk is full\.$"):
        train_on_ray(graphs, runs, configs, address=cluster.address)


def test_a_gpu_that_is_not_there(cluster, graphs, tmp_path):
    runs, configs = plan(graphs, tmp_path, epochs=1)
    for device, says in (("cuda", "no machine of the cluster has a GPU"), ("cuda:1", "expected auto, cpu or cuda")):
        with pytest.raises(UserError, match=says):
            train_on_ray(graphs, runs, configs, device, address=cluster.address)
