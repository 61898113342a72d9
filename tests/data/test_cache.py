import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from sopool._files.sealed import seal
from sopool.data.formats import packed as file
from sopool.data.formats.packed import FORMAT
from sopool.data.pack import Graph, pack
from sopool.data.sources import cache
from sopool.data.sources.cache import cache_folder, cached, fingerprint
from sopool.errors import DataError
from tests.helpers.data_graphs import as_lists

POSIX = pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")


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
    first = cached(source, "S", read)
    second = cached(source, "S", read)
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
    with pytest.warns(UserWarning, match=r"S-.*\.graphs: .* Creating it again"):
        assert as_lists(cached(source, "S", read)) == as_lists(read())
    assert read.times == 3
    cached(source, "S", read)
    assert read.times == 3


def entry_of(source, read):
    cached(source, "S", read)
    (entry,) = cache_folder().iterdir()
    return entry


@pytest.mark.parametrize("place", [0, 0.2, 0.4, 0.6, 0.8, 1])
def test_a_changed_byte_of_an_entry_is_not_believed(source, place):
    read = Reader()
    entry = entry_of(source, read)
    content = bytearray(entry.read_bytes())
    content[int(place * (len(content) - 1))] ^= 1
    entry.write_bytes(content)
    with pytest.warns(UserWarning, match="Creating it again"):
        assert as_lists(cached(source, "S", read)) == as_lists(read())
    assert read.times == 3


@pytest.mark.parametrize(
    "forged",
    [
        {"edge_index": torch.tensor([[0], [2]], dtype=torch.int32)},
        {"edge_index": torch.tensor([[-1], [1]], dtype=torch.int32)},
        {"labels": torch.tensor([1])},
    ],
)
def test_a_forged_entry_is_not_used_even_with_a_right_digest(source, forged):
    read = Reader()
    entry = entry_of(source, read)
    store = read()
    header = {"format": FORMAT, "name": "read", "entry": entry.name, "classes": '["x"]'}
    entry.write_bytes(seal(store.tensors() | forged, header))
    with pytest.warns(UserWarning, match="Creating it again"):
        assert as_lists(cached(source, "S", read)) == as_lists(store)


def test_an_entry_of_another_source_is_not_used(source):
    read = Reader()
    first = entry_of(source, read)
    source.write_text("two")
    cached(source, "S", read)
    (second,) = set(cache_folder().iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    with pytest.warns(UserWarning, match="this cache file was not made from this source"):
        cached(source, "S", read)


def test_an_entry_without_a_digest_is_not_used(source):
    read = Reader()
    entry = entry_of(source, read)
    store, header = file.read_graphs(entry)
    arrays = {name: tensor.clone() for name, tensor in store.tensors().items()}
    del store, header["digest"]
    save_file(arrays, entry, metadata=header)
    with pytest.warns(UserWarning, match="Creating it again"):
        cached(source, "S", read)
    assert read.times == 2


@POSIX
def test_a_folder_that_others_can_write_to_is_neither_read_nor_written(source):
    read = Reader()
    entry = entry_of(source, read)
    before = entry.read_bytes()
    cache_folder().chmod(0o777)
    with pytest.warns(
        UserWarning, match=r"could not be written to the cache.*other users can write to .*cache.* 777.*chmod go-w"
    ):
        cached(source, "S", read)
    assert read.times == 2
    cache_folder().chmod(0o700)
    assert [path.read_bytes() for path in cache_folder().iterdir()] == [before]


@POSIX
def test_a_file_that_others_can_write_to_is_made_anew(source):
    read = Reader()
    entry = entry_of(source, read)
    entry.chmod(0o666)
    cached(source, "S", read)
    cached(source, "S", read)
    assert read.times == 2


@POSIX
def test_a_folder_of_somebody_else_is_neither_read_nor_written(source, monkeypatch):
    read = Reader()
    entry_of(source, read)
    if os.geteuid() == 0:  # whose own folders everybody trusts
        os.chown(cache_folder(), 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(UserWarning, match=r"could not be written to the cache.*cache belongs to user \d+, not to you"):
        cached(source, "S", read)
    assert read.times == 2


@POSIX
@pytest.mark.parametrize(("members", "times"), [([], 1), (["somebody"], 2)])
def test_a_group_of_the_user_alone_may_write(source, monkeypatch, members, times):
    import grp
    import pwd

    read = Reader()
    entry_of(source, read)
    cache_folder().chmod(0o770)
    group = cache_folder().stat().st_gid
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="me", pw_gid=group))
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="me", gr_mem=members))
    with nullcontext() if times == 1 else pytest.warns(UserWarning, match="other users can write"):
        cached(source, "S", read)
    assert read.times == times


@POSIX
def test_whatever_the_umask_only_the_user_can_write(source, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(source.parent / "some" / "cache"))
    before = os.umask(0)
    try:
        entry = entry_of(source, Reader())
    finally:
        os.umask(before)
    assert entry.stat().st_mode & 0o022 == 0
    assert [folder.stat().st_mode & 0o777 for folder in (entry.parent, entry.parent.parent)] == [0o700, 0o700]


def test_a_name_cannot_lead_out_of_the_cache(source):
    cached(source, "../../x\0" + "y" * 300, Reader())
    (entry,) = cache_folder().iterdir()
    assert entry.name.startswith(".._.._x_yyy")


def test_an_entry_of_another_version_is_built_anew(source, monkeypatch):
    read = Reader()
    cached(source, "S", read)
    monkeypatch.setattr(file, "FORMAT", "sopool graphs 2")
    with pytest.warns(UserWarning, match="another version"):
        cached(source, "S", read)
    assert read.times == 2


@pytest.mark.parametrize("reason", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")])
def test_a_cache_that_cannot_be_written_costs_a_warning(source, monkeypatch, reason):
    def fail(store, file, **more):
        raise reason

    monkeypatch.setattr(cache, "write_graphs", fail)
    with pytest.warns(UserWarning, match=r"could not be written to the cache.*SOPOOL_CACHE"):
        assert len(cached(source, "S", Reader())) == 1
    assert not list(cache_folder().iterdir())


def test_a_folder_in_the_way_costs_a_warning(source):
    cache_folder().write_text("not a folder")
    with pytest.warns(UserWarning, match="could not be written to the cache"):
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
    with pytest.raises(DataError, match=r"g\.jsonl: the file cannot be read \(Permission denied\)"):
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
        "import sys, time; from pathlib import Path; from sopool.data.sources.cache import cached;"
        "from sopool.data.pack import Graph, pack;"
        "read = lambda: (time.sleep(0.5), pack([Graph(2, [(0, 1)], 'x')]))[1];"
        "assert len(cached(Path(sys.argv[1]), 'S', read)) == 1"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(source)], env=os.environ.copy()) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert len(list(cache_folder().iterdir())) == 1
