"""Pack single graphs into a store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.data.graphs import CATEGORIES, MAX_TARGET, PackedGraphs
from sopool.data.names import (
    CategoryColumn,
    LabelNames,
    number_attributes,
    number_names,
    plain,
    smallest_integers,
)
from sopool.data.targets import is_target, stack_targets
from sopool.errors import DataError

Label = str | int


class NamedNumbers(Mapping[str, float]):
    """Numbers given beside a graph, whose names many graphs share: a dictionary takes far more memory.

    Args:
        places: The index of each name, in order. Graphs of one source share the same object.
        numbers: The numbers, float32 ``[D]``, NaN where one is missing.
    """

    __slots__ = ("numbers", "places")

    def __init__(self, places: Mapping[str, int], numbers: np.ndarray) -> None:
        self.places = places
        self.numbers = numbers

    def __getitem__(self, name: str) -> float:
        return float(self.numbers[self.places[name]])

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass
class Graph:
    """A single graph, to be passed to :func:`pack`.

    Args:
        num_nodes: The number of nodes.
        edges: Pairs (source, target) of node indices from 0, ``[E, 2]``; give an undirected edge in both directions.
            Default: no edges.
        label: The class of the graph, an integer or a string; or what to predict of it instead, a number with a
            fraction or a list of numbers, None or NaN where one is missing. Default: None.
        node_labels: One label for each node, ``[N]``. Default: None.
        node_attributes: Numbers for each node, ``[N, F]``. Default: None.
        edge_labels: One label for each edge, ``[E]``. Default: None.
        edge_attributes: Numbers for each edge, ``[E, F]``. Default: None.
        edge_weights: One weight for each edge, ``[E]``. Default: None.
        node_categories: More categories of the nodes: the values ``[N]`` of each column by its name. Default: None.
        edge_categories: More categories of the edges, as those of nodes. Default: None.
        graph_attributes: Numbers given beside the graph, such as a temperature: a mapping of names to numbers, or a
            list ``[D]``; None or NaN where one is missing. Default: None.
        where: The name of the graph in error messages. Default: its index, such as "graph 3".

    Examples:
        >>> from sopool.data import Graph, pack
        >>> pack([Graph(2, [(0, 1), (1, 0)], label="a"), Graph(1, label="b")]).classes
        ('a', 'b')
    """

    num_nodes: int
    edges: Any = ()
    """Pairs (source, target) of node indices from 0, ``[E, 2]``; an undirected edge is given in both directions."""
    label: Any = None
    """The class of the graph, or its targets: a number with a fraction, or a list of numbers and None."""
    node_labels: Sequence[Label] | None = None
    node_attributes: Any = None
    """Numbers for each node, ``[N, F]``."""
    edge_labels: Sequence[Label] | None = None
    edge_attributes: Any = None
    """Numbers for each edge, ``[E, F]``."""
    edge_weights: Any = None
    """One weight for each edge, ``[E]``."""
    node_categories: Mapping[str, Sequence[Label]] | None = None
    """The values ``[N]`` of each column of categories by its name."""
    edge_categories: Mapping[str, Sequence[Label]] | None = None
    """The values ``[E]`` of each column of categories by its name."""
    graph_attributes: Any = None
    """Numbers given beside the graph: a mapping of names to numbers, or a list ``[D]``."""
    where: str = ""
    """The name of the graph in error messages; its index, such as "graph 3", by default."""


def pack(graphs: Iterable[Graph], name: str = "graphs", target_names: Sequence[str] = ()) -> PackedGraphs:
    """Pack graphs into a store.

    Labels become ``targets``, numbers to predict, if they are lists of numbers, or if one of them is a number with a
    fraction. Otherwise, they become ``labels``, the classes of the graphs.

    Args:
        graphs: The graphs. If one has a class, node labels or other optional values, all must have them; targets may be
            missing.
        name: The name of the store. Default: ``"graphs"``.
        target_names: The names of the targets. If given, whole numbers are targets, too. Default: ``"target"``, or
            ``"target 1"``, ``"target 2"`` and so on if there are several.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> pack([Graph(2, [(0, 1), (1, 0)], label="a"), Graph(1, label="b")])
        PackedGraphs(graphs: 2 graphs, 3 nodes (at most 2), 2 directed edges, 2 classes)
        >>> pack([Graph(1, label=[0.5, 1]), Graph(1, label=[None, 0])], target_names=["mass", "toxic"]).targets
        tensor([[0.5000, 1.0000],
                [   nan, 0.0000]], dtype=torch.float64)
    """
    graphs = list(graphs)
    for i, graph in enumerate(graphs):
        graph.where = graph.where or f"graph {i}"
    edges = [_edges(graph) for graph in graphs]
    nodes_of = [graph.num_nodes for graph in graphs]
    edges_of = [len(some) for some in edges]
    node_labels, node_label_names = _numbered("node_labels", _listed(graphs, "node_labels", nodes_of))
    edge_labels, edge_label_names = _numbered("edge_labels", _listed(graphs, "edge_labels", edges_of))
    weights = _stacked(graphs, "edge_weights", edges_of, dims=1)
    return PackedGraphs(
        node_ptr=_ptr(nodes_of),
        edge_ptr=_ptr(edges_of),
        edge_index=torch.from_numpy(np.concatenate([np.empty((0, 2), np.int32), *edges]).T.copy()),
        **_labels(graphs, tuple(target_names)),
        node_labels=None if node_labels is None else node_labels.int(),
        node_label_names=node_label_names,
        **_categories(graphs, "node_categories", nodes_of),
        node_attributes=_stacked(graphs, "node_attributes", nodes_of, dims=2),
        edge_labels=None if edge_labels is None else edge_labels.int(),
        edge_label_names=edge_label_names,
        **_categories(graphs, "edge_categories", edges_of),
        edge_attributes=_stacked(graphs, "edge_attributes", edges_of, dims=2),
        edge_weights=weights,
        **_graph_attributes(graphs),
        name=name,
    )


def _labels(graphs: list[Graph], target_names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a store with the classes or the targets of the graphs."""
    labels = [graph.label for graph in graphs]
    if not {str, int}.issuperset(map(type, labels)):
        labels = [list(label) if isinstance(label, tuple) else label for label in map(plain, labels)]
    if target_names or any(map(is_target, labels)):
        targets, target_names = stack_targets(labels, [graph.where for graph in graphs], target_names)
        return {"targets": targets, "target_names": target_names}
    for graph, label in zip(graphs, labels, strict=True):
        if isinstance(label, float):
            raise DataError(
                f"{graph.where}: label must be whole numbers or strings, found {label} (float). A number to predict is "
                f"given as a list, [{label}]."
            )
    codes, classes = _numbered("label", _complete(graphs, "label", labels))
    return {"labels": codes, "classes": classes}


def _categories(graphs: list[Graph], field: str, counts: list[int]) -> dict[str, Any]:
    """Return the fields of a store with the categories of nodes or edges."""
    values = _values(graphs, field, counts)
    if values is None:
        return {}
    given = [
        (graph, some, count)
        for graph, some, count in zip(graphs, values, counts, strict=True)
        if count or (isinstance(some, Mapping) and some)
    ]
    for graph, some, _ in given:
        if not isinstance(some, Mapping):
            raise DataError(
                f"{graph.where}: {field} are of type {type(some).__name__}, expected a mapping of names to values."
            )
    names = list(given[0][1]) if given else []
    for graph, some, count in given:
        if set(some) != set(names):
            found = sorted(map(str, some))
            raise DataError(f"{graph.where}: {field} are {found}, expected the columns {names}, as in other graphs.")
        for name in names:
            _check_count(graph, f"{field} of {name!r}", len(some[name]), count)
    if not names:
        return {}
    codes: list[Tensor] = []
    columns: list[CategoryColumn] = []
    for name in names:
        numbers, known = _numbered(
            f"{field} of {name!r}", list(chain.from_iterable(some[name] for _, some, _ in given))
        )
        assert numbers is not None
        codes.append(numbers)
        columns.append(CategoryColumn(name, known))
    return {field: smallest_integers(torch.stack(codes, 1), columns), CATEGORIES[field]: tuple(columns)}


def _graph_attributes(graphs: list[Graph]) -> dict[str, Any]:
    """Return the fields of a store with the numbers given beside graphs."""
    values = _complete(graphs, "graph_attributes", [graph.graph_attributes for graph in graphs])
    if values is None:
        return {}
    first = values[0]
    if isinstance(first, NamedNumbers) and all(getattr(some, "places", None) is first.places for some in values):
        numbers = torch.from_numpy(np.stack([some.numbers for some in values]))
        return {"graph_attributes": numbers, "graph_attribute_names": tuple(first)}
    values = list(map(plain, values))
    first = values[0]
    given = tuple(first) if isinstance(first, Mapping) else number_attributes(len(first))
    rows = []
    for graph, some in zip(graphs, values, strict=True):
        if isinstance(some, Mapping) != isinstance(first, Mapping):
            raise DataError(
                f"{graph.where}: graph_attributes are named for some graphs only: name them for all or none."
            )
        if len(some) != len(given):
            raise DataError(
                f"{graph.where}: {len(some)} graph_attributes, but the first graph has {len(given)}: give the same "
                "for all graphs."
            )
        if isinstance(some, Mapping) and set(some) != set(given):
            strange = next(name for name in some if name not in given)
            raise DataError(f"{graph.where}: graph_attributes name {strange!r}, which the first graph does not have.")
        rows.append(
            [
                _number(graph, name, some[name if isinstance(some, Mapping) else place])
                for place, name in enumerate(given)
            ]
        )
    return (
        {"graph_attributes": torch.tensor(rows, dtype=torch.float32), "graph_attribute_names": given} if given else {}
    )


def _number(graph: Graph, name: str, value: Any) -> float:
    """Return a number given beside a graph, NaN where it is missing."""
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_TARGET:
        raise DataError(
            f"{graph.where}: {name!r} is {value!r}, expected a finite number, or None or NaN if it is missing."
        )
    return float(value)


def _ptr(counts: Sequence[int]) -> Tensor:
    return torch.tensor([0, *counts]).cumsum(0)


def _edges(graph: Graph) -> np.ndarray:
    """Return the edges as int32 ``[E, 2]``, after checking that they join nodes of the graph."""
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


def _values(graphs: list[Graph], field: str, counts: list[int]) -> list[Any] | None:
    """Return the field of every graph, or None if no graph has it; graphs that need no values may leave it out."""
    values = [getattr(graph, field) for graph in graphs]
    if all(value is None for value in values):
        return None
    values = [[] if value is None and not count else value for value, count in zip(values, counts, strict=True)]
    return _complete(graphs, field, values)


def _complete(graphs: list[Graph], field: str, values: list[Any]) -> list[Any] | None:
    """Return the values, or None if no graph has one; raise if only some have."""
    if all(value is None for value in values):
        return None
    missing = [graph.where for graph, value in zip(graphs, values, strict=True) if value is None]
    if missing:
        raise DataError(f"{missing[0]} has no {field}, but other graphs have: give it for all graphs or for none.")
    return values


def _check_count(graph: Graph, field: str, found: int, expected: int) -> None:
    if found != expected:
        raise DataError(f"{graph.where}: {found} {field} for {expected} {'edges' if 'edge' in field else 'nodes'}.")


def _listed(graphs: list[Graph], field: str, counts: list[int]) -> list[Any] | None:
    """Return the labels of all nodes or edges, or None if there are none."""
    values = _values(graphs, field, counts)
    if values is None:
        return None
    for graph, some, count in zip(graphs, values, counts, strict=True):
        _check_count(graph, field, len(some), count)
    return list(chain.from_iterable(values))


def _numbered(field: str, values: list[Any] | None) -> tuple[Tensor | None, LabelNames]:
    """Encode labels as integers from 0."""
    if values is None:
        return None, ()
    if not {str, int}.issuperset(map(type, values)):
        values = [plain(value) for value in values]
        for value in values:
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise DataError(f"{field} must be whole numbers or strings, found {value!r} ({type(value).__name__}).")
    try:
        return number_names(values)
    except DataError as error:
        raise DataError(f"{field}: {error}") from error


def _stacked(graphs: list[Graph], field: str, counts: list[int], dims: int) -> Tensor | None:
    """Stack the numbers of all graphs as float32, ``[N, F]`` or ``[N]``."""
    values = _values(graphs, field, counts)
    if values is None:
        return None
    arrays: list[np.ndarray] = []
    width = 0
    for graph, some, count in zip(graphs, values, counts, strict=True):
        try:
            array = np.asarray(some, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{graph.where}: {field} must be numbers, as many in each row ({error}).") from error
        if count == 0:
            width = max(width, array.shape[1] if array.ndim == 2 else 0)
            continue
        if array.ndim != dims:
            raise DataError(f"{graph.where}: {field} have shape {list(array.shape)}, expected {dims} dimensions.")
        _check_count(graph, field, len(array), count)
        if not np.isfinite(array).all():
            row, *column = np.argwhere(~np.isfinite(array))[0].tolist()
            value = array[row][tuple(column)]
            raise DataError(f"{graph.where}: {field} must be finite, found {value} at {field[:4]} {row}.")
        if arrays and array.shape[1:] != arrays[0].shape[1:]:
            raise DataError(
                f"{graph.where}: {array.shape[1]} {field} each, but the first graph has {arrays[0].shape[1]}."
            )
        arrays.append(array)
    if not arrays:
        return torch.empty(0) if dims == 1 else torch.empty(0, width)
    return torch.from_numpy(np.concatenate(arrays))
