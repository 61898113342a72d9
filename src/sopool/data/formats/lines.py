"""Read numbered lines of text files, plain or compressed with gzip."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from sopool.data.formats import limits
from sopool.errors import DataError

SHOWN = 200
"""The number of characters that are kept of a line that is too long."""
PIECE = 2**16
"""The number of bytes of such a line that are read and dropped at a time."""
ADVICE = "Look for missing line ends. Graphs this large can be read from TU files or from a .graphs file."


class TextLine(NamedTuple):
    """A line of a text file, or the beginning of one that is too long."""

    number: int
    """The line number, from 1."""
    text: str
    problem: str = ""
    """The reason why the line cannot be used, or an empty string."""
    quotes: int = 0
    """The number of quotation marks of a line that is too long; if odd, a CSV cell is left open."""

    @property
    def blank(self) -> bool:
        """Whether the line is blank."""
        return not (self.problem or self.text.strip())


class LineSource(Protocol):
    """A binary or text file."""

    def readline(self, size: int, /) -> str | bytes:
        """Return the next line, at most ``size`` bytes or characters of it, or an empty result at the end."""


def stem_of(path: str | Path) -> str:
    """Return a file name without its suffix, or without both suffixes of a compressed file such as ``mine.csv.gz``."""
    path = Path(path)
    return (path.with_suffix("") if is_packed(path) else path).stem


def is_packed(path: Path) -> bool:
    """Return whether the file name ends in ``.gz``."""
    return path.suffix.lower() == ".gz"


def read_lines(path: str | Path, errors: str = "strict") -> Iterator[TextLine]:
    """Read the lines of a UTF-8 file, uncompressed if its name ends in ``.gz``.

    ``errors`` is that of ``bytes.decode``; use "replace" for formats with free text that does not matter.
    """
    try:
        with Path(path).open("rb") as file:
            if is_packed(Path(path)):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield from number_lines(_Unpacked(unpacked, path), path, errors)
            else:
                yield from number_lines(file, path, errors)
    except FileNotFoundError as error:
        raise DataError("there is no such file.", path) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"truncated, damaged or not a gzip file ({error}). Compress it again, or give it uncompressed.", path
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error}).", path) from error


def number_lines(file: LineSource, path: str | Path, errors: str = "strict") -> Iterator[TextLine]:
    """Yield the lines of an open file, numbered from 1, without a byte order mark.

    Only the beginning of a line longer than ``limits.MAX_LINE`` is kept, together with the problem; the rest is
    skipped.
    """
    number = 0
    try:
        while line := file.readline(limits.MAX_LINE + 1):
            number += 1
            if len(line) > limits.MAX_LINE:
                yield _too_long(line, file, number)
                continue
            text = line if isinstance(line, str) else _decode(line, path, number, errors)
            yield TextLine(number, text.removeprefix("\ufeff") if number == 1 else text)
    except UnicodeDecodeError as error:  # from a text stream, which decodes ahead of the current line
        raise DataError("not UTF-8 text. Save it as UTF-8.", path) from error


def not_blank(lines: Iterator[TextLine]) -> TextLine | None:
    """Return the first non-blank line, or None; blank lines before it are dropped."""
    return next((line for line in lines if not line.blank), None)


def too_long(what: str, advice: str) -> str:
    """Return the message for a line or record that is too long."""
    return f"The {what} is longer than {limits.MAX_LINE:,} bytes, which is the limit. {advice}"


def _too_long(line: str | bytes, file: LineSource, number: int) -> TextLine:
    start = line[:SHOWN]
    quotes = 0
    while True:
        quotes += line.count('"') if isinstance(line, str) else line.count(b'"')
        if not line or _is_ended(line):
            break
        line = file.readline(PIECE)
    text = start if isinstance(start, str) else start.decode("utf-8", "replace")
    return TextLine(number, text, too_long("line", ADVICE), quotes)


def _is_ended(line: str | bytes) -> bool:
    return line.endswith("\n") if isinstance(line, str) else line.endswith(b"\n")


def _decode(line: bytes, path: str | Path, number: int, errors: str) -> str:
    try:
        return line.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text ({error.reason}). Save it as UTF-8.", path, number) from error


class _Unpacked:
    """An uncompressed gzip file that raises an error beyond ``limits.MAX_UNPACKED`` bytes."""

    def __init__(self, file: gzip.GzipFile, path: str | Path) -> None:
        self.file = file
        self.path = path
        self.left = limits.MAX_UNPACKED

    def readline(self, size: int, /) -> bytes:
        line = self.file.readline(min(size, self.left + 1))
        self.left -= len(line)
        if self.left < 0:
            message = f"unpacks to more than {limits.MAX_UNPACKED:,} bytes, which is the limit. Unpack it first."
            raise DataError(message, self.path)
        return line
