"""Convert a graph to and from NetworkX."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import torch

from sopool.data.graphs import CATEGORIES, KINDS, PackedGraphs
from sopool.data.names import check_column_names, plain
from sopool.data.pack import Graph
from sopool.errors import DataError

USUAL = ("label", "weight", "x", "edge_attr")
"""Attribute names that are read if present, but are not required."""


class NetworkxNames(NamedTuple):
    """The names of the attributes of NetworkX graphs to read."""

    node_label: str
    edge_label: str
    weight: str | None
    node_categories: list[str]
    node_attributes: list[str]
    edge_categories: list[str]
    edge_attributes: list[str]
    graph_attributes: list[str]

    @property
    def nodes(self) -> list[str]:
        """The attributes of nodes that must be there."""
        return [*self.node_categories, *_asked(*self.node_attributes, self.node_label)]

    @property
    def edges(self) -> list[str]:
        """The attributes of edges that must be there."""
        return [*self.edge_categories, *_asked(*self.edge_attributes, self.edge_label, self.weight)]

    def check(self, graphs: Iterable[nx.Graph]) -> None:
        """Raise if an attribute is named twice, or missing everywhere, which would otherwise go unnoticed."""
        for field in (*CATEGORIES, "graph_attributes"):
            check_column_names(KINDS[field], getattr(self, field))
        _check_apart("node", self.node_categories, [*self.node_attributes, self.node_label])
        _check_apart("edge", self.edge_categories, [*self.edge_attributes, self.edge_label, self.weight])
        _check_there("node", [data for graph in graphs for _, data in graph.nodes(data=True)], self.nodes)
        _check_there("edge", [data for graph in graphs for *_, data in graph.edges(data=True)], self.edges)
        _check_there("graph", [graph.graph for graph in graphs], self.graph_attributes)


def warn_of_attributes(graphs: Sequence[nx.Graph], names: NetworkxNames) -> None:
    """Warn once of attributes of nodes and edges, and numbers of graphs, that are not read."""
    found: dict[str, dict[str, None]] = {"node": {}, "edge": {}, "graph": {}}
    for graph in graphs:
        found["node"] |= dict.fromkeys(key for _, data in graph.nodes(data=True) for key in data)
        found["edge"] |= dict.fromkeys(key for *_, data in graph.edges(data=True) for key in data)
        numbers = (key for key, value in graph.graph.items() if type(plain(value)) in (int, float))
        found["graph"] |= dict.fromkeys(numbers)
    read: dict[str, set[str | None]] = {
        "node": {names.node_label, *names.node_attributes, *names.nodes},
        "edge": {names.edge_label, names.weight or "weight", *names.edge_attributes, *names.edges},
        "graph": {"label", *names.graph_attributes},
    }
    unread = {kind: [repr(key) for key in keys if key not in read[kind]] for kind, keys in found.items()}
    told = "; ".join(f"the {kind} attributes {', '.join(keys)}" for kind, keys in unread.items() if keys)
    if told:
        warnings.warn(
            f"from_networkx does not read {told}. Name them in node_categories, node_attributes, edge_categories, "
            "edge_attributes or graph_attributes, or remove them.",
            stacklevel=3,
        )


def graph_of_networkx(number: int, graph: nx.Graph, label: Any, names: NetworkxNames) -> Graph:
    """Convert a NetworkX graph, the one with this ``number`` in messages."""
    nodes = [graph.nodes[node] for node in graph]
    place = {node: i for i, node in enumerate(graph)}
    pairs = []
    edges = []
    for source, target, data in graph.edges(data=True):
        pairs.append((place[source], place[target]))
        edges.append(data)
        if not graph.is_directed() and source != target:
            pairs.append((place[target], place[source]))
            edges.append(data)
    of_nodes = f"graph {number}, nodes"
    of_edges = f"graph {number}, edges"
    return Graph(
        num_nodes=len(place),
        edges=pairs,
        label=label,
        node_labels=_attribute(nodes, names.node_label, of_nodes),
        node_attributes=_side_by_side(nodes, names.node_attributes, of_nodes),
        node_categories=_each(nodes, names.node_categories, of_nodes) or None,
        edge_labels=_attribute(edges, names.edge_label, of_edges),
        edge_attributes=_side_by_side(edges, names.edge_attributes, of_edges),
        edge_categories=_each(edges, names.edge_categories, of_edges) or None,
        edge_weights=_attribute(edges, names.weight, of_edges),
        graph_attributes={name: graph.graph.get(name) for name in names.graph_attributes} or None,
    )


def _attribute(values: list[dict[str, Any]], name: str | None, where: str) -> list[Any] | None:
    """Return an attribute of all nodes or edges, or None if none of them has it."""
    there = name is not None and any(name in value for value in values)
    return _each(values, [name], where)[name] if there and name is not None else None


def _each(values: list[dict[str, Any]], names: list[str], where: str) -> dict[str, list[Any]]:
    """Return attributes that all nodes or edges must have."""
    columns = {name: [value[name] for value in values if name in value] for name in names}
    for name, found in columns.items():
        if len(found) != len(values):
            expected = "all or none" if found else "all"
            raise DataError(f"{where}: {len(found)} of {len(values)} have the attribute {name!r}, expected {expected}.")
    return columns


def _side_by_side(values: list[dict[str, Any]], names: list[str], where: str) -> np.ndarray | None:
    """Concatenate several attributes, numbers or lists of numbers, to rows ``[N, F]``; return None without any."""
    names = [name for name in names if name not in USUAL or any(name in value for value in values)]
    if not names or not values:
        return None
    try:
        rows = [
            np.asarray(found, np.float32).reshape(len(values), -1) for found in _each(values, names, where).values()
        ]
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: attributes must be numbers or lists of equal length ({error}).") from error
    return np.concatenate(rows, 1)


def _asked(*names: str | None) -> list[str]:
    return [name for name in names if name is not None and name not in USUAL]


def _check_apart(kind: str, categories: list[str], others: list[str | None]) -> None:
    """Raise if a column of categories is to be read as something else, too."""
    both = next((name for name in categories if name in others), None)
    if both is not None:
        raise DataError(
            f"{both!r} is named in {kind}_categories and is also read as label, number or weight: name it once, e.g. "
            f"with {kind}_attributes=()."
        )


def _check_there(kind: str, values: list[dict[str, Any]], names: list[str]) -> None:
    """Raise if a requested attribute is missing everywhere, which would otherwise go unnoticed."""
    for name in names if values else ():
        if not any(name in value for value in values):
            found = ", ".join(repr(key) for key in dict.fromkeys(key for value in values for key in value)) or "none"
            raise DataError(f"no {kind} has the attribute {name!r}. Attributes found: {found}.")


def networkx_of_graph(graph: PackedGraphs) -> nx.Graph:
    """Convert a store of one graph."""
    nodes = _rows(
        "node", graph.num_nodes, {"label": _labels_of(graph, "node"), "x": _list(graph.node_attributes)}, graph
    )
    pairs = list(zip(*graph.edge_index.tolist(), strict=True))
    carried = {
        "label": _labels_of(graph, "edge"),
        "weight": _list(graph.edge_weights),
        "edge_attr": _list(graph.edge_attributes),
    }
    edges = _rows("edge", len(pairs), carried, graph)
    made = _kind(pairs, edges)()
    made.add_nodes_from(enumerate(nodes))
    made.graph |= _of_graph(graph)
    kept = zip(pairs, edges, strict=True)
    made.add_edges_from((*pair, item) for pair, item in kept if made.is_directed() or pair[0] <= pair[1])
    return made


def _rows(kind: str, count: int, carried: dict[str, list[Any] | None], graph: PackedGraphs) -> list[dict[str, Any]]:
    """Return the attributes of each node or edge: those in ``carried`` that are there, and categories."""
    columns = {name: values for name, values in carried.items() if values is not None}
    codes = getattr(graph, f"{kind}_categories")
    for place, column in enumerate(getattr(graph, f"{kind}_category_columns")):
        _check_free(KINDS[f"{kind}_categories"], column.name, columns)
        columns[column.name] = [column.values[code] for code in codes[:, place].tolist()]
    return [{name: values[row] for name, values in columns.items()} for row in range(count)]


def _check_free(kind: str, name: str, taken: Iterable[str]) -> None:
    if name in taken:
        raise DataError(
            f"{name!r} is the name of a {kind} and of another attribute of the NetworkX graphs: rename it with "
            "dataclasses.replace."
        )


def _labels_of(graph: PackedGraphs, kind: str) -> list[Any] | None:
    """Return the labels of nodes or edges as they were given."""
    codes = getattr(graph, f"{kind}_labels")
    names = getattr(graph, f"{kind}_label_names")
    return None if codes is None else [names[code] for code in codes.tolist()]


def _list(values: torch.Tensor | None) -> list[Any] | None:
    return None if values is None else values.tolist()


def _of_graph(graph: PackedGraphs) -> dict[str, Any]:
    """Return the label of a graph and the numbers given beside it."""
    found: dict[str, Any] = {}
    if graph.labels is not None:
        found["label"] = graph.classes[int(graph.labels[0])]
    elif graph.targets is not None:
        found["label"] = graph.targets[0].tolist()
    numbers = [] if graph.graph_attributes is None else graph.graph_attributes[0].tolist()
    for name, value in zip(graph.graph_attribute_names, numbers, strict=True):
        _check_free(KINDS["graph_attributes"], name, found)
        found[name] = value
    return found


def _kind(edges: list[tuple[int, int]], data: list[dict[str, Any]]) -> type[nx.Graph]:
    """Return the simplest NetworkX class that can hold these edges."""
    told = [tuple(tuple(value) if isinstance(value, list) else value for value in item.values()) for item in data]
    forward = Counter(zip(edges, told, strict=True))
    backward = Counter((pair[::-1], item) for pair, item in zip(edges, told, strict=True))
    kinds: dict[tuple[bool, bool], type[nx.Graph]] = {
        (True, False): nx.Graph,
        (True, True): nx.MultiGraph,
        (False, False): nx.DiGraph,
        (False, True): nx.MultiDiGraph,
    }
    return kinds[forward == backward, len(set(edges)) < len(edges)]
