"""Read the text files of a folder or a zip in chunks, without unpacking to disk."""

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
"""The number of bytes per chunk, small enough for the parser's arrays to stay in the CPU cache."""

# The number of bytes to request from zipfile at a time. zipfile does not limit the output of LZMA, which may expand one
# byte to thousands, so LZMA gets few. bzip2 is not accepted, because a kilobyte may expand to a gigabyte.
PIECES = {zipfile.ZIP_STORED: CHUNK, zipfile.ZIP_DEFLATED: CHUNK, zipfile.ZIP_LZMA: 4096}

# The exceptions that zipfile raises for damaged files.
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
    """A text file: its name for error messages, and its content in chunks."""

    where: str
    chunks: Iterator[bytes]


class TextFolder:
    """The text files of a folder; a thread reads the next chunk while the current one is parsed."""

    def __init__(self, path: Path, names: list[str]) -> None:
        self.path = path
        self.names = names
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> "TextFolder":
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def where(self, name: str) -> str:
        """Return the name of a file for error messages."""
        return str(self.path / name)

    def text(self, name: str) -> Text:
        """Return the file with that name."""
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
    """The members of a zip; their names and declared sizes are checked first."""

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
        """Return the zip and its member for error messages."""
        return f"{self.path}: {name}"

    def _check(self, members: list[zipfile.ZipInfo]) -> None:
        for name in self._zip.namelist():
            if not _stays_inside(name):
                raise DataError(
                    f"the member {name!r} points outside the zip, so this file cannot be trusted.", self.path
                )
        name, times = max(Counter(self.names).items(), key=itemgetter(1), default=("", 0))
        if times > 1:
            raise DataError(f"the zip holds {name!r} {times} times, expected once.", self.path)
        _check_total(sum(info.file_size for info in members), self.path)

    def _chunks(self, name: str) -> Iterator[bytes]:
        info = self._zip.getinfo(name)
        where = self.where(name)
        if info.compress_type not in PIECES:
            raise DataError(f"compressed by method {info.compress_type}, expected deflate or LZMA.", where)
        size = 0
        with _damage(where), self._zip.open(info) as stream:
            while chunk := _join(stream, PIECES[info.compress_type]):
                size += len(chunk)
                self._unpacked += len(chunk)
                _check_total(self._unpacked, self.path)
                yield chunk
        if size != info.file_size:
            raise DataError(f"has {size} bytes, but {info.file_size} were declared: the zip is damaged.", where)


def open_source(path: str | Path) -> TextFolder:
    """Open the files of a folder, including those in its subfolder ``raw``, or the members of a zip."""
    path = Path(path)
    if path.is_dir():
        with _damage(str(path)):
            files = [file for folder in (path, path / "raw") if folder.is_dir() for file in sorted(folder.iterdir())]
            return TextFolder(path, [file.relative_to(path).as_posix() for file in files if file.is_file()])
    return TextZip(_existing(path))


def open_text_source(path: str | Path) -> TextFolder:
    """Open a single text file, or the members of a zip."""
    path = _existing(Path(path))
    with _damage(str(path)), path.open("rb") as stream:
        packed = stream.read(2) == b"PK" or path.suffix.lower() == ".zip"
    return TextZip(path) if packed else TextFolder(path.parent, [path.name])


def not_hidden(names: list[str], suffix: str) -> list[str]:
    """Return the names that end in ``suffix``, without the hidden copies that macOS adds to zips."""
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
    path = PureWindowsPath(name)  # splits at both kinds of slashes and recognizes drives
    return not path.anchor and ".." not in path.parts


def _check_total(size: int, path: Path) -> None:
    if size > limits.MAX_UNPACKED:
        raise DataError(
            f"unpacks to {size:,} bytes or more, the limit is {limits.MAX_UNPACKED:,}. Unpack it and give the folder.",
            path,
        )


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Convert the exceptions that a damaged or unreadable file causes to a ``DataError``."""
    try:
        yield
    except DataError:
        raise
    except DAMAGE as error:
        cause = str(error) or type(error).__name__
        raise DataError(f"cannot be read ({cause}): truncated, damaged or of another file type.", where) from error
