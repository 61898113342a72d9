"""Check that only the user and root can write to files and folders, so that their content can be trusted.

Only the POSIX owner and mode are checked, not access control lists or parent folders. On Windows all files pass.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

ROOT = 0
OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> None:
    """Create a folder for the user only, if it does not exist, and check it with :func:`check_private`."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    check_private(folder)


def make_unwritable(file: BinaryIO) -> None:
    """Remove write permission for group and others from an open file, whatever the umask."""
    if os.name == "posix":
        os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode) & ~OTHERS)


def check_private(path: Path) -> None:
    """Raise a ``PermissionError`` if anyone but the user and root can write to a file or folder.

    Write permission for a group whose only member is the user is accepted.
    """
    found = path.stat()
    if os.name != "posix":
        return
    if found.st_uid not in (ROOT, os.geteuid()):
        raise PermissionError(
            f"{path} belongs to user {found.st_uid}, not to you, so its content may be forged. Use a folder of your own"
        )
    writable = found.st_mode & OTHERS
    if writable == stat.S_IWGRP and _only_member(found.st_gid):
        return
    if writable:
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(
            f"other users can write to {path}, whose mode is {mode:o}, so its content may be forged. To prevent that: "
            f"chmod go-w {path}"
        )


def is_private(path: Path) -> bool:
    """Return whether a file exists and only the user and root can write to it and to its folder."""
    try:
        check_private(path.parent)
        check_private(path)
    except OSError:
        return False
    return path.is_file()


def _only_member(group: int) -> bool:
    """Return whether the user is the only member of a group."""
    import grp  # not on Windows
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        found = grp.getgrgid(group)
    except KeyError:
        return False
    # Users whose primary group it is are not listed; by convention a group named after a user has no other members.
    own = user.pw_gid == group and found.gr_name == user.pw_name
    return own and set(found.gr_mem) <= {user.pw_name}
