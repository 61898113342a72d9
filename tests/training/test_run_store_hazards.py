"""What may befall a store of runs: damage, places that cannot be written, a full disk, a killed process."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from sopool.errors import DataError
from sopool.training.runs import locks as run_locks
from sopool.training.runs.store import RunStore
from tests.helpers.run_saver import FILES, a_config, a_run, interrupt, is_of_one_piece, kinds, names, train

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def stores_of_others(tmp_path_factory):
    """What other processes left, killed or at once. All from one process that forks them: imports take seconds."""
    folder = tmp_path_factory.mktemp("others")
    subprocess.run([sys.executable, "-m", "tests.helpers.run_saver", folder], cwd=ROOT, check=True)
    return folder


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
        with pytest.warns(UserWarning, match=rf"{name}: this file of a run is missing.*counts as missing"):
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
        with pytest.warns(UserWarning, match=f"{name}: this is not the file that was written with curves"):
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
    with pytest.raises(DataError, match="file: this is a file, but a store of runs is a folder"):
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
