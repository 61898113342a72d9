"""Was it memory that ran out, and what helps?"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from sopool.errors import ResourceError

UNTYPED = re.compile("can't allocate memory|Storage size calculation overflowed")
"""What PyTorch says on a CPU, where the error has no type of its own."""
ASKED = re.compile(r"allocate ([0-9.]+ \w+)")


def shortage(error: BaseException | None) -> str | None:
    """What was asked for in vain, in words; None where something else went wrong.

    At first, that is: an error in a capture brings another one when the capture is ended.
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
    """Make a ``ResourceError`` of a lack of memory in the block, which says what it was for and what helps there."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        short = shortage(error)
        if short is None:
            raise
        raise ResourceError(f"there is not enough memory {doing}: {short}. {advice()}") from error


def oversized(sizes: Tensor, batch: int) -> str:
    """Return what to do about a graph that is larger than a batch of the others; empty where there is none.

    ``sizes`` are the numbers of nodes of all graphs. Where one of them fills the memory, smaller models do not help.
    """
    largest = int(sizes.argmax())
    nodes = int(sizes[largest])
    others = int(sizes.sum()) - nodes
    if nodes * max(1, len(sizes) - 1) <= batch * others:
        return ""
    return f"Graph {largest} has {nodes:,} nodes, more than a batch of {batch} others has together: leave it out."
