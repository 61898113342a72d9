import os

import pytest

from sopool.data.whole_file import left_overs, whole_file


def test_flushed_before_it_takes_its_name_and_the_name_after(tmp_path, monkeypatch):
    path, flushed = tmp_path / "a", []
    fsync = os.fsync

    def watched(descriptor):
        flushed.append((os.fstat(descriptor).st_ino, path.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    with whole_file(path) as temporary:
        temporary.write_text("all")
    assert flushed == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
    assert path.read_text() == "all"


def test_an_error_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def fail(temporary):
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), whole_file(path) as temporary:
        fail(temporary)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"


def test_left_overs(tmp_path):
    for name in ("a", ".hidden", ".a.txt"):
        (tmp_path / name).write_text("mine")
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("half")
        assert left_overs(tmp_path) == [temporary]
    assert left_overs(tmp_path) == []
