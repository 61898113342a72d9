"""To and from lists of PyG ``Data`` and of NetworkX graphs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch

from sopool.data.graphs import PackedGraphs
from sopool.data.names import plain
from sopool.data.pack import Graph, Label, pack
from sopool.errors import DataError

if TYPE_CHECKING:  # loading PyG takes longer than most of what is done here
    from torch_geometric.data import Data

USUAL = ("label", "weight")
"""Attributes that are read where they are, and need not be."""


def from_pyg(graphs: "Iterable[Data]", labels: Sequence[Label] | None = None, name: str = "graphs") -> PackedGraphs:
    """Pack PyG graphs: ``x`` as attributes, ``node_label``, ``edge_label``, ``edge_attr``, ``edge_weight``, ``y``.

    ``labels`` overrides ``y``, which may be a number or a tensor of one.
    """
    from torch_geometric.data import Data

    graphs = _listed(graphs, Data)
    given = _labels(graphs, labels, [data.y for data in graphs])
    return pack((_from_data(i, data, label) for i, (data, label) in enumerate(zip(graphs, given, strict=True))), name)


def to_pyg(store: PackedGraphs) -> "list[Data]":
    """One PyG ``Data`` per graph, with what :func:`from_pyg` reads; labels as numbers from 0."""
    return [_to_data(graph) for graph in store.to("cpu")]


def from_networkx(
    graphs: Iterable[nx.Graph],
    labels: Sequence[Label] | None = None,
    node_label: str = "label",
    edge_label: str = "label",
    weight: str | None = "weight",
    name: str = "graphs",
    node_attributes: str | Sequence[str] = (),
) -> PackedGraphs:
    """Pack NetworkX graphs, directed or not, with parallel edges or not.

    Nodes are taken in the graph's order, whatever their names. ``node_label``, ``edge_label`` and ``weight`` name the
    attributes to read where nodes and edges have them (``weight=None``: leave weights out), ``node_attributes`` those
    that are numbers or lists of numbers, which are put side by side. A graph's own label is ``graph.graph["label"]``
    unless given.
    """
    graphs = _listed(graphs, nx.Graph)
    given = _labels(graphs, labels, [graph.graph.get("label") for graph in graphs])
    numbers = [node_attributes] if isinstance(node_attributes, str) else list(node_attributes)
    made = [
        _from_nx(i, graph, label, node_label, edge_label, weight, numbers)
        for i, (graph, label) in enumerate(zip(graphs, given, strict=True))
    ]
    nodes = [data for graph in graphs for _, data in graph.nodes(data=True)]
    edges = [data for graph in graphs for *_, data in graph.edges(data=True)]
    _check_there("node", nodes, [*numbers, *_asked(node_label)])
    _check_there("edge", edges, [*_asked(edge_label), *_asked(weight)])
    return pack(made, name)


def to_networkx(store: PackedGraphs) -> list[nx.Graph]:
    """One NetworkX graph per graph: undirected if every edge is there in both directions, alike; parallel if any is.

    Nodes have their ``label`` and, as ``x``, their attributes, edges ``label`` and ``weight``, not their attributes.
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


def _labels(graphs: Sequence[Any], given: Sequence[Label] | None, own: list[Any]) -> list[Any]:
    if given is None:
        return [plain(value) for value in own]
    labels = list(given.tolist() if hasattr(given, "tolist") else given)
    if len(labels) != len(graphs):
        raise DataError(f"{len(labels)} labels for {len(graphs)} graphs: one per graph is needed.")
    return labels


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
    """What a graph has under a key, wherever it lies and whatever it is made of."""
    if data.get(key) is None:
        return None
    try:
        found = torch.as_tensor(data[key]).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"graph {number}: {key} must be a tensor of numbers ({error}).") from error
    found = found if found.layout == torch.strided else found.to_dense()
    return found if found.dim() else found.reshape(1)


def _columns(values: torch.Tensor | None) -> Any:
    """[n] or [n, ...] as float32 [n, d]."""
    if values is None:
        return None
    return (values.unsqueeze(1) if values.dim() == 1 else values.flatten(1)).float().numpy()


def _to_data(graph: PackedGraphs) -> "Data":
    from torch_geometric.data import Data

    data = Data(edge_index=graph.edge_index.long(), num_nodes=graph.num_nodes)
    optional = {
        "x": graph.node_attributes,
        "y": graph.labels,
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
        raise DataError(f"{where}: {len(found)} of {len(values)} have the attribute {name!r}: all or none.")
    return found


def _side_by_side(columns: list[list[Any] | None], where: str) -> np.ndarray | None:
    """Numbers, or lists of them, of several attributes as rows [n, d]; None where there are none."""
    found = [column for column in columns if column is not None]
    if not found:
        return None
    try:
        rows = [np.asarray(column, np.float32).reshape(len(column), -1) for column in found]
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: attributes must be numbers, or lists of as many each ({error}).") from error
    return np.concatenate(rows, 1)


def _asked(name: str | None) -> list[str]:
    return [] if name in (None, *USUAL) else [str(name)]


def _check_there(kind: str, values: list[dict[str, Any]], names: list[str]) -> None:
    """Raise for an attribute that was asked for and that none has: it would be lost without a word."""
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
    keep = edges if made.is_directed() else [pair for pair in edges if pair[0] <= pair[1]]
    kept = data if made.is_directed() else [d for pair, d in zip(edges, data, strict=True) if pair[0] <= pair[1]]
    made.add_edges_from((*pair, item) for pair, item in zip(keep, kept, strict=True))
    return made


def _kind(edges: list[tuple[int, int]], data: list[dict[str, Any]]) -> type[nx.Graph]:
    """The simplest NetworkX class that holds these edges."""
    forward = Counter((pair, tuple(item.items())) for pair, item in zip(edges, data, strict=True))
    backward = Counter((pair[::-1], tuple(item.items())) for pair, item in zip(edges, data, strict=True))
    kinds: dict[tuple[bool, bool], type[nx.Graph]] = {
        (True, False): nx.Graph,
        (True, True): nx.MultiGraph,
        (False, False): nx.DiGraph,
        (False, True): nx.MultiDiGraph,
    }
    return kinds[forward == backward, len(set(edges)) < len(edges)]
