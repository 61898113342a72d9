"""How many cores there are, and how many threads PyTorch's operators use."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


def cores() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[int]:
    """Let PyTorch's operators use ``count`` threads inside, and hand out how many they used outside.

    Several threads may be inside at the same time: the last one to leave restores what the first one found.
    """
    before = _blocks.enter(count)
    try:
        yield before
    finally:
        _blocks.leave(before)


def one_threaded_pool(workers: int) -> ThreadPoolExecutor:
    """Make a pool of threads in each of which PyTorch's operators use that thread only.

    A new thread starts with the number that any thread was told last, so each worker is told its own. For use inside
    :func:`threads`, which restores the number for threads that are started later.
    """
    return ThreadPoolExecutor(workers, initializer=_tell, initargs=(1,))


def _tell(count: int) -> int:
    """Set the number of threads; how many there were before.

    It is asked for first in any case: a thread takes over the number that was told last when it is first asked, even
    if it was told one of its own before.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    return before


class _Blocks:
    """The open blocks of :func:`threads`.

    ``torch.set_num_threads`` holds for the calling thread, and for all threads that use PyTorch for the first time
    later. Such a thread would therefore take the number that holds inside another thread's block for its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, int] = {}
        """How many blocks a thread is in, for each thread that is in one."""
        self._outside = 1
        """The number of threads before the first of them."""

    def enter(self, count: int) -> int:
        """Set the number of threads; the number to restore."""
        thread = threading.get_ident()
        with self._lock:
            before = _tell(count)
            if not self._open:
                self._outside = before
            nested = thread in self._open
            self._open[thread] = self._open.get(thread, 0) + 1
            return before if nested else self._outside

    def leave(self, before: int) -> None:
        """Restore the number of threads."""
        thread = threading.get_ident()
        with self._lock:
            self._open[thread] -= 1
            if not self._open[thread]:
                del self._open[thread]
            _tell(before)


_blocks = _Blocks()
