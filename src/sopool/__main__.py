"""``python -m sopool`` is ``sopool``. Ctrl-C is heard before anything that takes its time is imported."""

import os
import signal
import sys
import traceback
from multiprocessing import active_children
from types import FrameType, TracebackType
from typing import NoReturn

from sopool.visible import visible


class Stopped(KeyboardInterrupt):
    """Ctrl-C. Python dies of a plain ``KeyboardInterrupt`` that it met in code made of text, even if it was caught."""


heard: list[int] = []


def main() -> None:
    """What the command ``sopool`` runs. Stopped, whatever it was at, it says so, and the exit code is 130."""
    sys.excepthook = _show_fault  # before Typer is imported, which hands on to whatever it finds here
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # shells have it ignored in the background
        signal.signal(signal.SIGINT, _stop)
    try:
        from sopool.cli import main as command

        command()
    except BaseException as error:
        # What is imported just then may make another error of it.
        if not heard or (isinstance(error, SystemExit) and not _came_of_it(error)):
            raise
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # nothing is left to be saved
        print("note: stopped.", file=sys.stderr)
        sys.exit(130)


def _show_fault(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Print the traceback of an error that nobody expected: it may hold text from data."""
    print(visible("".join(traceback.format_exception(kind, error, at))), end="", file=sys.stderr)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    if heard:
        for worker in active_children():  # whoever waits for them would wait for all that they have in hand
            worker.terminate()
    heard.append(number)
    raise Stopped


def _came_of_it(error: BaseException | None) -> bool:
    """Whether it was raised on the way out, without a word; commands that have something to say leave of themselves."""
    while error is not None and not isinstance(error, Stopped):
        error = error.__context__
    return error is not None


if __name__ == "__main__":  # workers import this file under another name
    main()
