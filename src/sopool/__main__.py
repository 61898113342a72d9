"""``python -m sopool`` is ``sopool``. Signals are handled before anything that takes time is imported."""

import os
import signal
import sys
import traceback
from types import FrameType, TracebackType
from typing import NoReturn

from sopool._runtime.signals import STOPPING, exit_code, kill_workers, leave_lost_terminal
from sopool._runtime.visible import visible


class Stopped(KeyboardInterrupt):
    """A signal asked the command to stop.

    Python dies of a plain ``KeyboardInterrupt`` that it met in code made of text, even if it was caught.
    """


received: list[int] = []


def main() -> None:
    """Run the command ``sopool``. Stopped by a signal, whatever it was at, it says so; the exit code tells which."""
    sys.excepthook = _show_fault  # before Typer is imported, which hands on to whatever it finds here
    for number in STOPPING:
        # Shells and nohup have them ignored in the background: that stays so.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)
    try:
        from sopool.cli import main as command

        command()
    except BaseException as error:
        # What is imported just then may make another error of it.
        if not received or (isinstance(error, SystemExit) and not _came_of_it(error)):
            raise
        code = exit_code(received[0])
        for number in STOPPING:
            signal.signal(number, lambda *_: os._exit(code))  # nothing is left to be saved
        print("note: stopped.", file=sys.stderr)
        sys.exit(code)


def _show_fault(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Print the traceback of an error that nobody expected: it may hold text from data."""
    print(visible("".join(traceback.format_exception(kind, error, at))), end="", file=sys.stderr)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    leave_lost_terminal()
    if received:
        kill_workers()
    received.append(number)
    raise Stopped


def _came_of_it(error: BaseException | None) -> bool:
    """Whether it was raised on the way out, without a word; commands that have something to say leave of themselves."""
    while error is not None and not isinstance(error, Stopped):
        error = error.__context__
    return error is not None


if __name__ == "__main__":  # workers import this file under another name
    main()
