import os
import subprocess
import sys
from pathlib import Path

import pytest

from sopool.data import cache, file
from sopool.data.cache import cache_folder, cached, fingerprint
from sopool.data.errors import DataError
from sopool.data.pack import Graph, pack
from tests.data.graphs import as_lists


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "source.txt"
    path.write_text("one")
    return path


class Reader:
    """Reads a store, and counts how often."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return pack([Graph(2, [(0, 1)], "x")], name="read")


def test_read_once(source):
    read = Reader()
    first, second = cached(source, "S", read), cached(source, "S", read)
    assert read.times == 1
    assert as_lists(first) == as_lists(second)


def test_other_content_is_another_entry(source):
    read = Reader()
    cached(source, "S", read)
    source.write_text("two")
    cached(source, "S", read)
    assert read.times == 2


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_entry_is_built_anew(source, damage):
    read = Reader()
    cached(source, "S", read)
    (entry,) = cache_folder().iterdir()
    entry.write_bytes(entry.read_bytes()[:-3] if damage is None else damage)
    assert as_lists(cached(source, "S", read)) == as_lists(read())
    assert read.times == 3


def test_an_entry_of_another_version_is_built_anew(source, monkeypatch):
    read = Reader()
    cached(source, "S", read)
    monkeypatch.setattr(file, "FORMAT", "sopool graphs 2")
    cached(source, "S", read)
    assert read.times == 2


@pytest.mark.parametrize("reason", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")])
def test_a_cache_that_cannot_be_written_costs_a_warning(source, monkeypatch, reason):
    def fail(store, path):
        raise reason

    monkeypatch.setattr(cache, "save_graphs", fail)
    with pytest.warns(UserWarning, match=r"could not be kept.*SOPOOL_CACHE"):
        assert len(cached(source, "S", Reader())) == 1
    assert not list(cache_folder().iterdir())


def test_a_folder_in_the_way_costs_a_warning(source):
    cache_folder().write_text("not a folder")
    with pytest.warns(UserWarning, match="could not be kept"):
        assert len(cached(source, "S", Reader())) == 1


def test_fingerprint_of_a_folder(tmp_path):
    (tmp_path / "a.txt").write_text("1")
    before = fingerprint(tmp_path)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    assert fingerprint(tmp_path) != before


def test_of_a_folder_only_what_may_be_graphs_is_read(tmp_path):
    """Else a folder given by mistake, such as a home folder, would be read to its last byte."""
    (tmp_path / "a.txt").write_text("1")
    before = fingerprint(tmp_path)
    (tmp_path / "film.mp4").write_text("long")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.txt").write_text("2")
    assert fingerprint(tmp_path) == before
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "b.txt").write_text("2")
    assert fingerprint(tmp_path) != before


def test_a_source_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    (tmp_path / "g.jsonl").write_text("")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"g\.jsonl: cannot be read \(Permission denied\)"):
        fingerprint(tmp_path / "g.jsonl")


def test_where_the_cache_is(monkeypatch):
    monkeypatch.delenv("SOPOOL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/sopool")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "sopool"


def test_two_processes_at_once(source):
    """Both find nothing, both read and write; both get the graphs, and one whole entry is left."""
    code = (
        "import sys, time; from pathlib import Path; from sopool.data.cache import cached;"
        "from sopool.data.pack import Graph, pack;"
        "read = lambda: (time.sleep(0.5), pack([Graph(2, [(0, 1)], 'x')]))[1];"
        "assert len(cached(Path(sys.argv[1]), 'S', read)) == 1"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(source)], env=os.environ.copy()) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert len(list(cache_folder().iterdir())) == 1
