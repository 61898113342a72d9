"""Folders that only the user and root can write to: what they hold was written by one of the two.

The rules are those of POSIX: owner and mode. Access control lists are not looked at, nor are the folders above; Windows
has neither owners nor modes of this kind, and everything passes there.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

ROOT = 0
OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> None:
    """Make a folder, open to the user alone, unless it is there; raise as :func:`check_private` does."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    check_private(folder)


def make_unwritable(file: BinaryIO) -> None:
    """Take the right to write to an open file from all but its owner, whatever the user's umask."""
    if os.name == "posix":
        os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode) & ~OTHERS)


def check_private(path: Path) -> None:
    """Raise a ``PermissionError`` if anybody but the user and root can write to a file or folder.

    A group that has no member but the user, as many systems make one for each, may write.
    """
    found = path.stat()
    if os.name != "posix":
        return
    if found.st_uid not in (ROOT, os.geteuid()):
        raise PermissionError(
            f"{path} belongs to user {found.st_uid}, not to you: what is in it may be forged. Use a folder of your own"
        )
    writable = found.st_mode & OTHERS
    if writable == stat.S_IWGRP and _only_member(found.st_gid):
        return
    if writable:
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(
            f"other users can write to {path}, whose mode is {mode:o}: what is in it may be forged. If only you are to "
            f"write there: chmod go-w {path}"
        )


def is_private(path: Path) -> bool:
    """Whether a file is there, and neither it nor its folder can be written to by anybody but the user and root."""
    try:
        check_private(path.parent)
        check_private(path)
    except OSError:
        return False
    return path.is_file()


def _only_member(group: int) -> bool:
    """Whether the user is the only member of a group."""
    import grp  # not on Windows
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        found = grp.getgrgid(group)
    except KeyError:
        return False
    # Users whose primary group it is are not listed; by convention a group that bears a user's name has no others.
    own = user.pw_gid == group and found.gr_name == user.pw_name
    return own and set(found.gr_mem) <= {user.pw_name}
