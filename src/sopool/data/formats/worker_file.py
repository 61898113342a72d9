"""Graphs that worker processes read from one open file: whatever ends this process, no copy of them is left."""

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
"""Where a process finds the files that it has open, on Linux and macOS."""


class GraphsFile:
    """A file of graphs that can be sent to worker processes while they are started."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    def load(self) -> PackedGraphs:
        """Map the graphs into memory; whoever made the file has checked them."""
        return renamed(load_graphs(self.path, check=False), self.name)


class OpenGraphsFile(GraphsFile):
    """A file that is known by its descriptor: it may have no name, or another file may take its name meanwhile."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(DESCRIPTORS / str(descriptor), name)
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.descriptor), self.name)


def _received(descriptor: Any, name: str) -> OpenGraphsFile:
    return OpenGraphsFile(descriptor.detach(), name)


@contextmanager
def graphs_file(store: PackedGraphs) -> Iterator[GraphsFile]:
    """Yield a file that worker processes can read the graphs from, for the block.

    It is the file that the store itself was read from, if there is one; else one without a name, which the system
    deletes with the last process that has it open. Where files cannot be handed on in this way, as on Windows, it is
    in a temporary folder, which is left behind if this process is killed.
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
