"""Jobs in processes of one thread, side by side, which report while they are at it and end when they are told to."""

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
    """A worker process was killed from outside, most often because memory ran out."""


def run_jobs(
    make: Callable[..., Callable[[Job], JobResult]],
    arguments: tuple[Any, ...],
    jobs: Iterable[Job],
    workers: int,
    report: Callable[[Any], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    advice: str = "Run the same command with fewer --workers.",
) -> Iterator[JobResult]:
    """What comes of each job, as soon as it is done; fewer than jobs if ``stop`` said so.

    In each process ``make(*arguments, report, stop)`` gives the function that is called with jobs: it reports as it
    likes, and is to return soon when ``stop`` says so. All of these must be known to pickle. A process that was killed
    is a :class:`WorkerDiedError`, with ``advice`` what to do.
    """
    context = get_context("spawn")
    with _without_signals():  # which would reach the process that keeps track of semaphores, too
        reports = context.SimpleQueue()
        stopping = context.Event()
    setup = (make, arguments, reports, stopping, os.getpid())
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, context, _start, setup)
    # It ends in a thread of its own, so that what workers still report is passed on meanwhile.
    end = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
    mine = set[BaseProcess]()
    try:
        with _without_signals():  # which would reach the workers before they can turn them off
            waiting: set[Future[JobResult]] = {pool.submit(_work, job) for job in jobs}
            mine = set(active_children()) - others
        while waiting:
            if stop() and not stopping.is_set():
                for future in waiting:  # first, or a worker that is told to stop would take up others meanwhile
                    future.cancel()
                stopping.set()
                end.start()
            done, waiting = wait(waiting, timeout=0.1)
            while not reports.empty():
                report(reports.get())
            yield from (future.result() for future in done if not future.cancelled())
            waiting = {future for future in waiting if not future.cancelled()}  # they may never count as done
    except BrokenProcessPool as error:
        raise WorkerDiedError(f"A worker process was killed, perhaps because memory ran out. {advice}") from error
    except (KeyboardInterrupt, GeneratorExit):
        for worker in mine:  # nobody waits for what they have in hand
            worker.kill()
        raise
    finally:
        stopping.set()
        if end.ident is None:
            end.start()
        end.join()  # with all workers: those that still start need what the caller will delete


_worker: dict[str, Callable[[Any], Any]] = {}


def _start(
    make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...], reports: Any, stopping: Any, parent: int
) -> None:
    for number in STOPPING:  # the parent handles them, and says when to stop
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)
    warnings.formatwarning = partial(_safe_warning, warnings.formatwarning)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    _worker["work"] = make(*arguments, reports.put, stopping.is_set)


def _safe_warning(before: Callable[..., str], *given: Any, **named: Any) -> str:
    """Return the text of a warning, safe to print: a worker has no command line that would see to it."""
    return visible(before(*given, **named))


def _work(job: Any) -> Any:
    return _worker["work"](job)


def _leave_with(parent: int) -> None:
    """A worker whose parent was killed must not train on for nobody. What it wrote is whole at any moment."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _without_signals() -> Iterator[None]:
    """Have the signals that ask to stop wait until the end; processes started meanwhile begin without them."""
    with ExitStack() as after:
        if threading.current_thread() is threading.main_thread():
            # The mask is not enough: another thread may be given the signal, and Python handles it in this one.
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
