"""Count the available cores, and set the number of threads of PyTorch's operators."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[int]:
    """Let PyTorch's operators use ``count`` threads in the block, and yield the number used outside.

    Several threads may be in such a block at the same time: the last one that leaves restores what the first one found.
    """
    before = _blocks.enter(count)
    try:
        yield before
    finally:
        _blocks.leave(before)


def one_threaded_pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of threads in each of which PyTorch's operators use a single thread.

    A new thread starts with the number that was set last in any thread, so each worker sets its own. Use the pool
    inside :func:`threads`, which restores the number for threads that start later.
    """
    return ThreadPoolExecutor(workers, initializer=_tell, initargs=(1,))


def _tell(count: int) -> int:
    """Set the number of threads and return the number before.

    The number is read first in any case: at its first read, a thread takes over the number that was set last in any
    thread, even if it has set one itself.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    return before


class _Blocks:
    """The open blocks of :func:`threads`.

    ``torch.set_num_threads`` affects the calling thread and all threads that use PyTorch for the first time later. Such
    a thread would otherwise keep the number of another thread's block.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, int] = {}
        """How many blocks a thread is in, for each thread that is in one."""
        self._outside = 1
        """The number of threads before the first of them."""

    def enter(self, count: int) -> int:
        """Set the number of threads and return the number to restore."""
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
