import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sopool.data.errors import DataError
from sopool.models.config import ModelConfig
from sopool.training import run_locks
from sopool.training.config import RunConfig
from sopool.training.record import Run
from sopool.training.run_info import differences
from sopool.training.run_store import RunStore
from tests.training.run_saver import a_config, a_run, is_of_one_piece, train

ROOT = Path(__file__).resolve().parents[2]
SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
FILES = ["config.json", "curves.safetensors", "environment.json", "predictions.safetensors"]

dtypes = st.sampled_from([np.float32, np.float64, np.int64, np.bool_])
arrays = dtypes.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0, max_side=4)))
named_arrays = st.dictionaries(st.text(min_size=1, max_size=8), arrays, max_size=4)
json_values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
facts = st.dictionaries(st.text(max_size=5), json_values | st.lists(json_values, max_size=3), max_size=4)
configs = st.builds(
    RunConfig,
    data=st.text(max_size=5),
    fingerprint=st.text(max_size=5),
    encoder=st.sampled_from(["labels", "degrees"]),
    model=st.builds(ModelConfig, pool_options=facts, hidden=st.integers(1, 64)),
    fold=st.integers(0, 9),
    lr=st.floats(1e-5, 1),
)
epochs = st.none() | st.integers(0, 400)
runs = st.builds(Run, configs, named_arrays, named_arrays, epochs, epochs, facts)


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


@pytest.fixture(scope="module")
def stores_of_others(tmp_path_factory):
    """What other processes left, killed or at once. All from one process that forks them: imports take seconds."""
    folder = tmp_path_factory.mktemp("others")
    subprocess.run([sys.executable, "-m", "tests.training.run_saver", folder], cwd=ROOT, check=True)
    return folder


def interrupt(store, config, epoch=20):
    store.save_checkpoint(config, {"weight": torch.arange(3.0)}, {"epoch": epoch})


def names(store, config):
    return sorted(path.name for path in (store.folder / config.key).iterdir())


def kinds(store):
    return {info.key: info.kind for info in store.list()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], strict=True)


@SHARED_FOLDER
@given(runs)
def test_round_trip(tmp_path, run):
    store = RunStore(tmp_path / "runs")
    store.save(run)
    again = store.load(run.config)
    assert_same(again.curves, run.curves)
    assert_same(again.predictions, run.predictions)
    assert replace(again, curves={}, predictions={}) == replace(run, curves={}, predictions={})
    assert names(store, run.config) == FILES
    (info,) = [info for info in store.list() if info.key == run.config.key]
    assert (info.kind, info.config) == ("finished" if run.stopped is None else "stopped", run.config)


@SHARED_FOLDER
@given(named_arrays, facts)
def test_checkpoint_round_trip(tmp_path, arrays, facts):
    store = RunStore(tmp_path / "runs")
    store.save_checkpoint(a_config(), arrays, facts)
    found, found_facts = store.load_checkpoint(a_config())
    assert_same({name: tensor.numpy() for name, tensor in found.items()}, arrays)
    assert found_facts == facts


def test_checkpoint_of_tensors_as_models_have_them(store):
    """Views of one buffer, transposed, on a tape, half precision, and one tensor under two names."""
    buffer = torch.arange(12.0).view(3, 4)
    weight = torch.nn.Parameter(buffer.clone())
    given = {"a": buffer[0], "b": buffer[:, 1], "c": buffer.T, "d": weight, "e": weight, "f": buffer.bfloat16()}
    store.save_checkpoint(a_config(), given, {"epoch": 1})
    found, _ = store.load_checkpoint(a_config())
    assert {name: tensor.dtype for name, tensor in found.items()} == {k: v.dtype for k, v in given.items()}
    assert all(torch.equal(found[name], given[name]) for name in given)
    found["a"] += 1  # what comes back may be written to
    assert store.load(a_config()) is None


def test_the_checkpoint_goes_when_the_run_is_saved(store):
    interrupt(store, a_config())
    store.save(a_run())
    assert store.load_checkpoint(a_config()) is None
    assert names(store, a_config()) == FILES


def test_the_last_save_stays(store):
    for mark in (1, 2):
        store.save(a_run(mark))
    assert is_of_one_piece(store.load(a_config()))
    assert store.load(a_config()).chosen_epoch == 2


def damages(content):
    """Cut short, emptied, garbage, and every byte changed by a bit (some of them, of long files)."""
    yield from (content[:length] for length in {0, 1, 8, 9, len(content) // 2, len(content) - 1})
    yield b"garbage"
    yield b"\xff" * len(content)
    for place in range(0, len(content), 1 + len(content) // 100):
        yield content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1 :]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file(store, name):
    """Never other numbers than those saved: a warning that names the file, and the run may be saved again."""
    run = a_run(3)
    store.save(run)
    path = store.folder / run.config.key / name
    for content in damages(path.read_bytes()):
        path.write_bytes(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = store.load(run.config)
        if again is None:
            assert [name in str(warning.message) for warning in caught] == [True]
        else:  # of the configuration, white space may change
            assert name == "config.json"
            assert is_of_one_piece(again)
        assert len(store.list()) == 1
    path.unlink()
    if name != "curves.safetensors":
        with pytest.warns(UserWarning, match=rf"{name}: is missing.*counts as not there"):
            assert store.load(run.config) is None
    store.save(run)
    assert is_of_one_piece(store.load(run.config))


def test_files_of_two_saves(store):
    """Each is whole, but they do not belong together."""
    for name in ("predictions.safetensors", "environment.json"):
        store.save(a_run(1))
        old = (store.folder / a_config().key / name).read_bytes()
        store.save(a_run(2))
        (store.folder / a_config().key / name).write_bytes(old)
        with pytest.warns(UserWarning, match=f"{name}: not the file that was written with curves"):
            assert store.load(a_config()) is None


def test_a_damaged_checkpoint(store):
    interrupt(store, a_config())
    path = store.folder / a_config().key / "checkpoint.safetensors"
    for content in damages(path.read_bytes()):
        path.write_bytes(content)
        with pytest.warns(UserWarning, match=r"checkpoint\.safetensors: .* starts over"):
            assert store.load_checkpoint(a_config()) is None
        assert len(store.list()) == 1


@pytest.mark.parametrize("name", ["config.json", "checkpoint.safetensors"])
def test_a_file_of_another_run(store, name):
    for config in (a_config(1), a_config(2)):
        store.save(a_run(1, config))
        interrupt(store, config)
    (store.folder / a_config(1).key / name).replace(store.folder / a_config(2).key / name)
    with pytest.warns(UserWarning, match=f"{name}.* run {a_config(1).key}, not of {a_config(2).key}"):
        assert (store.load if name == "config.json" else store.load_checkpoint)(a_config(2)) is None


def test_a_run_of_another_version(store):
    store.save(a_run())
    path = store.folder / a_config().key / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"news": 1}))
    assert kinds(store) == {a_config().key: "unreadable"}
    assert store.clean() == []
    with pytest.raises(DataError, match="another version"):
        store.compare(a_config().key, a_config().key)
    store.remove([a_config().key])
    assert store.list() == []


def test_list(store):
    before = datetime.now(timezone.utc)
    store.save(a_run(config=a_config(1)))
    store.save(a_run(config=a_config(2), stopped=7))
    interrupt(store, a_config(3))
    with store.claim(a_config(4)) as mine, store.claim(a_config(5)):
        assert mine
        interrupt(store, a_config(5))
        infos = {info.config.seed: info for info in store.list()}
    states = {seed: info.state for seed, info in infos.items()}
    interrupted = "interrupted, epoch 20 of 350"
    assert states == {1: "finished", 2: "stopped", 3: interrupted, 4: "running", 5: "running"}
    assert [infos[seed].epoch for seed in (1, 3, 4, 5)] == [None, 20, 0, 20]
    assert infos[1].size == sum(path.stat().st_size for path in (store.folder / a_config(1).key).iterdir())
    assert all(abs((info.when - before).total_seconds()) < 60 for info in infos.values())
    assert {info.state for info in store.list() if info.config.seed > 3} == {interrupted, "interrupted, epoch 0 of 350"}


def test_the_list_is_in_the_order_of_time(store):
    for seed in range(4):
        store.save(a_run(config=a_config(seed)))
        for path in [store.folder / a_config(seed).key, *(store.folder / a_config(seed).key).iterdir()]:
            os.utime(path, (1e9 - seed, 1e9 - seed))
    assert [info.config.seed for info in store.list()] == [3, 2, 1, 0]


def test_other_things_in_the_folder(store):
    store.save(a_run())
    (store.folder / "notes.txt").write_text("mine")
    (store.folder / ("0" * 16)).write_text("not a folder")
    assert [info.key for info in store.list()] == [a_config().key]
    assert store.clean() == []
    assert (store.folder / "notes.txt").exists()


def test_one_claim_at_a_time(store):
    with store.claim(a_config()) as first, store.claim(a_config()) as second, store.claim(a_config(1)) as other:
        assert (first, second, other) == (True, False, True)
        with RunStore(store.folder).claim(a_config()) as third:
            assert not third
    with store.claim(a_config()) as again:
        assert again
        store.save(a_run())
    assert names(store, a_config()) == FILES


def test_an_error_under_a_claim_stays_what_it_is_and_frees_it(store):
    with pytest.raises(OSError, match="of the caller"), store.claim(a_config()):
        raise OSError("of the caller")
    with store.claim(a_config()) as mine:
        assert mine


def test_clean(store):
    for seed in (1, 2):
        store.save(a_run(config=a_config(seed)))
        interrupt(store, a_config(seed))
        (store.folder / a_config(seed).key / f".curves.safetensors.{'0' * 16}").write_text("half")
        (store.folder / a_config(seed).key / "write.lock").touch()
    interrupt(store, a_config(3))
    interrupt(store, a_config(4))
    (store.folder / a_config(5).key).mkdir()
    (store.folder / ".removed.x" / "y").mkdir(parents=True)
    with store.claim(a_config(2)), store.claim(a_config(4)):
        kept = names(store, a_config(2))
        assert set(store.clean()) == {a_config(3).key, a_config(5).key}
        assert names(store, a_config(1)) == FILES
        assert names(store, a_config(2)) == kept
    assert {info.config.seed for info in store.list()} == {1, 2, 4}
    assert store.clean() == [a_config(4).key]
    left = {path.name for path in store.folder.iterdir()}
    assert left - {".lock"} == {a_config(1).key, a_config(2).key}


def test_clean_spares_what_is_being_written(store, monkeypatch):
    """Also by a process that has not claimed the run."""
    replace_file = Path.replace

    def clean_first(path, target):
        assert RunStore(store.folder).clean() == []
        assert kinds(store) == {a_config().key: "running"}
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", clean_first)
    store.save(a_run())
    assert is_of_one_piece(store.load(a_config()))


def test_remove(store):
    for seed in range(4):
        store.save(a_run(config=a_config(seed)))
    store.remove([a_config(0).key, a_config(0).key[:12], a_config(1).key])
    with store.claim(a_config(2)), pytest.raises(DataError, match=f"still running.*{a_config(2).key}"):
        store.remove([a_config(2).key, a_config(3).key])
    assert [info.config.seed for info in store.list()] == [2]
    with pytest.raises(DataError, match="no run has a key"):
        store.remove([a_config(2).key, a_config(3).key])
    assert [info.config.seed for info in store.list()] == [2]


@SHARED_FOLDER
@given(st.lists(st.text("0123456789abcdef", min_size=16, max_size=16), unique=True, max_size=6), st.data())
def test_find(tmp_path_factory, keys, data):
    store = RunStore(tmp_path_factory.mktemp("runs"))
    for key in keys:
        (store.folder / key).mkdir()
    prefix = data.draw(st.text("0123456789abcdef", max_size=3))
    if keys:
        whole = data.draw(st.sampled_from(keys))
        assert store.find(whole) == whole
        prefix = data.draw(st.just(prefix) | st.integers(1, 15).map(lambda length: whole[:length]))
    matches = [key for key in keys if key.startswith(prefix)] if prefix else []
    if len(matches) == 1:
        assert store.find(prefix) == matches[0]
    else:
        says = f"no run .* begins with {prefix!r}" if not matches else f"{len(matches)} runs .*: say more"
        with pytest.raises(DataError, match=says):
            store.find(prefix)


def test_compare(store):
    a = a_config()
    b = replace(a, lr=0.1, model=replace(a.model, hidden=64, pool_options={"rank": 8}))
    for config in (a, b):
        store.save(a_run(config=config))
    expected = {"lr": (0.01, 0.1), "model.hidden": (32, 64), "model.pool_options.rank": ("not set", 8)}
    assert store.compare(a.key[:9], b.key) == expected


@given(configs, configs)
def test_differences(a, b):
    assert (differences(a, b) == {}) == (a.to_json() == b.to_json())
    assert {name: pair[::-1] for name, pair in differences(a, b).items()} == differences(b, a)


def test_an_absent_store_is_empty_and_stays_absent(store):
    assert store.list() == store.clean() == []
    assert store.load(a_config()) is None
    assert store.load_checkpoint(a_config()) is None
    store.remove([])
    assert not store.folder.exists()


READS = [
    lambda store: store.list(),
    lambda store: store.load(a_config()),
    lambda store: store.load_checkpoint(a_config()),
    lambda store: store.find("a"),
]
WRITES = [
    lambda store: store.save(a_run()),
    lambda store: interrupt(store, a_config()),
    lambda store: store.claim(a_config()).__enter__(),
]


@pytest.mark.parametrize("use", [*READS, *WRITES, lambda store: store.clean()])
def test_a_file_in_the_place_of_the_store(tmp_path, use):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match="file: this is a file; a store of runs is a folder"):
        use(RunStore(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("use", WRITES)
def test_a_store_that_cannot_be_made(tmp_path, use):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match=r"file/runs: the store of runs cannot be written: .*Not a directory"):
        use(RunStore(tmp_path / "file" / "runs"))


@pytest.mark.parametrize("reason", [PermissionError(13, "Permission denied"), OSError(30, "Read-only file system")])
def test_a_store_that_can_only_be_read(store, monkeypatch, reason):
    store.save(a_run(1))
    interrupt(store, a_config(2))

    def refuse(*arguments, **options):
        raise reason

    monkeypatch.setattr(run_locks, "FileLock", refuse)
    assert store.load(a_config()).chosen_epoch == 1
    assert kinds(store) == {a_config().key: "finished", a_config(2).key: "interrupted"}
    for write in [*WRITES, RunStore.clean, lambda store: store.remove([a_config().key])]:
        with pytest.raises(DataError, match=f"runs: the store of runs cannot be written: .*{reason.strerror}"):
            write(store)
    (store.folder / a_config().key / "curves.safetensors").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"curves\.safetensors"):
        assert store.load(a_config()) is None


@pytest.mark.parametrize("name", ["curves.safetensors", "checkpoint.safetensors"])
def test_a_file_that_cannot_be_read_is_neither_damaged_nor_absent(store, name):
    """Otherwise the run would be trained again, or cleaned away."""
    interrupt(store, a_config())
    path = store.folder / a_config().key / name
    path.unlink(missing_ok=True)
    path.mkdir()  # nobody can read this as a file, not even root
    load = store.load if name == "curves.safetensors" else store.load_checkpoint
    for use in (store.list, store.clean, lambda: load(a_config())):
        with pytest.raises(DataError, match=f"runs: the store .*{name}"):
            use()


def test_a_full_disk_leaves_what_was_there(store, monkeypatch):
    store.save(a_run(1))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        store.save(a_run(2))
    with pytest.raises(DataError, match="No space left on device"):
        interrupt(store, a_config())
    assert names(store, a_config()) == FILES
    assert store.load(a_config()).chosen_epoch == 1


def test_killed_at_every_step(stores_of_others):
    """``kill -9`` before each write, flush and rename: whole files only, a free claim, and it can be done again."""
    store = RunStore(stores_of_others / "kill_at_every_step")
    before = kinds(store)
    assert set(before.values()) == {"finished", "interrupted"}
    cleaned = store.clean()
    assert kinds(store) == {key: "finished" for key in before if key not in cleaned}
    assert all(names(store, info.config) == FILES for info in store.list())


def test_killed_from_outside(stores_of_others):
    store = RunStore(stores_of_others / "kill_from_outside")
    assert set(kinds(store).values()) <= {"finished", "interrupted"}
    for info in store.list():
        if info.kind == "finished":
            assert is_of_one_piece(store.load(info.config))
        elif info.config:
            train(store, info.config, mark=1)


def test_two_processes_at_once(stores_of_others):
    store = RunStore(stores_of_others / "save_at_once")
    assert is_of_one_piece(store.load(a_config()))
    assert set(kinds(store).values()) == {"finished"}
    assert all(names(store, info.config) == FILES for info in store.list())
