"""Output of the commands to the terminal, to standard output and to files.

Only this module writes to a terminal, and it escapes control characters so that data cannot control the terminal.
Tables and messages are escaped everywhere, and never interpreted as Rich markup. Data (CSV, JSON) is written unchanged
to files and pipes, and escaped on a terminal.
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
"""The width of tables in a pipe, unless the environment variable ``COLUMNS`` is set."""
CLEAR_LINE = "\r\x1b[2K"
COLOURS = {"error": "red", "warning": "yellow", "note": "yellow"}
STDIN = "-"
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class SafeConsole(Console):
    """A console that prints text literally: control characters and markup have no effect."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Return a string as text, escaped before the layout so that tables are wide enough."""
        return super().render_str(visible(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape all rendered text except Rich's own control codes, which are marked as such."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class TerminalStream:
    """A stream to a terminal that escapes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text with control characters other than newlines escaped."""
        self._stream.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Flush the terminal."""
        self._stream.flush()


def output_console(stderr: bool = False) -> SafeConsole:
    """Return the console for tables; in a pipe it is wide, unless ``COLUMNS`` gives its width."""
    console = SafeConsole(stderr=stderr)
    if console.is_terminal:
        return console
    columns = os.environ.get("COLUMNS", "")
    return SafeConsole(stderr=stderr, width=int(columns) if columns.isdecimal() and int(columns) else WIDE)


def error_console() -> SafeConsole:
    """Return the console for messages and progress."""
    return SafeConsole(stderr=True)


def data_stream(stream: TextIO) -> TextIO:
    """Return the stream itself or, for a terminal, one that escapes control characters."""
    return cast(TextIO, TerminalStream(stream)) if stream.isatty() else stream


def print_data(text: str) -> None:
    """Write data to standard output."""
    data_stream(sys.stdout).write(text)


def print_progress(line: str) -> None:
    """Write a line of progress to the error stream."""
    print(on_one_line(line), file=sys.stderr, flush=True)


def print_progress_in_place(line: str) -> None:
    """Overwrite the line of progress on a terminal; elsewhere print a new line unless it is empty."""
    if sys.stderr.isatty():
        shown = on_one_line(line)[: shutil.get_terminal_size().columns - 1]
        print(f"{CLEAR_LINE}{shown}", end="", file=sys.stderr, flush=True)
    elif line:
        print_progress(line)


def print_message(kind: Literal["error", "warning", "note"], message: str, console: Console | None = None) -> None:
    """Print a message on the error stream, on one line, so that names in it cannot fake other messages."""
    console = console or error_console()
    text = Text.assemble((f"{kind}:", COLOURS[kind]), f" {on_one_line(message)}")
    console.print(text, soft_wrap=not console.is_terminal)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning without file and line; a replacement for ``warnings.showwarning``."""
    print_message("note", str(message))


def print_result(as_json: bool, plain: Callable[[], Any], pretty: Callable[[], RenderableType]) -> None:
    """Print either JSON or a table; only the requested one is computed."""
    if as_json:
        print_data(json_text(plain()) + "\n")
    else:
        output_console().print(pretty())


def json_text(plain: Any) -> str:
    """Return JSON in the format that all commands print."""
    return json.dumps(plain, indent=2, allow_nan=False)


def check_figures(path: Path | None, *inputs: str | Path) -> None:
    """Raise ``DataError`` or ``SettingError`` early if :func:`write_figures` could not write to the file."""
    if path is not None:
        check_file(path, *inputs, instead=" Use --json to print the results.")


def write_figures(plain: Any, path: Path | None, as_json: bool) -> None:
    """Write results as JSON to a file, if one is given, and to standard output if ``as_json``."""
    text = json_text(plain) + "\n"
    if path is not None:
        write_target(path, text)
    if as_json:
        print_data(text)


def is_stdout(path: Path) -> bool:
    """Return whether a path names standard output, which is appended to and never replaced."""
    return str(path) in STDOUT


def format_of(path: Path, *known: Name) -> Name:
    """Return the output format by the file's suffix; for standard output the first known format."""
    if is_stdout(path):
        return known[0]
    for name in known:
        if path.suffix == f".{name}":
            return name
    names = ", ".join(f".{name}" for name in known[:-1])
    raise SettingError(f"the file name must end in {names} or .{known[-1]}, or --format must name the format.", path)


def check_target(path: Path, *inputs: str | Path) -> None:
    """Raise ``DataError`` early if the file cannot be written or is one of the inputs."""
    if not is_stdout(path):
        _check_place(path)
    for one in inputs:
        if _same_file(path, one):
            known = "standard input" if str(one) == STDIN else str(one)
            raise DataError(
                f"this is the same file as {known}, which would be overwritten. Write to another file.", path
            )


def check_file(path: Path, *inputs: str | Path, instead: str = "") -> None:
    """Check as :func:`check_target` does, and raise ``SettingError`` for standard output.

    ``instead`` is advice on what can be printed there.
    """
    if is_stdout(path):
        raise SettingError(f"this is standard output, but a file name is needed.{instead}", path)
    check_target(path, *inputs)


@contextmanager
def open_target(path: Path) -> Iterator[TextIO]:
    """Open standard output, or a file that is written completely or not at all."""
    if is_stdout(path):
        yield data_stream(sys.stdout)
        return
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        yield data_stream(file)


def write_target(path: Path, text: str) -> None:
    """Write a text to a file or to standard output."""
    with open_target(path) as file:
        file.write(text)


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise DataError("this is a folder, but a file name is needed.", path)
    try:
        if is_stream(path):
            return
    except OSError as error:
        raise DataError(f"{error.strerror}. A valid file name is needed.", path) from error
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        known = folder if path.is_symlink() else path.parent
        raise DataError(f"the folder {known} does not exist. Create it first.", path)
    if not os.access(folder, os.W_OK):
        raise DataError(f"no permission to write to the folder {path.parent}.", path)
    if path.exists() and not os.access(path, os.W_OK):
        raise DataError("no permission to write to this file. Write to another file, or change its permissions.", path)


def _same_file(target: Path, source: str | Path) -> bool:
    """Compare the files themselves, not their names; terminals and pipes may be both input and output."""
    try:
        written = os.fstat(sys.stdout.fileno()) if is_stdout(target) else target.stat()
        read = os.fstat(sys.stdin.fileno()) if str(source) == STDIN else Path(source).stat()
    except (OSError, ValueError):  # missing, or not files of the operating system
        return False
    return stat.S_ISREG(written.st_mode) and os.path.samestat(written, read)
