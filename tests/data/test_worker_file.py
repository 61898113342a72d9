import math
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sopool._runtime.processes import run_jobs
from sopool.data import Graph, load_graphs, pack, save_graphs
from sopool.data.formats import worker_file as module
from sopool.data.formats.packed import renamed
from sopool.data.formats.worker_file import graphs_file
from tests.helpers.data_graphs import as_lists

TARGETS = torch.tensor([[0.5, 7], [math.nan, 1e15 + 0.125]], dtype=torch.float64)
CLASSES = pack([Graph(2, [(0, 1)], "x"), Graph(1, [], "y")], name="made here")
STORE = replace(CLASSES, targets=TARGETS, target_names=("a", "b"))
DESCRIPTORS = pytest.mark.skipif(not module.DESCRIPTORS.is_dir(), reason="files cannot be handed on by descriptors")


@pytest.fixture(autouse=True)
def folders(monkeypatch, tmp_path):
    """Other processes, which take the path from here, must find this file; what is temporary is seen."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def loader(files, report, stop):
    """In a worker: load the graphs of one of the files."""

    def work(number):
        store = files[number].load()
        return number, store.name, as_lists(store), files[number].path.stat().st_ino

    return work


@DESCRIPTORS
def test_workers_read_the_file_that_was_opened(tmp_path):
    """One that never had a name, and the one that a store is read from, though another has taken its name since."""
    path = tmp_path / "a.graphs"
    save_graphs(STORE, path)
    store = renamed(load_graphs(path), "read")
    inode = path.stat().st_ino
    with graphs_file(STORE) as nameless, graphs_file(store) as own:
        assert list(tmp_path.iterdir()) == [path]
        save_graphs(pack([Graph(1)]), path)
        first, second = sorted(run_jobs(loader, ((nameless, own),), [0, 1], 1))
    assert first[1:3] == ("made here", as_lists(STORE))
    assert second[1:] == ("read", as_lists(STORE), inode)
    assert list(tmp_path.iterdir()) == [path]


def test_where_there_are_no_descriptors_the_file_has_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "DESCRIPTORS", tmp_path / "nowhere")
    with graphs_file(STORE) as file:
        assert as_lists(file.load()) == as_lists(STORE)
        assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".graphs"]
    assert not list(tmp_path.iterdir())


@DESCRIPTORS
def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def fail(store, file):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(module, "write_graphs", fail)
    with pytest.raises(OSError, match="No space left") as found, graphs_file(STORE):
        pass
    assert found.value.filename == str(tmp_path)
