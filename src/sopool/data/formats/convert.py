"""Convert graphs to and from PyG ``Data`` and NetworkX graphs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch

from sopool.data.graphs import PackedGraphs
from sopool.data.names import plain
from sopool.data.pack import Graph, pack
from sopool.errors import DataError

if TYPE_CHECKING:  # importing PyG is slow
    from torch_geometric.data import Data

USUAL = ("label", "weight")
"""Attribute names that are read if present, but are not required."""


def from_pyg(
    graphs: "Iterable[Data]",
    labels: Sequence[Any] | None = None,
    name: str = "graphs",
    target_names: Sequence[str] = (),
) -> PackedGraphs:
    """Pack a list of PyG ``Data`` into a store.

    The features ``x`` become node attributes. ``node_label``, ``edge_label``, ``edge_attr``, ``edge_weight`` and ``y``
    are read if present. ``y`` is the class of the graph if it is a whole number in all graphs, else its targets: one
    number, or several in a tensor ``[T]`` or ``[1, T]``, NaN where one is missing.

    Args:
        graphs: The graphs.
        labels: The class or the targets of each graph, which replace ``y``. Default: None.
        name: The name of the store. Default: ``"graphs"``.
        target_names: The names of the targets. If given, whole numbers are targets, too. Default: those of
            :func:`pack`.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from sopool.data import from_pyg
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> from_pyg([Data(x=torch.ones(2, 3), edge_index=edges)], labels=["a"])
        PackedGraphs(graphs: 1 graphs, 2 nodes (at most 2), 2 directed edges, 1 classes, 3 node attributes)
    """
    from torch_geometric.data import Data

    graphs = _listed(graphs, Data)
    given = _labels(graphs, labels, [_single(_one_row(data.y)) for data in graphs])
    made = (_from_data(i, data, label) for i, (data, label) in enumerate(zip(graphs, given, strict=True)))
    return pack(made, name, target_names)


def to_pyg(store: PackedGraphs) -> "list[Data]":
    """Convert each graph to PyG ``Data`` with the attributes that :func:`from_pyg` reads.

    Labels are integers from 0. ``y`` is the class of the graph or, if the graphs have no classes, their targets as
    float64 ``[1, T]``.

    Args:
        store: The graphs.

    Examples:
        >>> from sopool.data import load, to_pyg
        >>> to_pyg(load("MUTAG"))[0]
        Data(edge_index=[2, 54], num_nodes=23, y=[1], node_label=[23], edge_label=[54])
    """
    return [_to_data(graph) for graph in store.to("cpu")]


def from_networkx(
    graphs: Iterable[nx.Graph],
    labels: Sequence[Any] | None = None,
    node_label: str = "label",
    edge_label: str = "label",
    weight: str | None = "weight",
    name: str = "graphs",
    node_attributes: str | Sequence[str] = (),
    target_names: Sequence[str] = (),
) -> PackedGraphs:
    """Pack a list of NetworkX graphs into a store; directed graphs and multigraphs are accepted.

    Nodes keep the order of the graph, whatever their names.

    Args:
        graphs: The graphs.
        labels: The class of each graph or its targets: a number with a fraction, or a list of numbers. Default: None,
            ``graph.graph["label"]`` if present.
        node_label: The node attribute with the label. Default: ``"label"``, which may be absent.
        edge_label: The edge attribute with the label. Default: ``"label"``, which may be absent.
        weight: The edge attribute with the weight, or None to read no weights. Default: ``"weight"``, which may be
            absent.
        name: The name of the store. Default: ``"graphs"``.
        node_attributes: The node attributes that are numbers or lists of numbers, which are concatenated. Default:
            none.
        target_names: The names of the targets. If given, whole numbers are targets, too. Default: those of
            :func:`pack`.

    Examples:
        >>> import networkx as nx
        >>> from sopool.data import from_networkx
        >>> from_networkx([nx.path_graph(3), nx.cycle_graph(4)], labels=["path", "cycle"])
        PackedGraphs(graphs: 2 graphs, 7 nodes (at most 4), 12 directed edges, 2 classes)
    """
    graphs = _listed(graphs, nx.Graph)
    given = _labels(graphs, labels, [_one_row(graph.graph.get("label")) for graph in graphs])
    numbers = [node_attributes] if isinstance(node_attributes, str) else list(node_attributes)
    made = [
        _from_nx(i, graph, label, node_label, edge_label, weight, numbers)
        for i, (graph, label) in enumerate(zip(graphs, given, strict=True))
    ]
    nodes = [data for graph in graphs for _, data in graph.nodes(data=True)]
    edges = [data for graph in graphs for *_, data in graph.edges(data=True)]
    _check_there("node", nodes, [*numbers, *_asked(node_label)])
    _check_there("edge", edges, [*_asked(edge_label), *_asked(weight)])
    return pack(made, name, target_names)


def to_networkx(store: PackedGraphs) -> list[nx.Graph]:
    """Convert each graph to a NetworkX graph.

    It is undirected if every edge exists in both directions with the same label and weight, and a multigraph if an edge
    is repeated. Nodes have ``label`` and ``x`` (attributes), edges have ``label`` and ``weight``. Edge attributes are
    dropped. The graph has ``label``, its class or, if the graphs have no classes, the list of its targets, NaN where
    one is missing.

    Args:
        store: The graphs.

    Examples:
        >>> from sopool.data import load, to_networkx
        >>> print(to_networkx(load("MUTAG"))[0])
        Graph with 23 nodes and 27 edges
    """
    return [_to_nx(graph) for graph in store.to("cpu")]


def _listed(graphs: Iterable[Any], kind: type) -> list[Any]:
    if isinstance(graphs, kind):
        raise DataError("a single graph was given: put it into a list.")
    found = list(graphs)
    odd = next((i for i, graph in enumerate(found) if not isinstance(graph, kind)), None)
    if odd is not None:
        raise DataError(f"graph {odd} is of type {type(found[odd]).__name__}, expected {kind.__name__}.")
    return found


def _labels(graphs: Sequence[Any], given: Sequence[Any] | None, own: list[Any]) -> list[Any]:
    if given is None:
        return own
    labels = list(given.tolist() if hasattr(given, "tolist") else given)
    if len(labels) != len(graphs):
        raise DataError(f"{len(labels)} labels for {len(graphs)} graphs: expected one label per graph.")
    return labels


def _one_row(value: Any) -> Any:
    """Return a label in plain Python, the numbers of a matrix ``[1, T]`` as a list."""
    value = plain(value)
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) else value


def _single(value: Any) -> Any:
    """Return the only entry of a list, and other values unchanged; a tensor of one number is a single label in PyG."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _from_data(number: int, data: "Data", label: Any) -> Graph:
    edges = _tensor(data, "edge_index", number)
    if edges is None:
        raise DataError(f"graph {number} has no edge_index: pass Data with edge_index [2, edges].")
    if edges.numel() and (edges.dim() != 2 or len(edges) != 2):
        raise DataError(f"graph {number} has an edge_index of shape {list(edges.shape)}, expected [2, edges].")
    node_labels, edge_labels = (_tensor(data, key, number) for key in ("node_label", "edge_label"))
    weights = _tensor(data, "edge_weight", number)
    return Graph(
        num_nodes=int(data.num_nodes or 0),
        edges=edges.t().numpy(),
        label=int(label) if isinstance(label, float) and label.is_integer() else label,
        node_labels=None if node_labels is None else node_labels.tolist(),
        node_attributes=_columns(_tensor(data, "x", number)),
        edge_labels=None if edge_labels is None else edge_labels.tolist(),
        edge_attributes=_columns(_tensor(data, "edge_attr", number)),
        edge_weights=None if weights is None else weights.float().numpy(),
    )


def _tensor(data: "Data", key: str, number: int) -> torch.Tensor | None:
    """Return an attribute as a dense CPU tensor of at least one dimension, or None if it is missing."""
    if data.get(key) is None:
        return None
    try:
        found = torch.as_tensor(data[key]).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"graph {number}: {key} must be a tensor of numbers ({error}).") from error
    found = found if found.layout == torch.strided else found.to_dense()
    return found if found.dim() else found.reshape(1)


def _columns(values: torch.Tensor | None) -> Any:
    """Convert values ``[N]`` or ``[N, ...]`` to float32 ``[N, F]``."""
    if values is None:
        return None
    return (values.unsqueeze(1) if values.dim() == 1 else values.flatten(1)).float().numpy()


def _to_data(graph: PackedGraphs) -> "Data":
    from torch_geometric.data import Data

    data = Data(edge_index=graph.edge_index.long(), num_nodes=graph.num_nodes)
    optional = {
        "x": graph.node_attributes,
        "y": graph.targets if graph.labels is None else graph.labels,
        "node_label": None if graph.node_labels is None else graph.node_labels.long(),
        "edge_label": None if graph.edge_labels is None else graph.edge_labels.long(),
        "edge_attr": graph.edge_attributes,
        "edge_weight": graph.edge_weights,
    }
    for key, value in optional.items():
        if value is not None:
            data[key] = value
    return data


def _from_nx(
    number: int,
    graph: nx.Graph,
    label: Any,
    node_label: str,
    edge_label: str,
    weight: str | None,
    node_attributes: list[str],
) -> Graph:
    nodes = [graph.nodes[node] for node in graph]
    where = f"graph {number}, nodes"
    place = {node: i for i, node in enumerate(graph)}
    edges = []
    values = []
    for source, target, data in graph.edges(data=True):
        edges.append((place[source], place[target]))
        values.append(data)
        if not graph.is_directed() and source != target:
            edges.append((place[target], place[source]))
            values.append(data)
    return Graph(
        num_nodes=len(place),
        edges=edges,
        label=label,
        node_labels=_attribute(nodes, node_label, where),
        node_attributes=_side_by_side([_attribute(nodes, name, where) for name in node_attributes], where),
        edge_labels=_attribute(values, edge_label, f"graph {number}, edges"),
        edge_weights=_attribute(values, weight, f"graph {number}, edges"),
    )


def _attribute(values: list[dict[str, Any]], name: str | None, where: str) -> list[Any] | None:
    found = [] if name is None else [value[name] for value in values if name in value]
    if not found:
        return None
    if len(found) != len(values):
        raise DataError(f"{where}: {len(found)} of {len(values)} have the attribute {name!r}, expected all or none.")
    return found


def _side_by_side(columns: list[list[Any] | None], where: str) -> np.ndarray | None:
    """Concatenate several attributes, numbers or lists of numbers, to rows ``[N, F]``; return None if empty."""
    found = [column for column in columns if column is not None]
    if not found:
        return None
    try:
        rows = [np.asarray(column, np.float32).reshape(len(column), -1) for column in found]
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: attributes must be numbers or lists of equal length ({error}).") from error
    return np.concatenate(rows, 1)


def _asked(name: str | None) -> list[str]:
    return [] if name in (None, *USUAL) else [str(name)]


def _check_there(kind: str, values: list[dict[str, Any]], names: list[str]) -> None:
    """Raise if a requested attribute is missing everywhere, which would otherwise go unnoticed."""
    for name in names if values else ():
        if not any(name in value for value in values):
            found = ", ".join(repr(key) for key in dict.fromkeys(key for value in values for key in value)) or "none"
            raise DataError(f"no {kind} has the attribute {name!r}. Attributes found: {found}.")


def _to_nx(graph: PackedGraphs) -> nx.Graph:
    edges = list(zip(*graph.edge_index.tolist(), strict=True))
    data: list[dict[str, Any]] = [{} for _ in edges]
    if graph.edge_labels is not None:
        for item, code in zip(data, graph.edge_labels.tolist(), strict=True):
            item["label"] = graph.edge_label_names[code]
    if graph.edge_weights is not None:
        for item, value in zip(data, graph.edge_weights.tolist(), strict=True):
            item["weight"] = value
    made = _kind(edges, data)()
    for node in range(graph.num_nodes):
        made.add_node(node)
        if graph.node_labels is not None:
            made.nodes[node]["label"] = graph.node_label_names[int(graph.node_labels[node])]
        if graph.node_attributes is not None:
            made.nodes[node]["x"] = graph.node_attributes[node].tolist()
    if graph.labels is not None:
        made.graph["label"] = graph.classes[int(graph.labels[0])]
    elif graph.targets is not None:
        made.graph["label"] = graph.targets[0].tolist()
    keep = edges if made.is_directed() else [pair for pair in edges if pair[0] <= pair[1]]
    kept = data if made.is_directed() else [d for pair, d in zip(edges, data, strict=True) if pair[0] <= pair[1]]
    made.add_edges_from((*pair, item) for pair, item in zip(keep, kept, strict=True))
    return made


def _kind(edges: list[tuple[int, int]], data: list[dict[str, Any]]) -> type[nx.Graph]:
    """Return the simplest NetworkX class that can hold these edges."""
    forward = Counter((pair, tuple(item.items())) for pair, item in zip(edges, data, strict=True))
    backward = Counter((pair[::-1], tuple(item.items())) for pair, item in zip(edges, data, strict=True))
    kinds: dict[tuple[bool, bool], type[nx.Graph]] = {
        (True, False): nx.Graph,
        (True, True): nx.MultiGraph,
        (False, False): nx.DiGraph,
        (False, True): nx.MultiDiGraph,
    }
    return kinds[forward == backward, len(set(edges)) < len(edges)]
