import errno
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from contextlib import nullcontext

import pytest
from safetensors import SafetensorError

from sopool._files.atomic import left_overs, whole_file, why
from sopool.data import save_graphs
from sopool.data.pack import Graph, pack


def test_flushed_before_it_takes_its_name_and_the_name_after(tmp_path, monkeypatch):
    path = tmp_path / "a"
    flushed = []
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


def test_what_a_killed_process_left_is_swept(tmp_path):
    path = tmp_path / "a"
    child = os.fork()
    if not child:
        with whole_file(path) as temporary:
            temporary.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = left_overs(tmp_path)
    other = left.with_name(".b.0123456789abcdef")
    other.write_text("of another file")
    os.utime(left, (0, 0))
    os.utime(other, (0, 0))
    write(path, "all")
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_what_is_being_written_is_not_swept(tmp_path):
    path = tmp_path / "a"
    with whole_file(path) as temporary:
        temporary.write_text("first to begin, last to end")
        os.utime(temporary, (0, 0))
        write(path, "all")
    assert path.read_text() == "first to begin, last to end"
    just_made = tmp_path / ".a.0123456789abcdef"
    just_made.write_text("not locked yet")
    write(path, "all")
    assert sorted(tmp_path.iterdir()) == [just_made, path]


def write(path, text):
    with whole_file(path) as temporary:
        temporary.write_text(text)


@pytest.mark.parametrize("name", ["a", "link", "link to link"])
def test_links_and_permissions_stay(tmp_path, name):
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "link to link").symlink_to(tmp_path / "link")
    before = file.stat()
    write(tmp_path / name, "new")
    after = file.stat()
    assert file.read_text() == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert {path.name for path in tmp_path.iterdir() if path.is_symlink()} == {"link", "link to link"}
    assert len(list(tmp_path.iterdir())) == 3


def test_a_link_to_nothing_yet(tmp_path):
    (tmp_path / "link").symlink_to("a")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "new"


def test_a_pipe_is_written_into(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write(path, "all")
    assert os.read(reader, 10) == b"all"
    os.close(reader)
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("minor", "fails"), [(3, False), (7, True)])
def test_a_device_stays_one(tmp_path, minor, fails):
    path = tmp_path / "device"  # one of our own, as null or full: whoever writes over the real ones harms everybody
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("w").close()
    except PermissionError:
        pytest.skip("no devices can be made here")
    with pytest.raises(OSError, match="No space left") if fails else nullcontext():
        write(path, "all")
    assert path.is_char_device()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_file_is_refused(tmp_path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.relpath(tmp_path / "socket"))
    for name, message in (("socket", "Neither a file nor a pipe"), (".", "Is a directory")):
        with pytest.raises(OSError, match=message):
            write(tmp_path / name, "all")
    listening.close()
    assert (tmp_path / "socket").is_socket()


def test_the_longest_names(tmp_path):
    for letter in ("x", "\N{OLD TURKIC LETTER ORKHON A}"):
        path = tmp_path / (letter * (255 // len(letter.encode())))
        write(path, "all")
        assert path.read_text() == "all"
    with pytest.raises(OSError, match="File name too long") as found:
        write(tmp_path / ("x" * 256), "all")
    assert found.value.filename == str(tmp_path / ("x" * 256))
    assert "Choose a shorter name." in why(found.value)


STORE = pack([Graph(2, [(0, 1)] * 1000)])
FULL = """
import resource, sys
from sopool.data import load_graphs, save_graphs
store = load_graphs(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    save_graphs(store, sys.argv[2])
except OSError as error:
    print(error.errno, error.filename)
"""


def test_a_disk_that_is_full_is_an_oserror_whoever_writes(tmp_path):
    """Here by a limit on the size of files, which the system enforces just so, and through another library's writer."""
    save_graphs(STORE, tmp_path / "all.graphs")
    command = [sys.executable, "-c", FULL, tmp_path / "all.graphs", tmp_path / "new.graphs"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout == f"{errno.EFBIG} {tmp_path / 'new.graphs'}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["all.graphs"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG])
def test_an_error_of_the_disk_names_the_file(tmp_path, number):
    with pytest.raises(OSError, match=re.escape(os.strerror(number))) as found, whole_file(tmp_path / "a"):
        raise OSError(number, os.strerror(number))
    assert found.value.filename == str(tmp_path / "a")
    assert why(found.value).startswith(f"{tmp_path / 'a'}: {os.strerror(number)}. ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "message",
    [
        "I/O error: No space left on device (os error 28)",
        'Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })',
    ],
    ids=["recent", "before 0.6"],
)
def test_a_full_disk_is_recognised_in_the_words_of_every_safetensors(tmp_path, message):
    with pytest.raises(OSError, match=re.escape(os.strerror(errno.ENOSPC))) as found, whole_file(tmp_path / "a"):
        raise SafetensorError(message)
    assert (found.value.errno, found.value.filename) == (errno.ENOSPC, str(tmp_path / "a"))


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file", "other"), OSError("what?"), TimeoutError()])
def test_errors_of_something_else_stay_what_they_are(tmp_path, error):
    with pytest.raises(type(error)) as found, whole_file(tmp_path / "a"):
        raise error
    assert found.value is error
