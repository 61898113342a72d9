"""What a fuzzing target is, and the list of them."""

import importlib
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sopool.errors import DataError


@dataclass(frozen=True)
class Target:
    """A function of bytes that returns or raises ``DataError``, and nothing else."""

    name: str
    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    """Inputs that are read without an error; those that are tried are made from them."""
    words: tuple[bytes, ...]
    """What the format gives a meaning to: it is put in here and there."""
    needs: str | None
    """A module without which there is nothing to test."""

    @property
    def missing(self) -> bool:
        """Whether that module is not installed."""
        return self.needs is not None and importlib.util.find_spec(self.needs) is None

    def run(self, data: bytes) -> DataError | None:
        """Read some bytes: the error that says what is wrong with them, None if nothing is."""
        try:
            self.read(data)
        except DataError as error:
            str(error).encode("utf-8", "backslashreplace")
            return error
        return None


MODULES = ("readers", "stored_files")
"""Where targets are."""
TARGETS: dict[str, Target] = {}


def target(*seeds: bytes, words: tuple[bytes, ...] = (), needs: str | None = None):
    """Make a function a target, under its own name."""

    def register(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
        name = read.__name__
        assert name not in TARGETS, f"there are two fuzzing targets called {name}"
        TARGETS[name] = Target(name, read, seeds, words, needs)
        return read

    return register


@contextmanager
def file_of(data: bytes, name: str) -> Iterator[Path]:
    """A file with this content, alone in a folder: whoever reads it must leave nothing beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            yield path
        finally:
            assert list(Path(folder).rglob("*")) == [path], "something was left beside the file"
            assert path.read_bytes() == data, "the file was changed"


def load_targets() -> dict[str, Target]:
    """All targets by their names."""
    for module in MODULES:
        importlib.import_module(f"tests.fuzz.{module}")
    return TARGETS
