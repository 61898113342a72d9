"""Read the text format of GIN (Xu et al., 2019), which has a line with the neighbors of each node."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sopool.data.formats.archive import Text, not_hidden, open_text_source
from sopool.data.formats.numbers import DIGITS, INT64, Block, Floats, Ints, label_codes, line_blocks, shown
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError

Bools = NDArray[np.bool_]
Reals = NDArray[np.float64]

IS_BLANK = np.isin(np.arange(256), list(b" \t\n\r\v\f"))


def read_gin(path: str | Path, name: str | None = None) -> PackedGraphs:
    """Read the graphs of a text file in GIN's format, or of a zip with one such file.

    The first line is the number of graphs. Each graph is a line ``nodes label`` followed by a line ``tag degree
    neighbor ... attribute ...`` for each node, with ``degree`` neighbors numbered from 0 and any number of attributes,
    the same for all nodes. The line of node i gives the edges from i to its neighbors, in that order. Tags become node
    labels.

    Args:
        path: The text file or zip.
        name: The name of the data set. Default: None, the file's name.
    """
    with open_text_source(path) as source:
        files = source.names if len(source.names) == 1 else not_hidden(source.names, ".txt")
        if len(files) != 1:
            raise DataError(f"{len(files)} text files, expected one: {', '.join(files[:5])}.", source.path)
        words = _Words(source.text(files[0]))
    return _packed(words, name or PurePosixPath(files[0]).stem)


def _packed(words: "_Words", name: str) -> PackedGraphs:
    headers, sizes = _headers(words)
    is_node = np.ones(len(words.counts), bool)
    is_node[0] = is_node[headers] = False
    nodes = np.flatnonzero(is_node)
    node_ptr = np.concatenate([[0], sizes.cumsum()])
    degrees, width = _degrees(words, nodes)
    first = np.concatenate([[0], degrees.cumsum()])
    labels, classes = label_codes(words.column(headers, 1))
    tags, tag_names = label_codes(words.column(nodes, 0))
    extra = (words.starts[nodes] + 2 + degrees)[:, None] + np.arange(width)
    attributes = _attributes(words, nodes, extra)
    targets = _neighbours(words, headers, nodes, extra)
    _check_neighbours(words, targets, first, nodes, np.repeat(sizes, sizes))
    local = np.arange(len(nodes)) - np.repeat(node_ptr[:-1], sizes)
    sources = np.repeat(local.astype(np.int32), degrees)
    return PackedGraphs(
        node_ptr=torch.from_numpy(node_ptr),
        edge_ptr=torch.from_numpy(first[node_ptr]),
        edge_index=torch.from_numpy(np.stack([sources, targets.astype(np.int32)])),
        labels=labels,
        classes=classes,
        node_labels=tags.int(),
        node_label_names=tag_names,
        node_attributes=None if attributes is None else torch.from_numpy(attributes),
        name=name,
    )


class _Words:
    """All words of a file in one array; lines and words are numbered from 0."""

    def __init__(self, text: Text) -> None:
        self.where = text.where
        parts = [_parse(block, text.where) for block in line_blocks(text)]
        self.counts: Ints = np.concatenate([part.counts for part in parts])
        self.starts: Ints = np.concatenate([[0], self.counts.cumsum()[:-1]])
        self.check(self.counts > 0, np.arange(len(self.counts)), lambda _: "a blank line, expected numbers")
        self.integers: Ints = np.concatenate([part.integers for part in parts])
        self.whole: Bools | None = None
        self.reals: Reals | None = None
        if any(part.reals is not None for part in parts):
            self.whole = np.concatenate([_or(part.whole, np.ones(len(part.integers), bool)) for part in parts])
            self.reals = np.concatenate([_or(part.reals, part.integers.astype(np.float64)) for part in parts])

    def take(self, which: Ints) -> Ints:
        """Return the values of some words, which must be integers."""
        if self.whole is not None and self.reals is not None:
            wrong = which[~self.whole[which]]
            if wrong.size:
                line = int(np.searchsorted(self.starts, wrong[0], side="right")) - 1
                raise self.error(line, f"found {self.reals[wrong[0]]:g}, expected a 64-bit integer")
        return self.integers[which]

    def column(self, lines: Ints, place: int) -> Ints:
        """Return one word of each of some lines, which must be integers."""
        return self.take(self.starts[lines] + place)

    def error(self, line: int, message: str) -> DataError:
        return DataError(f"{message}.", self.where, line + 1)

    def check(self, good: Bools, lines: Ints, message: Callable[[int], str]) -> None:
        """Raise an error for the first line that is not good; ``message`` gets its position in ``lines``."""
        if not good.all():
            at = int(np.argmin(good))
            raise self.error(int(lines[at]), message(at))


class _Part(NamedTuple):
    """The words of one block."""

    counts: Ints
    """The number of words of each line."""
    integers: Ints
    """The value of each word, or 0 if it is not a 64-bit integer."""
    whole: Bools | None = None
    """Which words are integers; None if all are."""
    reals: Reals | None = None
    """The value of each word; None if all are integers."""


def _parse(block: Block, where: str) -> _Part:
    blank = IS_BLANK[np.frombuffer(block.text, np.uint8)]
    begins = ~blank
    begins[1:] &= blank[:-1]
    ends = np.flatnonzero(np.frombuffer(block.text, np.uint8) == ord("\n"))
    counts: Ints = np.add.reduceat(begins, np.concatenate([[0], ends[:-1] + 1]), dtype=np.int64)
    if not block.text.translate(None, DIGITS + b" \n"):
        integers: Ints = np.fromstring(block.text, np.int64, sep=" ")
        if integers.max() < INT64.max:  # where NumPy's parser stops
            return _Part(counts, integers)
    words = block.text.split()
    try:
        reals = np.fromiter(map(float, words), np.float64, len(words))
    except ValueError:
        reals = None
    if reals is None or b"_" in block.text:
        raise _bad_word(block, where)
    values = [_integer(word) for word in words]
    whole = np.fromiter((value is not None for value in values), bool, len(values))
    return _Part(counts, np.fromiter((value or 0 for value in values), np.int64, len(values)), whole, reals)


def _integer(word: bytes) -> int | None:
    digits = word[1:] if word[:1] in (b"+", b"-") else word
    if len(digits) > 19 or not digits.isdigit() or not INT64.min <= int(word) <= INT64.max:
        return None
    return int(word)


def _bad_word(block: Block, where: str) -> DataError:
    for line, text in enumerate(block.text[:-1].split(b"\n"), block.first):
        for word in text.split():
            if not _is_number(word):
                return DataError(f"{shown(word)} is not a number.", where, line)
    return DataError("cannot be parsed as numbers.", where, block.first)


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value


def _headers(words: _Words) -> tuple[Ints, Ints]:
    """Return the first line and the number of nodes of each graph."""
    lines = len(words.counts)
    if words.counts[0] != 1:
        raise words.error(0, f"{words.counts[0]} words, expected only the number of graphs")
    graphs = int(words.take(np.array([0]))[0])
    if graphs < 1:
        raise words.error(0, f"{graphs} graphs, expected one or more")
    headers: list[int] = []
    sizes: list[int] = []
    line = 1
    while line < lines and len(headers) < graphs:
        if words.counts[line] != 2:
            raise words.error(line, f"{words.counts[line]} words, expected the number of nodes and the graph's label")
        nodes = int(words.column(np.array([line]), 0)[0])
        if not 0 <= nodes < lines - line:
            raise words.error(line, f"a graph of {nodes} nodes, but {lines - line - 1} lines follow")
        headers.append(line)
        sizes.append(nodes)
        line += nodes + 1
    if len(headers) < graphs:
        raise words.error(0, f"{graphs} graphs were announced, but the file ends after {len(headers)}")
    if line < lines:
        raise words.error(line, f"the first line announced {graphs} graphs, but the file continues after them")
    return np.array(headers, np.int64), np.array(sizes, np.int64)


def _degrees(words: _Words, nodes: Ints) -> tuple[Ints, int]:
    """Return the number of neighbors of each node, and the number of attributes, which is the same for all nodes."""
    after = words.counts[nodes] - 2
    words.check(after >= 0, nodes, lambda i: f"{after[i] + 2} words, expected a tag, a degree and neighbors")
    degrees = words.column(nodes, 1)
    good = (degrees >= 0) & (degrees <= after)
    words.check(good, nodes, lambda i: f"degree {degrees[i]}, but {after[i]} words follow it")
    spare = after - degrees
    width = int(spare[0]) if len(spare) else 0
    words.check(spare == width, nodes, lambda i: f"{spare[i]} words after the neighbors, but {width} at the first node")
    return degrees, width


def _attributes(words: _Words, nodes: Ints, which: Ints) -> Floats | None:
    """Return the values of the words ``which``, ``[N, F]``."""
    if not which.shape[1]:
        return None
    values = _or(words.reals, words.integers)[which]
    with np.errstate(over="ignore"):
        small: Floats = values.astype(np.float32)
    wrong = ~np.isfinite(small)
    words.check(
        ~np.any(wrong, axis=1), nodes, lambda i: f"attribute {values[i][wrong[i]][0]}, expected a finite float32"
    )
    return small


def _neighbours(words: _Words, headers: Ints, nodes: Ints, attributes: Ints) -> Ints:
    """Return the remaining words, which are not counts, labels, tags, degrees or attributes."""
    left = np.ones(len(words.integers), bool)
    left[0] = left[attributes] = False
    for starts in (words.starts[headers], words.starts[nodes]):
        left[starts] = left[starts + 1] = False
    return words.integers[left] if words.whole is None else words.take(np.flatnonzero(left))


def _check_neighbours(words: _Words, targets: Ints, first: Ints, nodes: Ints, sizes: Ints) -> None:
    """Raise an error if a neighbor is outside its graph, given each node's ``first`` edge and the size of its graph."""
    limits = np.repeat(sizes.astype(np.int32), first[1:] - first[:-1])
    wrong = (targets < 0) | (targets >= limits)
    if wrong.any():
        edge = int(np.argmax(wrong))
        node = int(np.searchsorted(first, edge, side="right")) - 1
        raise words.error(
            int(nodes[node]), f"neighbor {targets[edge]}, but the graph's nodes are 0 to {sizes[node] - 1}"
        )
