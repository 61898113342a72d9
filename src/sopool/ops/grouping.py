"""Segments grouped for batched products: by size, a cache-full at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

# Values worked on at a time: 4 MB of float32 stay in a CPU's cache; a GPU wants few, large launches.
CHUNK = {"cpu": 1 << 20, "cuda": 1 << 26}
# From here on a segment is multiplied where it lies: gathering it would cost more than a call of its own.
LARGE = {"cpu": 1 << 14, "cuda": 1 << 22}


class Chunk(NamedTuple):
    """Segments of a few sizes: ``groups`` holds (rows per segment, number of segments) in the order of ``segments``."""

    groups: list[tuple[int, int]]
    segments: Tensor
    rows: Tensor

    def split_rows(self, rows: Tensor) -> list[Tensor]:
        """Gathered rows [sum n k, w] as one [k, n, w] per group."""
        parts = rows.split([n * k for n, k in self.groups])
        return [part.view(k, n, rows.shape[1]) for part, (n, k) in zip(parts, self.groups, strict=True)]

    def split_segments(self, values: Tensor) -> tuple[Tensor, ...]:
        """Gathered segment values [sum k, ...] as one [k, ...] per group."""
        parts: tuple[Tensor, ...] = values.split([k for _, k in self.groups])
        return parts


class Plan(NamedTuple):
    """Small segments in chunks, and large ones as (segment, first row, last row + 1)."""

    chunks: list[Chunk]
    large: list[tuple[int, int, int]]

    def most(self) -> tuple[int, int]:
        """The most rows and the most segments that any chunk has."""
        rows = max((chunk.rows.numel() for chunk in self.chunks), default=0)
        return rows, max((chunk.segments.numel() for chunk in self.chunks), default=0)


def plan(ptr: Tensor, row_width: int, segment_width: int) -> Plan:
    """Group the segments. ``row_width`` and ``segment_width``: the values that each row and each segment add."""
    sizes, order = ptr.diff().sort(stable=True)
    starts = ptr[:-1].index_select(0, order)
    distinct, counts = torch.unique_consecutive(sizes, return_counts=True)
    limit = LARGE.get(ptr.device.type, LARGE["cpu"])
    groups = [(n, k) for n, k in zip(distinct.tolist(), counts.tolist(), strict=True) if n * row_width < limit]
    small = sum(k for _, k in groups)
    positions = zip(order[small:].tolist(), starts[small:].tolist(), sizes[small:].tolist(), strict=True)
    large = [(segment, start, start + size) for segment, start, size in positions]
    chunks, done = [], 0
    for taken in _cut(groups, _limit(ptr.device), row_width, segment_width):
        here = slice(done, done + sum(k for _, k in taken))
        chunks.append(Chunk(taken, order[here], _rows(starts[here], sizes[here], sum(n * k for n, k in taken))))
        done = here.stop
    return Plan(chunks, large)


def blocks(start: int, end: int, device: torch.device, row_width: int) -> Iterator[slice]:
    """Rows ``start`` to ``end``, a cache-full at a time."""
    step = max(1, _limit(device) // max(1, row_width))
    for at in range(start, end, step):
        yield slice(at, min(at + step, end))


def _cut(
    groups: list[tuple[int, int]], limit: int, row_width: int, segment_width: int
) -> Iterator[list[tuple[int, int]]]:
    """(size, count) pairs in lists of at most ``limit`` values each, counts divided where they must be."""
    taken: list[tuple[int, int]] = []
    cost = 0
    for n, count in groups:
        each = n * row_width + segment_width
        while count:
            k = min(count, max(1, (limit - cost) // max(1, each)))
            taken.append((n, k))
            count, cost = count - k, cost + k * each
            if cost + each > limit:
                yield taken
                taken, cost = [], 0
    if taken:
        yield taken


def _rows(starts: Tensor, sizes: Tensor, total: int) -> Tensor:
    """The rows of segments, one segment after the other."""
    shift = starts - sizes.cumsum(0) + sizes  # where a segment's rows are, less where they will lie
    return shift.repeat_interleave(sizes, output_size=total).add_(torch.arange(total, device=starts.device))


def _limit(device: torch.device) -> int:
    return CHUNK.get(device.type, CHUNK["cpu"])
