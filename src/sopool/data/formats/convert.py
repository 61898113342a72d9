"""Convert graphs to and from PyG ``Data`` and NetworkX graphs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx

from sopool.data.formats.networkx_graph import (
    NetworkxNames,
    graph_of_networkx,
    networkx_of_graph,
    warn_of_attributes,
)
from sopool.data.formats.pyg_graph import (
    PygFeatures,
    data_of_graph,
    graph_of_data,
    warn_of_codes,
    warn_of_tensors,
)
from sopool.data.graphs import PackedGraphs
from sopool.data.names import plain
from sopool.data.pack import pack
from sopool.errors import DataError

if TYPE_CHECKING:  # importing PyG is slow
    from torch_geometric.data import Data


def from_pyg(
    graphs: "Iterable[Data]",
    labels: Sequence[Any] | None = None,
    name: str = "graphs",
    target_names: Sequence[str] = (),
    node_categories: bool | str | Sequence[str] = False,
    edge_categories: bool | str | Sequence[str] = False,
    graph_attributes: str | Sequence[str] = (),
) -> PackedGraphs:
    """Pack a list of PyG ``Data`` into a store.

    The features ``x`` and ``edge_attr`` become node and edge attributes, or categories if this is asked for.
    ``node_label``, ``edge_label``, ``node_category``, ``edge_category``, ``edge_weight``, ``u`` (numbers given beside
    the graph, ``[1, D]``) and ``y`` are read if present. ``y`` is the class of the graph if it is a whole number in all
    graphs, else its targets: one number, or several in a tensor ``[T]`` or ``[1, T]``, NaN where one is missing. A
    warning names other tensors, which are not read.

    Args:
        graphs: The graphs.
        labels: The class or the targets of each graph, which replace ``y``. Default: None.
        name: The name of the store. Default: ``"graphs"``.
        target_names: The names of the targets. If given, whole numbers are targets, too. Default: those of
            :func:`pack`.
        node_categories: True if the columns of ``x`` are codes, as those of PyG's ``from_smiles`` and of OGB, or the
            names of the columns. If the graphs have ``node_category``, the names are those of its columns. Default:
            False, ``x`` has measures; a warning is given if they are whole numbers.
        edge_categories: The same for ``edge_attr`` and ``edge_category``. Default: False.
        graph_attributes: The names of the numbers in ``u``. Default: ``"attribute 0"``, ``"attribute 1"`` and so on.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from sopool.data import from_pyg
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> from_pyg([Data(x=torch.ones(2, 3), edge_index=edges)], labels=["a"])
        PackedGraphs(graphs: 1 graphs, 2 nodes (at most 2), 2 directed edges, 1 classes, 3 node attributes)
        >>> atoms = torch.tensor([[6, 0], [8, -1]])
        >>> from_pyg([Data(x=atoms, edge_index=edges)], node_categories=["element", "charge"]).node_category_columns
        (CategoryColumn(name='element', values=(6, 8)), CategoryColumn(name='charge', values=(-1, 0)))
    """
    from torch_geometric.data import Data

    graphs = _listed(graphs, Data)
    given = _labels(graphs, labels, [_single(_one_row(data.y)) for data in graphs])
    features = (
        PygFeatures.of(graphs, "node", "x", _asked(node_categories)),
        PygFeatures.of(graphs, "edge", "edge_attr", _asked(edge_categories)),
    )
    numbers = _strings(graph_attributes)
    made = [
        graph_of_data(i, data, label, *features, numbers)
        for i, (data, label) in enumerate(zip(graphs, given, strict=True))
    ]
    store = pack(made, name, target_names)
    warn_of_codes(graphs, features)
    warn_of_tensors(graphs)
    return store


def to_pyg(store: PackedGraphs) -> "list[Data]":
    """Convert each graph to PyG ``Data`` with the attributes that :func:`from_pyg` reads.

    Labels and categories are integers from 0: ``node_label`` and ``edge_label`` ``[N]``, ``node_category`` and
    ``edge_category`` ``[N, C]``. ``y`` is the class of the graph or, if the graphs have no classes, their targets as
    float64 ``[1, T]``; ``u`` ``[1, D]`` are the numbers given beside it, NaN where one is missing.

    Args:
        store: The graphs.

    Examples:
        >>> from sopool.data import load, to_pyg
        >>> to_pyg(load("MUTAG"))[0]
        Data(edge_index=[2, 54], num_nodes=23, y=[1], node_label=[23], edge_label=[54])
    """
    return [data_of_graph(graph) for graph in store.to("cpu")]


def from_networkx(
    graphs: Iterable[nx.Graph],
    labels: Sequence[Any] | None = None,
    node_label: str = "label",
    edge_label: str = "label",
    weight: str | None = "weight",
    name: str = "graphs",
    node_attributes: str | Sequence[str] = "x",
    target_names: Sequence[str] = (),
    node_categories: str | Sequence[str] = (),
    edge_categories: str | Sequence[str] = (),
    edge_attributes: str | Sequence[str] = "edge_attr",
    graph_attributes: str | Sequence[str] = (),
) -> PackedGraphs:
    """Pack a list of NetworkX graphs into a store; directed graphs and multigraphs are accepted.

    Nodes keep the order of the graph, whatever their names. A warning names attributes of nodes and edges, and numbers
    of graphs, that are not read.

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
            ``"x"``, which may be absent.
        target_names: The names of the targets. If given, whole numbers are targets, too. Default: those of
            :func:`pack`.
        node_categories: The node attributes that are categories, integers or strings, besides ``node_label``. Default:
            none.
        edge_categories: The same for edges. Default: none.
        edge_attributes: The edge attributes that are numbers or lists of numbers, as ``node_attributes``. Default:
            ``"edge_attr"``, which may be absent.
        graph_attributes: The entries of ``graph.graph`` that are numbers given beside the graph, such as a temperature;
            some may be missing. Default: none.

    Examples:
        >>> import networkx as nx
        >>> from sopool.data import from_networkx
        >>> from_networkx([nx.path_graph(3), nx.cycle_graph(4)], labels=["path", "cycle"])
        PackedGraphs(graphs: 2 graphs, 7 nodes (at most 4), 12 directed edges, 2 classes)
    """
    graphs = _listed(graphs, nx.Graph)
    given = _labels(graphs, labels, [_one_row(graph.graph.get("label")) for graph in graphs])
    names = NetworkxNames(
        node_label,
        edge_label,
        weight,
        _strings(node_categories),
        _strings(node_attributes),
        _strings(edge_categories),
        _strings(edge_attributes),
        _strings(graph_attributes),
    )
    names.check(graphs)
    made = [
        graph_of_networkx(i, graph, label, names) for i, (graph, label) in enumerate(zip(graphs, given, strict=True))
    ]
    store = pack(made, name, target_names)
    warn_of_attributes(graphs, names)
    return store


def to_networkx(store: PackedGraphs) -> list[nx.Graph]:
    """Convert each graph to a NetworkX graph.

    It is undirected if every edge exists in both directions and carries the same, and a multigraph if an edge is
    repeated. Nodes have ``label`` and ``x`` (the list of their attributes), edges ``label``, ``weight`` and
    ``edge_attr``; each column of categories has an attribute of its own. The graph has ``label``, its class or, if the
    graphs have no classes, the list of its targets, and the numbers given beside it by their names, NaN where one is
    missing.

    Args:
        store: The graphs.

    Examples:
        >>> from sopool.data import load, to_networkx
        >>> print(to_networkx(load("MUTAG"))[0])
        Graph with 23 nodes and 27 edges
    """
    return [networkx_of_graph(graph) for graph in store.to("cpu")]


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


def _strings(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _asked(names: bool | str | Sequence[str]) -> bool | list[str]:
    return names if isinstance(names, bool) else _strings(names)
