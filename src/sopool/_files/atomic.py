"""Write files atomically: each file has either its old content or all of its new content."""

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
"""The number of characters of the file name in the temporary name; file systems limit names to 255 bytes."""
JUST_MADE = 1.0
"""The age in seconds below which a temporary file may not be locked yet."""
BY_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The errors of a write, for which Python does not name the file."""
SYSTEM_ERROR = re.compile(r"(?:\(os error|\bOs \{ code:) (\d+)")
"""The error number in a message of safetensors: "(os error 28)"; "Os { code: 28, ..." before version 0.6."""
ADVICE = {
    errno.ENOSPC: "Free space on that disk, or choose a folder on another one.",
    errno.EDQUOT: "Delete files that are no longer needed, or choose a folder on another disk.",
    errno.EFBIG: "Raise the limit on the size of files, or choose a folder on another disk.",
    errno.EIO: "The disk or its connection may be failing: choose a folder on another disk.",
    errno.EROFS: "Choose a folder that you can write to.",
    errno.EACCES: "Choose a folder that you can write to, or change its permissions.",
    errno.EPERM: "Choose a folder that you can write to, or change its permissions.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces ``path`` at the end of the block.

    If the block raises an exception, the temporary file is deleted and ``path`` is unchanged. The content is flushed to
    disk before the file is renamed, so this also holds after a power failure. A symbolic link is followed, and the new
    file gets the permissions of the old one. A device or a pipe is yielded itself. An ``OSError`` names ``path``. If
    the process is killed, the temporary file remains until ``path`` is written again.

    Args:
        path: The file to write.
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
    """Return whether ``path`` is a device or a pipe; raise an ``OSError`` if it cannot be written to."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # it does not exist yet, or writing to it will raise the error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise OSError(errno.EINVAL, "Neither a file nor a pipe", str(path))
    return not stat.S_ISREG(mode)


def why(error: OSError) -> str:
    """Return a message for an ``OSError``: the file, what happened and what to do."""
    where = "" if error.filename is None else f"{error.filename}: "
    return " ".join([f"{where}{error.strerror or error}.", *filter(None, [ADVICE.get(error.errno or 0)])])


def left_overs(folder: Path) -> list[Path]:
    """Return the temporary files of :func:`whole_file` in a folder, abandoned or still being written."""
    return [path for path in folder.iterdir() if LEFT_OVER.fullmatch(path.name)]


@contextmanager
def blaming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Make errors of writing to ``temporary``, or to a file without a name, name ``path``, which users know."""
    try:
        yield
    except Exception as error:
        number = _number(error, temporary or path)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _number(error: Exception, temporary: Path) -> int | None:
    """Return the error number of a failed write, or None if the error has another cause."""
    if isinstance(error, OSError):
        own = error.filename == str(temporary) or (error.filename is None and error.errno in BY_THE_DISK)
        return error.errno if own else None
    found = SYSTEM_ERROR.search(str(error))
    return int(found[1]) if found else None


@contextmanager
def _held(temporary: Path) -> Iterator[None]:
    """Create a file and lock it during the block, which shows other processes that it is being written."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(str(temporary), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with suppress(OSError):  # not all file systems support locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _sweep(target: Path) -> None:
    """Delete the temporary files that killed processes left when they wrote ``target``."""
    with suppress(OSError):
        for path in left_overs(target.parent):
            if path.name[: -len(".0123456789abcdef")] == f".{target.name[:LONGEST]}" and _is_abandoned(path):
                path.unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    """Return whether certainly no process writes to a temporary file, which its creator locks at once."""
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
    with suppress(OSError, AttributeError):  # only root may change the owner, and Windows has none
        os.chown(temporary, before.st_uid, before.st_gid)
    temporary.chmod(stat.S_IMODE(before.st_mode))


def _flush_folder(folder: Path) -> None:
    # Not supported by Windows and some network file systems; the file is complete in any case.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
