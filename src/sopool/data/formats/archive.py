"""Text files in a folder or a zip, read in chunks and never unpacked to disk."""

import lzma
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, NamedTuple

from sopool.data.formats import limits
from sopool.errors import DataError

CHUNK = 2**20
"""Bytes per chunk: small enough for the parser's arrays to stay in the cache."""

# How many bytes to ask zipfile for at a time. It puts no bound on what comes of those that LZMA takes in (thousands of
# bytes from one), so that gets few. bzip2 is not accepted for the same reason: a kilobyte may become a gigabyte.
PIECES = {zipfile.ZIP_STORED: CHUNK, zipfile.ZIP_DEFLATED: CHUNK, zipfile.ZIP_LZMA: 4096}

# What zipfile lets through when the bytes it is given are not what they should be.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
    MemoryError,
)


class Text(NamedTuple):
    """One file: its name for error messages, and its bytes chunk by chunk."""

    where: str
    chunks: Iterator[bytes]


class TextFolder:
    """Files of a folder, by their paths in it. While one chunk is parsed, a thread reads the next."""

    def __init__(self, path: Path, names: list[str]) -> None:
        self.path = path
        self.names = names
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> "TextFolder":
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def where(self, name: str) -> str:
        """How error messages speak of a file."""
        return str(self.path / name)

    def text(self, name: str) -> Text:
        """The file of that name."""
        return Text(self.where(name), self._ahead(self._chunks(name)))

    def _chunks(self, name: str) -> Iterator[bytes]:
        with _damage(self.where(name)), (self.path / name).open("rb") as stream:
            yield from iter(lambda: stream.read(CHUNK), b"")

    def _ahead(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        coming = self._pool.submit(next, chunks, b"")
        while chunk := coming.result():
            coming = self._pool.submit(next, chunks, b"")
            yield chunk


class TextZip(TextFolder):
    """Members of a zip, after a look at what it declares: names that stay inside, a size within the limit."""

    def __init__(self, path: Path) -> None:
        with _damage(str(path)):
            self._zip = zipfile.ZipFile(path)
        members = [info for info in self._zip.infolist() if not info.filename.endswith("/")]
        super().__init__(path, [info.filename for info in members])
        self._unpacked = 0
        try:
            self._check(members)
        except DataError:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._zip.close()

    def where(self, name: str) -> str:
        """The zip and the member in it."""
        return f"{self.path}: {name}"

    def _check(self, members: list[zipfile.ZipInfo]) -> None:
        for name in self._zip.namelist():
            if not _stays_inside(name):
                raise DataError(f"the member {name!r} points outside the zip. Do not trust this file.", self.path)
        name, times = max(Counter(self.names).items(), key=itemgetter(1), default=("", 0))
        if times > 1:
            raise DataError(f"the zip holds {name!r} {times} times, expected once.", self.path)
        _check_total(sum(info.file_size for info in members), self.path)

    def _chunks(self, name: str) -> Iterator[bytes]:
        info = self._zip.getinfo(name)
        where = self.where(name)
        if info.compress_type not in PIECES:
            raise DataError(f"packed by method {info.compress_type}, expected deflate or LZMA.", where)
        size = 0
        with _damage(where), self._zip.open(info) as stream:
            while chunk := _join(stream, PIECES[info.compress_type]):
                size += len(chunk)
                self._unpacked += len(chunk)
                _check_total(self._unpacked, self.path)
                yield chunk
        if size != info.file_size:
            raise DataError(f"{size} bytes came out, {info.file_size} were declared: the zip is damaged.", where)


def open_source(path: str | Path) -> TextFolder:
    """The files of a folder (and of ``raw`` in it), or the members of a zip."""
    path = Path(path)
    if path.is_dir():
        with _damage(str(path)):
            files = [file for folder in (path, path / "raw") if folder.is_dir() for file in sorted(folder.iterdir())]
            return TextFolder(path, [file.relative_to(path).as_posix() for file in files if file.is_file()])
    return TextZip(_existing(path))


def open_text_source(path: str | Path) -> TextFolder:
    """A plain file as the only one of its folder, or the members of a zip."""
    path = _existing(Path(path))
    with _damage(str(path)), path.open("rb") as stream:
        packed = stream.read(2) == b"PK" or path.suffix.lower() == ".zip"
    return TextZip(path) if packed else TextFolder(path.parent, [path.name])


def not_hidden(names: list[str], suffix: str) -> list[str]:
    """The names that end so, without the hidden doubles that macOS puts into zips."""
    return [name for name in names if name.endswith(suffix) and not PurePosixPath(name).name.startswith(".")]


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise DataError("this is a folder, expected a file.", path)
    if not path.is_file():
        raise DataError("there is no such file or folder.", path)
    return path


def _join(stream: IO[bytes], piece: int) -> bytes:
    parts = []
    size = 0
    while size < CHUNK and (part := stream.read(min(piece, CHUNK))):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _stays_inside(name: str) -> bool:
    path = PureWindowsPath(name)  # splits at both kinds of slash, knows drives
    return not path.anchor and ".." not in path.parts


def _check_total(size: int, path: Path) -> None:
    if size > limits.MAX_UNPACKED:
        raise DataError(
            f"unpacks to {size:,} bytes or more, the limit is {limits.MAX_UNPACKED:,}. Unpack it and pass the folder.",
            path,
        )


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Turn what a damaged or unreadable file raises into the one error of this package."""
    try:
        yield
    except DataError:
        raise
    except DAMAGE as error:
        cause = str(error) or type(error).__name__
        raise DataError(f"cannot be read ({cause}): truncated, damaged or not of this kind.", where) from error
