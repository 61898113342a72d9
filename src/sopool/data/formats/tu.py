"""Read the text format of the TUDataset collection (Morris et al., 2020): a few files for all graphs together."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sopool.data.formats import limits
from sopool.data.formats.archive import Text, TextFolder, not_hidden, open_source
from sopool.data.formats.numbers import Ints, integer_blocks, label_codes, read_floats, read_integers, read_targets
from sopool.data.graphs import CATEGORIES, NAMED, PackedGraphs
from sopool.data.names import CategoryColumn, LabelNames, smallest_integers
from sopool.data.targets import default_names
from sopool.errors import DataError

Int32s = NDArray[np.int32]


def read_tu(path: str | Path, name: str | None = None) -> PackedGraphs:
    """Read the graphs of a TU data set from a folder (``path/NAME_A.txt`` or ``path/raw/NAME_A.txt``) or a zip.

    Graphs, nodes and edges keep the order of the files, and nothing is dropped: self-loops, repeated and one-way edges,
    and isolated nodes are kept. A graph number without nodes is an empty graph. Graph labels become classes, and graph
    attributes become targets; one of the two is needed. Of several columns of node or edge labels, the first is the
    label, and the others are categories with the names ``"label 1"``, ``"label 2"`` and so on.

    Args:
        path: The folder or zip.
        name: The name of the data set, needed only if there are several. Default: None.
    """
    with open_source(path) as source:
        return _Files(source, name).read()


class _Files:
    """The files of one data set, which are in one folder and share a prefix."""

    def __init__(self, source: TextFolder, name: str | None) -> None:
        self.source = source
        first = _choose(source, name)
        self.prefix = first.removesuffix("A.txt")
        self.name = PurePosixPath(first).name.removesuffix("_A.txt")

    def read(self) -> PackedGraphs:
        labels, classes = self.read_classes()
        targets, target_names = self.read_targets()
        graph_of, node_ptr = self.read_nodes({"labels": labels, "attributes": targets})
        nodes = len(graph_of)
        edges, edge_ptr, order = self.read_edges(graph_of, node_ptr)
        return PackedGraphs(
            node_ptr=torch.from_numpy(node_ptr),
            edge_ptr=torch.from_numpy(edge_ptr),
            edge_index=torch.from_numpy(edges),
            labels=labels,
            classes=classes,
            targets=targets,
            target_names=target_names,
            **self.read_labels("node_labels", nodes, None),
            node_attributes=self.read_attributes("node_attributes", nodes, None),
            **self.read_labels("edge_labels", edges.shape[1], order),
            edge_attributes=self.read_attributes("edge_attributes", edges.shape[1], order),
            name=self.name,
        )

    def file(self, kind: str) -> str:
        return f"{self.prefix}{kind}.txt"

    def has(self, kind: str) -> bool:
        return self.file(kind) in self.source.names

    def text(self, kind: str, other: str = "") -> Text:
        if not self.has(kind):
            where = self.source.where(self.file(kind))
            raise DataError(f"this file is missing, but the TU format needs it{other}.", where)
        return self.source.text(self.file(kind))

    def read_classes(self) -> tuple[Tensor | None, LabelNames]:
        if not self.has("graph_labels") and self.has("graph_attributes"):
            return None, ()
        attributes = PurePosixPath(self.file("graph_attributes")).name
        text = self.text("graph_labels", f" or {attributes}")
        advice = f" Numbers to predict are read from {attributes}."
        return label_codes(read_integers(text, "graph label", 1, advice)[:, 0])

    def read_targets(self) -> tuple[Tensor | None, tuple[str, ...]]:
        if not self.has("graph_attributes"):
            return None, ()
        text = self.text("graph_attributes")
        rows = read_targets(text, "graph attribute")
        try:
            return torch.from_numpy(rows), default_names(rows.shape[1])
        except DataError as error:
            raise DataError(str(error), text.where) from error

    def read_nodes(self, given: Mapping[str, Tensor | None]) -> tuple[Ints, Ints]:
        """Return the graph of each node, from 0, and the offset of each graph's first node.

        ``given`` are the labels and the attributes of the graphs.
        """
        text = self.text("graph_indicator")
        graph_of = read_integers(text, "graph number", 1)[:, 0]
        if graph_of[0] < 1:
            raise DataError(f"graph number {graph_of[0]}, expected numbers from 1.", text.where, 1)
        falls = np.flatnonzero(np.diff(graph_of) < 0)
        if falls.size:
            before, after = graph_of[falls[0] : falls[0] + 2]
            raise DataError(
                f"graph number {after} after {before}: nodes must be sorted by their graphs.",
                text.where,
                int(falls[0]) + 2,
            )
        graphs = int(graph_of[-1])
        for what, values in given.items():
            if values is not None and len(values) != graphs:
                raise DataError(
                    f"{len(values)} {what}, expected {graphs}: {Path(text.where).name} ends with graph {graphs}.",
                    self.source.where(self.file(f"graph_{what}")),
                )
        return graph_of - 1, np.searchsorted(graph_of, np.arange(1, graphs + 2))

    def read_edges(self, graph_of: Ints, node_ptr: Ints) -> tuple[Int32s, Ints, Ints | None]:
        """Return edges ``[2, E]`` numbered within graphs, their offsets, and the order of the file if it differs."""
        text = self.text("A")
        nodes = len(graph_of)
        # Node numbers start at 1, so entry 0 is not used.
        graph = np.concatenate([[-1], graph_of]).astype(np.int32)
        local = np.concatenate([[-1], np.arange(nodes) - node_ptr[graph_of]]).astype(np.int32)
        graphs: list[Int32s] = []
        pairs: list[Int32s] = []
        for line, ends in integer_blocks(text, "node number", 2):
            if ends.min() < 1 or ends.max() > nodes:
                _report(ends, (ends < 1) | (ends > nodes), text.where, line, f"nodes are numbered 1 to {nodes}")
            graph_of_ends = graph.take(ends)
            apart = graph_of_ends[:, 0] != graph_of_ends[:, 1]
            if apart.any():
                _report(ends, apart[:, None], text.where, line, "these nodes are in different graphs")
            graphs.append(graph_of_ends[:, 0].copy())
            pairs.append(local.take(ends))
        return _in_order(_joined(pairs), np.concatenate(graphs), len(node_ptr) - 1)

    def read_labels(self, kind: str, count: int, order: Ints | None) -> dict[str, Any]:
        """Return the fields of a store with labels of nodes or edges, and categories from more columns."""
        if not self.has(kind):
            return {}
        text = self.text(kind)
        rows = read_integers(text, kind[:-1].replace("_", " "))
        _check_count(len(rows), count, kind, text.where)
        if rows.shape[1] > limits.MAX_CATEGORIES:
            raise DataError(f"{rows.shape[1]:,} columns, expected at most {limits.MAX_CATEGORIES:,}.", text.where, 1)
        (labels, names), *others = (label_codes(column if order is None else column[order]) for column in rows.T)
        fields = {kind: labels.int(), NAMED[kind]: names}
        if others:
            columns = tuple(CategoryColumn(f"label {place}", values) for place, (_, values) in enumerate(others, 1))
            categories = kind.replace("labels", "categories")
            fields[categories] = smallest_integers(torch.stack([codes for codes, _ in others], 1), columns)
            fields[CATEGORIES[categories]] = columns
        return fields

    def read_attributes(self, kind: str, count: int, order: Ints | None) -> Tensor | None:
        if not self.has(kind):
            return None
        text = self.text(kind)
        rows = read_floats(text, kind[:-1].replace("_", " "))
        _check_count(len(rows), count, kind, text.where)
        return torch.from_numpy(rows if order is None else rows[order])


def _choose(source: TextFolder, name: str | None) -> str:
    """Return the file of edges, which determines the name of the data set."""
    found = [file for file in not_hidden(source.names, "_A.txt") if PurePosixPath(file).name != "_A.txt"]
    chosen = [file for file in found if name is None or PurePosixPath(file).name == f"{name}_A.txt"]
    if len(chosen) == 1:
        return chosen[0]
    if chosen and name is None:
        raise DataError(f"several data sets, {_list(chosen)}: give the name of one of them.", source.path)
    if chosen:
        raise DataError(f"several files named {name}_A.txt, {_list(chosen)}.", source.path)
    there = f"only {_list(found)}." if found else "so this is not a data set in the TU format."
    if not found and source.names:
        there += f" Found: {_list(sorted(source.names))}. To read a file of another type, give its path."
    raise DataError(f"there is no {name or 'NAME'}_A.txt, {there}", source.path)


def _list(files: list[str]) -> str:
    return ", ".join(files[:5]) + (", ..." if len(files) > 5 else "")


def _report(ends: Ints, wrong: NDArray[np.bool_], where: str, line: int, reason: str) -> None:
    row = int(np.flatnonzero(wrong.any(1))[0])
    raise DataError(f"the edge {ends[row, 0]}, {ends[row, 1]} is invalid: {reason}.", where, line + row)


def _joined(pairs: list[Int32s]) -> Int32s:
    """Concatenate blocks of pairs, ``[B, 2]`` each, to ``[2, E]``, and free each block to save memory."""
    edges: Int32s = np.empty((2, sum(map(len, pairs))), np.int32)
    end = edges.shape[1]
    while pairs:
        block = pairs.pop()
        edges[:, end - len(block) : end] = block.T
        end -= len(block)
    return edges


def _in_order(edges: Int32s, graph: Int32s, graphs: int) -> tuple[Int32s, Ints, Ints | None]:
    order = None
    if (graph[1:] < graph[:-1]).any():
        order = np.argsort(graph, kind="stable")
        edges = edges[:, order]
        graph = graph[order]
    return edges, np.searchsorted(graph, np.arange(graphs + 1, dtype=np.int32)), order


def _check_count(found: int, expected: int, kind: str, where: str) -> None:
    if found != expected:
        of = "edge" if kind.startswith("edge") else "node"
        raise DataError(f"{found} {kind.replace('_', ' ')}, expected {expected}: one line for each {of}.", where)
