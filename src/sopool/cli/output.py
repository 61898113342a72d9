"""What the commands print, and where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, RenderableType
from rich.text import Text

from sopool._runtime.visible import on_one_line
from sopool.cli.console import error_console, out, print_data
from sopool.cli.target import check_file, write_target

COLOURS = {"error": "red", "warning": "yellow", "note": "yellow"}


def say(kind: Literal["error", "warning", "note"], message: str, console: Console | None = None) -> None:
    """Print a message on the error stream, as it stands and as one line, so that no name in it can forge another."""
    console = console or error_console()
    text = Text.assemble((f"{kind}:", COLOURS[kind]), f" {on_one_line(message)}")
    console.print(text, soft_wrap=not console.is_terminal)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """In place of ``warnings.showwarning``: what a user can do something about, without file and line."""
    say("note", str(message))


def print_result(as_json: bool, plain: Callable[[], Any], pretty: Callable[[], RenderableType]) -> None:
    """Either JSON or a table; the other one is not even made."""
    if as_json:
        print_data(to_text(plain()) + "\n")
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
        print_data(text)
