"""Recognize errors caused by a lack of memory, and give advice."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from sopool.errors import ResourceError

UNTYPED = re.compile("can't allocate memory|Storage size calculation overflowed")
"""The messages of PyTorch on a CPU, where the error has no type of its own."""
ASKED = re.compile(r"allocate ([0-9.]+ \w+)")


def shortage(error: BaseException | None) -> str | None:
    """Return a description of a failed allocation, or None if the error has another cause.

    The chain of exceptions is followed, because an error in a CUDA graph capture causes another one when the capture
    ends.
    """
    if error is None:
        return None
    said = str(error)
    if not (isinstance(error, MemoryError | torch.OutOfMemoryError) or UNTYPED.search(said)):
        return shortage(error.__context__)
    asked = ASKED.search(said)
    return f"{asked[1]} were asked for at once" if asked else said.split(". ")[0] or "none is left"


@contextmanager
def advise(doing: str, advice: Callable[[], str]) -> Iterator[None]:
    """Convert a lack of memory in the block to a ``ResourceError`` that says what it was for and gives ``advice``."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        short = shortage(error)
        if short is None:
            raise
        raise ResourceError(f"there is not enough memory {doing}: {short}. {advice()}") from error


def oversized(sizes: Tensor, batch: int) -> str:
    """Return advice about a graph that is larger than a batch of the others, or an empty string.

    ``sizes`` are the numbers of nodes of all graphs. If one of them fills the memory, smaller models do not help.
    """
    largest = int(sizes.argmax())
    nodes = int(sizes[largest])
    others = int(sizes.sum()) - nodes
    if nodes * max(1, len(sizes) - 1) <= batch * others:
        return ""
    return f"Graph {largest} has {nodes:,} nodes, more than a batch of {batch} others has together: leave it out."
