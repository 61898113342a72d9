"""Run the command line with ``python -m sopool``; signal handlers are set before slow imports."""

import os
import signal
import sys
import traceback
from types import FrameType, TracebackType
from typing import NoReturn

from sopool._runtime.signals import STOPPING, exit_code, kill_workers, leave_lost_terminal
from sopool._runtime.visible import visible
from sopool.errors import MissingPackageError


class Stopped(KeyboardInterrupt):
    """Raised when a signal asks the command to stop.

    A plain ``KeyboardInterrupt`` raised in code that was compiled from a string would end Python even if it is caught.
    """


received: list[int] = []


def main() -> None:
    """Run the ``sopool`` command; if a signal stops it, print a note and exit with the code of that signal."""
    sys.excepthook = _show_fault  # set before Typer is imported, whose own hook calls it
    for number in STOPPING:
        # Shells and nohup make background processes ignore signals, which must stay so.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)
    try:
        from sopool.cli import main as command

        command()
    except MissingPackageError as error:  # raised by the import; a command prints its own errors
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except BaseException as error:
        # A module that is being imported may raise another exception from it.
        if not received or (isinstance(error, SystemExit) and not _came_of_it(error)):
            raise
        code = exit_code(received[0])
        for number in STOPPING:
            signal.signal(number, lambda *_: os._exit(code))  # there is nothing left to save
        print("note: stopped.", file=sys.stderr)
        sys.exit(code)


def _show_fault(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Print the traceback of an unexpected error; control characters are escaped, as it may contain text from data."""
    print(visible("".join(traceback.format_exception(kind, error, at))), end="", file=sys.stderr)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    leave_lost_terminal()
    if received:
        kill_workers()
    received.append(number)
    raise Stopped


def _came_of_it(error: BaseException | None) -> bool:
    """Return whether an exit was caused by :class:`Stopped`; a command that prints its own message exits by itself."""
    while error is not None and not isinstance(error, Stopped):
        error = error.__context__
    return error is not None


if __name__ == "__main__":  # worker processes import this file under another name
    main()
