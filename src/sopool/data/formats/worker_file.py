"""Share graphs with worker processes through one open file, of which no copy remains when the processes end."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import reduction
from pathlib import Path
from typing import Any, BinaryIO

from sopool._files.atomic import blaming
from sopool.data.formats.packed import load_graphs, open_file, renamed, save_graphs, write_graphs
from sopool.data.graphs import PackedGraphs

DESCRIPTORS = Path("/dev/fd")
"""The folder of the open files of a process, on Linux and macOS."""


class GraphsFile:
    """A file of graphs that can be passed to worker processes when they are started."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    def load(self) -> PackedGraphs:
        """Map the graphs into memory, without checks, because they were checked when the file was made."""
        return renamed(load_graphs(self.path, check=False), self.name)


class OpenGraphsFile(GraphsFile):
    """A file identified by its descriptor, because it may have no name or be replaced."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(DESCRIPTORS / str(descriptor), name)
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.descriptor), self.name)


def _received(descriptor: Any, name: str) -> OpenGraphsFile:
    return OpenGraphsFile(descriptor.detach(), name)


@contextmanager
def graphs_file(store: PackedGraphs) -> Iterator[GraphsFile]:
    """Yield a file from which worker processes can read the graphs during the block.

    It is the file that the store was read from, if there is one. Otherwise it is a temporary file without a name, which
    the system deletes with the last process that has it open. Where descriptors cannot be passed on, as on Windows, it
    is a file in a temporary folder, which remains if this process is killed.
    """
    if not DESCRIPTORS.is_dir():
        with tempfile.TemporaryDirectory(prefix="sopool-") as folder:
            path = Path(folder) / "store.graphs"
            save_graphs(store, path)
            yield GraphsFile(path, store.name)
        return
    with open_file(store) or _nameless(store) as file:
        yield OpenGraphsFile(file.fileno(), store.name)


def _nameless(store: PackedGraphs) -> BinaryIO:
    file = tempfile.TemporaryFile(prefix="sopool-")  # noqa: SIM115 (the caller closes it)
    try:
        with blaming(Path(tempfile.gettempdir())):
            write_graphs(store, file)
            file.flush()
    except BaseException:
        file.close()
        raise
    return file
