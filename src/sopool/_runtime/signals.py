"""Handle the signals that ask a process to stop."""

import os
import signal
import stat
from multiprocessing import active_children

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, ``kill``, and a closed terminal or connection; Windows does not have the last one."""


def heeded() -> list[int]:
    """Return the signals that are neither ignored, as under ``nohup``, nor handled outside Python."""
    return [number for number in STOPPING if signal.getsignal(number) not in (None, signal.SIG_IGN)]


def exit_code(number: int) -> int:
    """Return the exit code that shells use for a process stopped by a signal, such as 130 after Ctrl-C."""
    return 128 + number


def kill_workers() -> None:
    """Kill all worker processes immediately, without waiting for their current jobs."""
    for worker in active_children():
        worker.kill()


def leave_lost_terminal() -> None:
    """Redirect output to the null device if the terminal is gone, because writing to it would raise an error."""
    for stream in (1, 2):
        try:
            lost = stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream)
        except OSError:  # it was closed
            continue
        if lost:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream)
            os.close(nowhere)
