"""Group segments by size for batched matrix products, in chunks that fit into the cache.

The size class of a segment depends on its own size only, so its result does not depend on the rest of the batch. Only
small batches outside a bank are padded to their largest segment instead, which takes fewer operations.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.index import ptr2index

# Values per chunk: 4 MB of float32 stay in the cache of a CPU, while a GPU needs few, large launches.
CHUNK = {"cpu": 1 << 20, "cuda": 1 << 26}
# Values in padded rows up to which a batch on a CPU is small: there, calls take longer than padded rows.
SMALL = 1 << 19
# A segment with at least this many values is multiplied in place: gathering it would cost more than a separate call.
LARGE = {"cpu": 1 << 14, "cuda": 1 << 22}
# So is a segment whose matrix has at least this many values.
WIDE = {"cpu": 1 << 13, "cuda": 1 << 22}


class SizeClassChunk(NamedTuple):
    """Segments of some size classes: ``groups`` has (rows per segment, number of segments), ordered as ``segments``.

    A segment that is smaller than its class repeats its last row; ``pads`` has the positions of the repeated rows.
    """

    groups: list[tuple[int, int]]
    segments: Tensor
    rows: Tensor
    pads: Tensor

    def split_rows(self, rows: Tensor) -> list[Tensor]:
        """Split gathered rows ``[sum of n * k, F]`` into one tensor ``[k, n, F]`` for each group (n, k)."""
        parts = rows.split([n * k for n, k in self.groups])
        return [part.view(k, n, rows.shape[1]) for part, (n, k) in zip(parts, self.groups, strict=True)]

    def split_segments(self, values: Tensor) -> tuple[Tensor, ...]:
        """Split gathered segment values ``[sum of k, ...]`` into one tensor ``[k, ...]`` for each group (n, k)."""
        parts: tuple[Tensor, ...] = values.split([k for _, k in self.groups])
        return parts


class SizeClasses(NamedTuple):
    """Small segments in chunks, and large segments as (segment, first row, last row + 1)."""

    segments: int
    chunks: list[SizeClassChunk]
    large: list[tuple[int, int, int]]

    def most(self) -> tuple[int, int]:
        """Return the largest number of rows and the largest number of segments of any chunk."""
        rows = max((chunk.rows.numel() for chunk in self.chunks), default=0)
        return rows, max((chunk.segments.numel() for chunk in self.chunks), default=0)


class Padding(NamedTuple):
    """All segments padded to the largest one, of ``longest`` rows; row i is at ``places[i]`` of all padded rows."""

    segments: int
    longest: int
    places: Tensor

    def pad(self, rows: Tensor) -> Tensor:
        """Copy rows ``[N, F]`` to ``[G, longest, F]``, zero where there is no row."""
        padded = rows.new_zeros(self.segments * self.longest, rows.shape[1])
        return padded.index_copy_(0, self.places, rows).view(self.segments, self.longest, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """Return the rows ``[N, F]`` of ``[G, longest, F]``."""
        return padded.flatten(0, 1).index_select(0, self.places)


class Plan:
    """What operators on the same segments share, such as a forward and its backward pass.

    Args:
        may_pad: Whether a small batch may be padded to its largest segment. It is faster, but the result of a segment
            then depends on the other segments, by rounding errors.
    """

    def __init__(self, may_pad: bool = False) -> None:
        self.checked = False
        """Whether the values of ``ptr`` were checked."""
        self.may_pad = may_pad
        self._groups: dict[tuple[int, int], SizeClasses] = {}
        self._padding: Padding | None = None
        self._segments: Tensor | None = None

    def group_by_size(self, ptr: Tensor, row_width: int, segment_width: int) -> SizeClasses:
        """Return the groups of :func:`group_by_size`, which are computed once."""
        key = (row_width, segment_width)
        if key not in self._groups:
            self._groups[key] = group_by_size(ptr, *key)
        return self._groups[key]

    def segment_of_rows(self, ptr: Tensor, num_rows: int, order: Tensor | None = None) -> Tensor:
        """Return the result of :func:`segment_of_rows`, always for the same ``order``; if small, it is kept."""
        segments = segment_of_rows(ptr, num_rows, order) if self._segments is None else self._segments
        self._segments = segments if num_rows <= SMALL else None
        return segments

    def padding(self, ptr: Tensor, row_width: int) -> Padding | None:
        """Return how to pad to the largest segment; None if it is not allowed, or if much would be wasted."""
        if self._padding is None and self.may_pad and ptr.device.type == "cpu":
            self._padding = _pad_to_largest(ptr.numpy())
        if self._padding is None:
            return None
        values = self._padding.segments * self._padding.longest * row_width
        return self._padding if values <= SMALL else None


def _pad_to_largest(bounds: np.ndarray) -> Padding | None:
    """Return the padding, or None if it would more than double the rows."""
    sizes = bounds[1:] - bounds[:-1]
    rows = int(bounds[-1])
    longest = int(sizes.max()) if rows else 0
    if len(sizes) * longest > 2 * rows or not rows:
        return None
    shift = np.arange(0, len(sizes) * longest, longest) - bounds[:-1]
    return Padding(len(sizes), longest, torch.from_numpy(np.arange(rows) + np.repeat(shift, sizes)))


_apart = threading.local()


@contextmanager
def graphs_apart() -> Iterator[None]:
    """Compute each graph in this thread as if it were alone, so that batches of several models give equal results."""
    before = getattr(_apart, "active", False)
    _apart.active = True
    try:
        yield
    finally:
        _apart.active = before


def may_pad() -> bool:
    """Return whether the results of graphs may depend on the rest of the batch, by rounding errors."""
    return not getattr(_apart, "active", False)


def group_by_size(ptr: Tensor, row_width: int, segment_width: int) -> SizeClasses:
    """Group the segments; each row occupies ``row_width`` values and each segment ``segment_width`` values."""
    device = ptr.device
    bounds = ptr.cpu().numpy()  # the sizes determine the launches, so the host needs them
    starts = bounds[:-1]
    sizes = bounds[1:] - bounds[:-1]
    classes = size_classes(sizes)
    order = np.argsort(classes, kind="stable")
    small = 0
    if segment_width < WIDE.get(device.type, WIDE["cpu"]):
        small = int(np.searchsorted(classes[order] * row_width, LARGE.get(device.type, LARGE["cpu"])))
    large = [(int(g), int(bounds[g]), int(bounds[g + 1])) for g in order[small:]]
    counts = np.bincount(classes[order[:small]])
    groups = [(n, int(counts[n])) for n in np.flatnonzero(counts).tolist()]
    chunks = []
    done = 0
    for taken in _cut(groups, _limit(device), row_width, segment_width):
        here = order[done : done + sum(k for _, k in taken)]
        arrays = (here, *_rows(starts[here], sizes[here], classes[here]))
        chunks.append(SizeClassChunk(taken, *(torch.from_numpy(array).to(device) for array in arrays)))
        done += len(here)
    return SizeClasses(len(sizes), chunks, large)


def size_classes(sizes: np.ndarray) -> np.ndarray:
    """Round sizes up to four steps per power of two, which gives few classes and about 10% more rows on average."""
    step = 1 << np.maximum(np.frexp(sizes)[1] - 3, 0)
    classes: np.ndarray = -(-sizes // step) * step
    return classes


def segment_of_rows(ptr: Tensor, num_rows: int, order: Tensor | None = None) -> Tensor:
    """Return the segment of each row ``[N]``, for rows that the permutation ``order`` sorts by segment."""
    if ptr.device.type == "cpu":
        bounds = ptr.numpy()
        segments = torch.from_numpy(np.repeat(np.arange(len(bounds) - 1), bounds[1:] - bounds[:-1]))
    else:
        segments = ptr2index(ptr, output_size=num_rows)
    return segments if order is None else torch.empty_like(segments).index_copy_(0, order, segments)


def blocks(start: int, end: int, device: torch.device, row_width: int) -> Iterator[slice]:
    """Yield slices of the rows from ``start`` to ``end`` that fit into the cache."""
    step = max(1, _limit(device) // max(1, row_width))
    for at in range(start, end, step):
        yield slice(at, min(at + step, end))


def _cut(
    groups: list[tuple[int, int]], limit: int, row_width: int, segment_width: int
) -> Iterator[list[tuple[int, int]]]:
    """Split (size, count) pairs into lists of at most ``limit`` values each, dividing counts where necessary."""
    taken: list[tuple[int, int]] = []
    cost = 0
    for n, count in groups:
        each = n * row_width + segment_width
        while count:
            k = min(count, max(1, (limit - cost) // max(1, each)))
            taken.append((n, k))
            count = count - k
            cost = cost + k * each
            if cost + each > limit:
                yield taken
                taken = []
                cost = 0
    if taken:
        yield taken


def _rows(starts: np.ndarray, sizes: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of all segments, each padded to its size class, and the positions of the padding."""
    first = np.cumsum(classes) - classes
    offset = np.arange(classes.sum()) - np.repeat(first, classes)
    last = np.repeat(sizes - 1, classes)
    return np.repeat(starts, classes) + np.minimum(offset, last), np.flatnonzero(offset > last)


def _limit(device: torch.device) -> int:
    return CHUNK.get(device.type, CHUNK["cpu"])
