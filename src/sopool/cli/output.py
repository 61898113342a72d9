"""What the commands print, and where."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, RenderableType
from rich.markup import escape

from sopool.cli.target import check_file, write_target

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


def check_figures(path: Path | None, *inputs: str | Path) -> None:
    """Raise a ``DataError`` now if :func:`give_figures` could not write to it."""
    if path is not None:
        check_file(path, *inputs, instead=" The figures are printed by --json.")


def give_figures(plain: Any, path: Path | None, as_json: bool) -> None:
    """All figures, as JSON: to a file where there is one, and to the standard output where tables are not wanted."""
    text = to_text(plain) + "\n"
    if path is not None:
        write_target(path, text)
    if as_json:
        sys.stdout.write(text)
