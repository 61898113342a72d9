"""The only place that writes to a terminal: whatever is printed here cannot drive it.

Tables and messages are shown with control characters written out, also to a pipe, and never read as Rich's markup.
Data (CSV, JSON) stays exact in files and pipes, and is shown in the same way only where it goes to a terminal.
"""

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from sopool._runtime.visible import on_one_line, visible

WIDE = 160


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


def out(stderr: bool = False) -> SafeConsole:
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


def tell(line: str) -> None:
    """Write a line of progress to the error stream."""
    print(on_one_line(line), file=sys.stderr, flush=True)
