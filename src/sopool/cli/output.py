"""What the commands print, and where."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, RenderableType
from rich.markup import escape

COLOURS = {"error": "red", "warning": "yellow", "note": "yellow"}
WIDE = 160


def out(stderr: bool = False) -> Console:
    """The console for tables. Piped, a table keeps its natural width: half of it is no use to the next program."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=WIDE)


def say(kind: Literal["error", "warning", "note"], message: str, console: Console | None = None) -> None:
    """A message on the error stream, as it stands: brackets in it are no markup."""
    console = console or Console(stderr=True)
    text = f"[{COLOURS[kind]}]{kind}:[/{COLOURS[kind]}] {escape(message)}"
    console.print(text, highlight=False, soft_wrap=not console.is_terminal)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """In place of ``warnings.showwarning``: what a user can do something about, without file and line."""
    say("note", str(message))


def print_result(as_json: bool, plain: Callable[[], Any], pretty: Callable[[], RenderableType]) -> None:
    """Either JSON or a table; the other one is not even made."""
    if as_json:
        print(to_text(plain()))
    else:
        out().print(pretty())


def to_text(plain: Any) -> str:
    """JSON as all commands print it."""
    return json.dumps(plain, indent=2, allow_nan=False)


def write_json(plain: Any, path: Path) -> None:
    """Whole, to a file; ``-`` is the standard output."""
    from sopool.data.whole_file import whole_file

    text = to_text(plain)
    if path == Path("-"):
        print(text)
        return
    with whole_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def check_target(path: Path) -> None:
    """Raise a ``DataError`` now for a file that could not be written later, after hours of training."""
    from sopool.data.errors import DataError

    if path.is_dir():
        raise DataError("this is a folder; the name of a file is needed.", path)
    if not path.absolute().parent.is_dir():
        raise DataError(f"there is no folder {path.parent} to write to. Make it first.", path)
    if not os.access(path.absolute().parent, os.W_OK):
        raise DataError(f"the folder {path.parent} cannot be written to.", path)
