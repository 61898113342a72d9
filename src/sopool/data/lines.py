"""Lines of text files, plain or packed with gzip, numbered for error messages."""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from sopool.data.archive import MAX_UNPACKED
from sopool.data.errors import DataError

WITHOUT_COLUMNS = ("", ".zip", ".txt", ".jsonl", ".graphs", ".sdf")
"""Names of data sets, folders, and files; those of SDF files have properties instead."""


def kind_of(path: Path) -> str:
    """The last suffix of a name, in small letters; the last two of one that is packed, such as ``.csv.gz``."""
    return "".join(path.suffixes[-2 if is_packed(path) else -1 :]).lower()


def check_columns(source: str | Path, smiles_column: str | None, label_column: str | None) -> None:
    """Raise a ``DataError`` for a column that was named of a source which has none: it would count for nothing."""
    kind = kind_of(Path(source)).removesuffix(".gz")
    given = {"smiles_column": smiles_column, "label_column": None if kind == ".sdf" else label_column}
    for option, name in given.items():
        if name is not None and kind in WITHOUT_COLUMNS:
            raise DataError(
                f"there are no columns here, so none can be {name!r} ({option}). Leave that out; or, if this is a "
                "table of molecules, call it .csv.",
                source,
            )


def is_packed(path: Path) -> bool:
    """Whether the name says so: it ends in ``.gz``."""
    return path.suffix.lower() == ".gz"


def read_lines(path: str | Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, unpacked if its name ends in ``.gz``, with their numbers from 1.

    ``errors`` is that of ``bytes.decode``: "replace" for formats whose text is free and does not matter.
    """
    try:
        with Path(path).open("rb") as file:
            if is_packed(Path(path)):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield from number_lines(_limited(unpacked, path), path, errors)
            else:
                yield from number_lines(file, path, errors)
    except FileNotFoundError as error:
        raise DataError("there is no such file.", path) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"not a whole gzip file ({error}). Pack it again, or give it unpacked.", path) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error}).", path) from error


def number_lines(lines: Iterable[str | bytes], path: str | Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Lines as text, with their numbers from 1; a byte order mark is dropped."""
    try:
        for number, line in enumerate(lines, 1):
            text = line if isinstance(line, str) else _decode(line, path, number, errors)
            yield number, text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:  # of a text stream, which decodes ahead of the line it hands out
        raise DataError("not UTF-8 text. Save it as UTF-8.", path) from error


def _decode(line: bytes, path: str | Path, number: int, errors: str) -> str:
    try:
        return line.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text ({error.reason}). Save it as UTF-8.", path, number) from error


def _limited(file: io.BufferedIOBase, path: str | Path) -> Iterator[bytes]:
    left = MAX_UNPACKED
    while line := file.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise DataError(f"unpacks to more than {MAX_UNPACKED:,} bytes. Unpack it first if it is to be read.", path)
        yield line
