"""Run jobs in parallel in single-threaded processes that report their progress and can be stopped."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import torch

from sopool._runtime.signals import STOPPING, heeded
from sopool._runtime.visible import visible

Job = TypeVar("Job")
JobResult = TypeVar("JobResult")


class WorkerDiedError(RuntimeError):
    """Raised when a worker process was killed from outside, most often because memory ran out."""


def run_jobs(
    make: Callable[..., Callable[[Job], JobResult]],
    arguments: tuple[Any, ...],
    jobs: Iterable[Job],
    workers: int,
    report: Callable[[Any], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    advice: str = "Try again with fewer workers.",
) -> Iterator[JobResult]:
    """Yield the result of each job as soon as it is done; there are fewer results if ``stop`` returns True.

    In each process, ``make(*arguments, report, stop)`` creates the function that is called with jobs. It may call
    ``report``, and should return soon when ``stop()`` is true. All arguments and results must be picklable. If a
    process is killed, a :class:`WorkerDiedError` is raised whose message ends with ``advice``.
    """
    context = get_context("spawn")
    with _without_signals():  # which would also reach the process that tracks semaphores
        reports = context.SimpleQueue()
        stopping = context.Event()
    setup = (make, arguments, reports, stopping, os.getpid())
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, context, _start, setup)
    # The pool is shut down in a thread, so that reports of workers are still passed on.
    end = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
    mine = set[BaseProcess]()
    try:
        with _without_signals():  # which would reach workers before they can ignore them
            waiting: set[Future[JobResult]] = {pool.submit(_work, job) for job in jobs}
            mine = set(active_children()) - others
        while waiting:
            if stop() and not stopping.is_set():
                for future in waiting:  # first, because a worker that stops would otherwise start another job
                    future.cancel()
                stopping.set()
                end.start()
            done, waiting = wait(waiting, timeout=0.1)
            while not reports.empty():
                report(reports.get())
            yield from (future.result() for future in done if not future.cancelled())
            waiting = {future for future in waiting if not future.cancelled()}  # cancelled ones may never be done
    except BrokenProcessPool as error:
        raise WorkerDiedError(f"A worker process was killed, perhaps because memory ran out. {advice}") from error
    except (KeyboardInterrupt, GeneratorExit):
        for worker in mine:  # their current jobs are not needed any more
            worker.kill()
        raise
    finally:
        stopping.set()
        if end.ident is None:
            end.start()
        end.join()  # waits for all workers, because starting ones need files that the caller will delete


_worker: dict[str, Callable[[Any], Any]] = {}


def _start(
    make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...], reports: Any, stopping: Any, parent: int
) -> None:
    for number in STOPPING:  # the parent process handles them and tells workers to stop
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)
    warnings.formatwarning = partial(_safe_warning, warnings.formatwarning)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    _worker["work"] = make(*arguments, reports.put, stopping.is_set)


def _safe_warning(before: Callable[..., str], *given: Any, **named: Any) -> str:
    """Return the text of a warning with control characters escaped, as the command line does in its own process."""
    return visible(before(*given, **named))


def _work(job: Any) -> Any:
    return _worker["work"](job)


def _leave_with(parent: int) -> None:
    """End this worker when its parent process has ended; the files it writes are complete at any time."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _without_signals() -> Iterator[None]:
    """Delay the signals that ask to stop until the end of the block; processes started in it block them."""
    with ExitStack() as after:
        if threading.current_thread() is threading.main_thread():
            # The mask is not enough: another thread may get the signal, and Python handles it in this one.
            received: list[int] = []
            after.callback(_raise_first, received)
            for number in heeded():
                handler = signal.signal(number, lambda number, _: received.append(number))
                after.callback(signal.signal, number, handler)
        if hasattr(signal, "pthread_sigmask"):
            before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
            after.callback(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        yield


def _raise_first(signals: list[int]) -> None:
    if signals:
        signal.raise_signal(signals[0])
