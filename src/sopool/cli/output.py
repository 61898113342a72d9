"""Where the commands write: the terminal, the standard output, files.

This is the only module that writes to a terminal: whatever is printed here cannot drive it. Tables and messages are
shown with control characters written out, also to a pipe, and never read as Rich's markup. Data (CSV, JSON) stays exact
in files and pipes, and is shown in the same way only where it goes to a terminal.
"""

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from sopool._files.atomic import is_stream, whole_file
from sopool._runtime.visible import on_one_line, visible
from sopool.errors import DataError, SettingError

Name = TypeVar("Name", bound=str)

WIDE = 160
CLEAR_LINE = "\r\x1b[2K"
COLOURS = {"error": "red", "warning": "yellow", "note": "yellow"}
STDIN = "-"
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class SafeConsole(Console):
    """A console that shows text as it stands: neither control characters nor markup in it have an effect."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Make text of a string: here, before the layout, so that tables leave room for what is written out."""
        return super().render_str(visible(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render anything else: Rich marks the control codes of its own, so all other text can be told from them."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class TerminalStream:
    """A stream to a terminal that writes out control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text, with all but newlines written out."""
        self._stream.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Flush the terminal."""
        self._stream.flush()


def output_console(stderr: bool = False) -> SafeConsole:
    """Return the console for tables. In a pipe they keep their natural width: half of one is no use to a program."""
    console = SafeConsole(stderr=stderr)
    return console if console.is_terminal else SafeConsole(stderr=stderr, width=WIDE)


def error_console() -> SafeConsole:
    """Return the console for messages and progress."""
    return SafeConsole(stderr=True)


def data_stream(stream: TextIO) -> TextIO:
    """Return where to write data for a stream: the stream itself, or what shows the data safely on a terminal."""
    return cast(TextIO, TerminalStream(stream)) if stream.isatty() else stream


def print_data(text: str) -> None:
    """Write data to the standard output."""
    data_stream(sys.stdout).write(text)


def print_progress(line: str) -> None:
    """Write a line of progress to the error stream."""
    print(on_one_line(line), file=sys.stderr, flush=True)


def print_progress_in_place(line: str) -> None:
    """Write a line of progress over the one before, on a terminal; elsewhere a line of its own, unless it is empty."""
    if sys.stderr.isatty():
        shown = on_one_line(line)[: shutil.get_terminal_size().columns - 1]
        print(f"{CLEAR_LINE}{shown}", end="", file=sys.stderr, flush=True)
    elif line:
        print_progress(line)


def print_message(kind: Literal["error", "warning", "note"], message: str, console: Console | None = None) -> None:
    """Print a message on the error stream, as it stands and as one line, so that no name in it can forge another."""
    console = console or error_console()
    text = Text.assemble((f"{kind}:", COLOURS[kind]), f" {on_one_line(message)}")
    console.print(text, soft_wrap=not console.is_terminal)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning without file and line, in place of ``warnings.showwarning``."""
    print_message("note", str(message))


def print_result(as_json: bool, plain: Callable[[], Any], pretty: Callable[[], RenderableType]) -> None:
    """Print either JSON or a table; the other one is not even made."""
    if as_json:
        print_data(json_text(plain()) + "\n")
    else:
        output_console().print(pretty())


def json_text(plain: Any) -> str:
    """Return JSON as all commands print it."""
    return json.dumps(plain, indent=2, allow_nan=False)


def check_figures(path: Path | None, *inputs: str | Path) -> None:
    """Raise a ``DataError`` now if :func:`write_figures` could not write to it."""
    if path is not None:
        check_file(path, *inputs, instead=" The figures are printed by --json.")


def write_figures(plain: Any, path: Path | None, as_json: bool) -> None:
    """Write all figures as JSON: to the file, if there is one, and to the standard output if JSON is wanted there."""
    text = json_text(plain) + "\n"
    if path is not None:
        write_target(path, text)
    if as_json:
        print_data(text)


def is_stdout(path: Path) -> bool:
    """Return whether a path names the standard output. A name of it is no file: what was there already must stay."""
    return str(path) in STDOUT


def format_of(path: Path, *known: Name) -> Name:
    """Return the format to write a file in, by its name; to the standard output the first of those known."""
    if is_stdout(path):
        return known[0]
    for name in known:
        if path.suffix == f".{name}":
            return name
    names = ", ".join(f".{name}" for name in known[:-1])
    raise SettingError(f"call it {names} or .{known[-1]}, or say which with --format.", path)


def check_target(path: Path, *inputs: str | Path) -> None:
    """Raise a ``DataError`` now for a file that could not be written later, or that is among what is to be read."""
    if not is_stdout(path):
        _check_place(path)
    for one in inputs:
        if _same_file(path, one):
            known = "the standard input" if str(one) == STDIN else str(one)
            raise DataError(f"the same file as {known}, which is to be read and would be lost. Write to another.", path)


def check_file(path: Path, *inputs: str | Path, instead: str = "") -> None:
    """Raise likewise for what the standard output cannot take; ``instead``: what can be printed there, and how."""
    if is_stdout(path):
        raise SettingError(f"this is the standard output; the name of a file is needed.{instead}", path)
    check_target(path, *inputs)


@contextmanager
def open_target(path: Path) -> Iterator[TextIO]:
    """Open a file that is written whole or not at all, or the standard output."""
    if is_stdout(path):
        yield data_stream(sys.stdout)
        return
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        yield data_stream(file)


def write_target(path: Path, text: str) -> None:
    """Write all of a text at once."""
    with open_target(path) as file:
        file.write(text)


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise DataError("this is a folder; the name of a file is needed.", path)
    try:
        if is_stream(path):
            return
    except OSError as error:
        raise DataError(f"{error.strerror}: the name of a file is needed.", path) from error
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        known = folder if path.is_symlink() else path.parent
        raise DataError(f"there is no folder {known} to write to. Make it first.", path)
    if not os.access(folder, os.W_OK):
        raise DataError(f"the folder {path.parent} cannot be written to.", path)
    if path.exists() and not os.access(path, os.W_OK):
        raise DataError("this file may not be written to. Write to another, or have it allowed.", path)


def _same_file(target: Path, source: str | Path) -> bool:
    """By what the system says of them, whatever they are called; terminals and pipes may serve both ways."""
    try:
        written = os.fstat(sys.stdout.fileno()) if is_stdout(target) else target.stat()
        read = os.fstat(sys.stdin.fileno()) if str(source) == STDIN else Path(source).stat()
    except (OSError, ValueError):  # not there, or no files of the system
        return False
    return stat.S_ISREG(written.st_mode) and os.path.samestat(written, read)
