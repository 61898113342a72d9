"""Files that are written whole or not at all."""

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

LEFT_OVER = re.compile(r"\..+\.[0-9a-f]{16}")
LONGEST = 50
"""Letters of a name that the temporary one repeats: file systems have room for 255 bytes."""
JUST_MADE = 1.0
"""Seconds within which a temporary file may be there and not locked yet."""
BY_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a write can fail with; Python names no file then."""
SYSTEM_ERROR = re.compile(r"(?:\(os error|\bOs \{ code:) (\d+)")
"""The error number in a message of safetensors: "(os error 28)"; "Os { code: 28, ..." before version 0.6."""
ADVICE = {
    errno.ENOSPC: "Make room on that disk, or choose a place on another.",
    errno.EDQUOT: "Delete what is no longer needed there, or choose a place on another disk.",
    errno.EFBIG: "Raise the limit on the size of files, or choose a place on another disk.",
    errno.EIO: "The disk or the way to it may be failing: choose a place on another.",
    errno.EROFS: "Choose a folder that can be written to.",
    errno.EACCES: "Choose a folder that can be written to, or have it allowed.",
    errno.EPERM: "Choose a folder that can be written to, or have it allowed.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it takes the place of ``path`` at the end, or goes away on any error.

    After a power failure, too, ``path`` has either what it had or all that was written: the content is on the disk
    before the name is, and the name is on the disk at the end of the block. A link stays one: the file that it leads to
    is replaced. A file that is replaced leaves its permissions to the new one. A device or a pipe has no content to
    keep whole: it is handed out itself. An ``OSError`` names ``path``. A killed process leaves the other name behind;
    it is deleted when ``path`` is next written to.
    """
    path = Path(path)
    if is_stream(path):
        with blaming(path):
            yield path
        return
    target = Path(os.path.realpath(path))
    _sweep(target)
    temporary = target.with_name(f".{target.name[:LONGEST]}.{secrets.token_hex(8)}")
    try:
        with blaming(path, temporary), _held(temporary):
            yield temporary
            _settle(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _flush_folder(target.parent)


def is_stream(path: Path) -> bool:
    """Whether it is there to be written into, such as a device or a pipe; an ``OSError`` if it is not to be written."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # it is not there yet, or whoever writes will say what is wrong
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise OSError(errno.EINVAL, "Neither a file nor a pipe", str(path))
    return not stat.S_ISREG(mode)


def why(error: OSError) -> str:
    """Where, what happened and what to do, for people."""
    where = "" if error.filename is None else f"{error.filename}: "
    return " ".join([f"{where}{error.strerror or error}.", *filter(None, [ADVICE.get(error.errno or 0)])])


def left_overs(folder: Path) -> list[Path]:
    """What killed processes left of their :func:`whole_file`, and what running ones are writing."""
    return [path for path in folder.iterdir() if LEFT_OVER.fullmatch(path.name)]


@contextmanager
def blaming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Have errors of writing to ``temporary``, or to a file without a name, name ``path``, which people know."""
    try:
        yield
    except Exception as error:
        number = _number(error, temporary or path)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _number(error: Exception, temporary: Path) -> int | None:
    """What a write failed with; None if the error is of something else that was done meanwhile."""
    if isinstance(error, OSError):
        own = error.filename == str(temporary) or (error.filename is None and error.errno in BY_THE_DISK)
        return error.errno if own else None
    found = SYSTEM_ERROR.search(str(error))
    return int(found[1]) if found else None


@contextmanager
def _held(temporary: Path) -> Iterator[None]:
    """Make a file and hold a lock on it for the block, which tells others that it is being written."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(str(temporary), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with suppress(OSError):  # not all file systems have locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _sweep(target: Path) -> None:
    """Delete what killed processes left of their attempts to write ``target``."""
    with suppress(OSError):
        for path in left_overs(target.parent):
            if path.name[: -len(".0123456789abcdef")] == f".{target.name[:LONGEST]}" and _is_abandoned(path):
                path.unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    """Whether it is sure that nobody writes to a temporary file; its maker locks it as soon as it is there."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return time.time() - os.fstat(descriptor).st_mtime > JUST_MADE
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _settle(temporary: Path, target: Path) -> None:
    with temporary.open("rb+") as file:
        _keep_permissions(temporary, target)
        os.fsync(file.fileno())
    temporary.replace(target)


def _keep_permissions(temporary: Path, target: Path) -> None:
    try:
        before = target.stat()
    except FileNotFoundError:
        return
    with suppress(OSError, AttributeError):  # only root may give files away, and Windows has no owners
        os.chown(temporary, before.st_uid, before.st_gid)
    temporary.chmod(stat.S_IMODE(before.st_mode))


def _flush_folder(folder: Path) -> None:
    # Windows and some network file systems cannot; the file is whole all the same.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
