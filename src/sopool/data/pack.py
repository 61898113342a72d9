"""Graphs given one by one, packed into a store."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs
from sopool.data.names import LabelNames, number_names, plain, refuse_fractions
from sopool.errors import DataError

Label = str | int


@dataclass
class Graph:
    """One graph before it is packed. Everything but the number of nodes may be left out."""

    num_nodes: int
    edges: Any = ()
    """(source, target) pairs [e, 2], numbered from 0; an undirected edge in both directions."""
    label: Label | None = None
    node_labels: Sequence[Label] | None = None
    node_attributes: Any = None
    """[n, d]."""
    edge_labels: Sequence[Label] | None = None
    edge_attributes: Any = None
    """[e, d]."""
    edge_weights: Any = None
    """[e]."""
    where: str = ""
    """How to speak of this graph in an error message, "graph 3" if left out."""


def pack(graphs: Iterable[Graph], name: str = "graphs") -> PackedGraphs:
    """Lay graphs end to end. What one graph has (labels, attributes, ...), all must have."""
    graphs = list(graphs)
    for i, graph in enumerate(graphs):
        graph.where = graph.where or f"graph {i}"
    edges = [_edges(graph) for graph in graphs]
    nodes_of = [graph.num_nodes for graph in graphs]
    edges_of = [len(some) for some in edges]
    labels, classes = _numbered(graphs, "label", None)
    node_labels, node_label_names = _numbered(graphs, "node_labels", nodes_of)
    edge_labels, edge_label_names = _numbered(graphs, "edge_labels", edges_of)
    weights = _stacked(graphs, "edge_weights", edges_of, dims=1)
    return PackedGraphs(
        node_ptr=_ptr(nodes_of),
        edge_ptr=_ptr(edges_of),
        edge_index=torch.from_numpy(np.concatenate([np.empty((0, 2), np.int32), *edges]).T.copy()),
        labels=labels,
        classes=classes,
        node_labels=None if node_labels is None else node_labels.int(),
        node_label_names=node_label_names,
        node_attributes=_stacked(graphs, "node_attributes", nodes_of, dims=2),
        edge_labels=None if edge_labels is None else edge_labels.int(),
        edge_label_names=edge_label_names,
        edge_attributes=_stacked(graphs, "edge_attributes", edges_of, dims=2),
        edge_weights=weights,
        name=name,
    )


def _ptr(counts: Sequence[int]) -> Tensor:
    return torch.tensor([0, *counts]).cumsum(0)


def _edges(graph: Graph) -> np.ndarray:
    """The edges as int32 [e, 2], each between two of the graph's nodes."""
    try:
        edges = np.asarray(graph.edges if len(graph.edges) else np.empty((0, 2)))
    except ValueError as error:
        raise DataError(f"{graph.where}: edges must be pairs of node numbers.") from error
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise DataError(f"{graph.where}: edges have shape {list(edges.shape)}, expected pairs of node numbers [e, 2].")
    if edges.size and edges.dtype.kind not in "iu":
        raise DataError(f"{graph.where}: edges must be pairs of whole numbers, found {edges.dtype}.")
    wrong = (edges < 0) | (edges >= graph.num_nodes)
    if wrong.any():
        pair = edges[wrong.any(1)][0].tolist()
        raise DataError(f"{graph.where}: the edge {pair} leaves the graph, whose nodes are 0 to {graph.num_nodes - 1}.")
    return edges.astype(np.int32)


def _values(graphs: list[Graph], field: str, counts: list[int] | None) -> list[Any] | None:
    """The field of every graph, None if no graph has it; a graph that needs no values may leave them out."""
    values = [getattr(graph, field) for graph in graphs]
    if all(value is None for value in values):
        return None
    if counts is not None:
        values = [[] if value is None and not count else value for value, count in zip(values, counts, strict=True)]
    missing = [graph.where for graph, value in zip(graphs, values, strict=True) if value is None]
    if missing:
        raise DataError(f"{missing[0]} has no {field}, but others have: all graphs or none.")
    return values


def _check_count(graph: Graph, field: str, found: int, expected: int) -> None:
    if found != expected:
        raise DataError(f"{graph.where}: {found} {field} for {expected} {'edges' if 'edge' in field else 'nodes'}.")


def _numbered(graphs: list[Graph], field: str, counts: list[int] | None) -> tuple[Tensor | None, LabelNames]:
    """Names of any kind as numbers from 0; ``counts`` per graph, None for one each."""
    values = _values(graphs, field, counts)
    if values is None:
        return None, ()
    if counts is not None:
        for graph, some, count in zip(graphs, values, counts, strict=True):
            _check_count(graph, field, len(some), count)
        values = list(chain.from_iterable(values))
    if not {str, int}.issuperset(map(type, values)):
        values = [plain(value) for value in values]
        if field == "label":
            refuse_fractions(values)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise DataError(f"{field} must be whole numbers or strings, found {value!r} ({type(value).__name__}).")
    try:
        return number_names(values)
    except DataError as error:
        raise DataError(f"{field}: {error}") from error


def _stacked(graphs: list[Graph], field: str, counts: list[int], dims: int) -> Tensor | None:
    """Numbers of all graphs as float32 [total, d] or [total]."""
    values = _values(graphs, field, counts)
    if values is None:
        return None
    arrays: list[np.ndarray] = []
    width = 0
    for graph, some, count in zip(graphs, values, counts, strict=True):
        try:
            array = np.asarray(some, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{graph.where}: {field} must be numbers, of one width ({error}).") from error
        if count == 0:
            width = max(width, array.shape[1] if array.ndim == 2 else 0)
            continue
        if array.ndim != dims:
            raise DataError(f"{graph.where}: {field} have shape {list(array.shape)}, expected {dims} dimensions.")
        _check_count(graph, field, len(array), count)
        if not np.isfinite(array).all():
            raise DataError(f"{graph.where}: {field} must be finite, found {array[~np.isfinite(array)][0]}.")
        if arrays and array.shape[1:] != arrays[0].shape[1:]:
            raise DataError(
                f"{graph.where}: {array.shape[1]} {field} each, but the first graph has {arrays[0].shape[1]}."
            )
        arrays.append(array)
    if not arrays:
        return torch.empty(0) if dims == 1 else torch.empty(0, width)
    return torch.from_numpy(np.concatenate(arrays))
