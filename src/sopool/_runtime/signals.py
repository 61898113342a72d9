"""The signals that ask a process to stop."""

import os
import signal
import stat
from multiprocessing import active_children

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, ``kill``, and a terminal or connection that was closed; Windows does not have the last one."""


def heeded() -> list[int]:
    """Return those of the signals that are not ignored, as shells and ``nohup`` have it, nor handled outside Python."""
    return [number for number in STOPPING if signal.getsignal(number) not in (None, signal.SIG_IGN)]


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal stopped, as shells have it: 130 after Ctrl-C."""
    return 128 + number


def kill_workers() -> None:
    """End all worker processes at once: whoever waits for them would wait for all that they have in hand."""
    for worker in active_children():
        worker.kill()


def leave_lost_terminal() -> None:
    """Send what is still printed nowhere if the terminal is gone: writing to it would be an error."""
    for stream in (1, 2):
        try:
            lost = stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream)
        except OSError:  # it was closed
            continue
        if lost:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream)
            os.close(nowhere)
