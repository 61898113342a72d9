"""Locks between processes for the runs of one store. The kernel releases them, even after ``kill -9``."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

GUARD = ".lock"
CLAIM, WRITE = "lock", "write.lock"


class RunLocks:
    """Locks for each run: a claim for training, held for hours, and a lock for writing, held for milliseconds.

    Lock files are opened, tried and unlinked only while one guard for the whole store is held. So nobody ends up with a
    lock on a file that was just unlinked, testing a lock never makes another process's claim fail, and what is free
    stays
    free as long as the guard is held.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Wait for the guard and hold it for the block, which must be short."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / GUARD, thread_local=False).acquire(poll_interval=0.002):
            yield

    def busy(self, key: str) -> bool:
        """Return whether any process trains or writes this run. Call it only within :meth:`guard`."""
        for path in (self.folder / key / CLAIM, self.folder / key / WRITE):
            if path.exists():
                if (lock := _try(path)) is None:
                    return True
                lock.release()
        return False

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Claim a run for the block; the value is False if another process has claimed it."""
        lock = self._take(key, CLAIM)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                self._give_back(lock)

    @contextmanager
    def writing(self, key: str) -> Iterator[None]:
        """Wait for other writers of a run, and exclude them for the block."""
        while (lock := self._take(key, WRITE)) is None:
            time.sleep(0.002)
        try:
            yield
        finally:
            self._give_back(lock)

    def _take(self, key: str, name: str) -> FileLock | None:
        with self.guard():
            (self.folder / key).mkdir(exist_ok=True)
            return _try(self.folder / key / name)

    def _give_back(self, lock: FileLock) -> None:
        path = Path(lock.lock_file)
        with suppress(OSError), self.guard():
            lock.release()
            path.unlink(missing_ok=True)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
        # Release the lock even if the store is gone or its disk is full.
        lock.release()


def _try(path: Path) -> FileLock | None:
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    return lock
