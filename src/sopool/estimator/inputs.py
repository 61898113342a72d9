"""Graphs and labels as a user has them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from reprlib import repr as show
from typing import Any

import networkx as nx
import numpy as np
from torch import Tensor
from torch_geometric.data import Batch, Data

from sopool.data.chem import smiles_to_store
from sopool.data.convert import from_networkx, from_pyg
from sopool.data.errors import DataError
from sopool.data.pack import Graph, pack
from sopool.data.store import PackedGraphs, concatenate

KINDS = "a packed store, or a list of PyG Data, of NetworkX graphs or of SMILES"


def as_store(graphs: Any) -> PackedGraphs:
    """Graphs of any kind as a store without labels."""
    if isinstance(graphs, PackedGraphs):
        if not len(graphs):
            raise DataError(f"{graphs.name} has no graphs.")
        return replace(graphs, labels=None, classes=()).to("cpu")
    items = _listed(graphs)
    for kind, convert in CONVERT.items():
        if isinstance(items[0], kind):
            odd = next((i for i, item in enumerate(items) if not isinstance(item, kind)), None)
            if odd is not None:
                raise DataError(
                    f"graph {odd} is {_name(items[odd])}, graph 0 {_name(items[0])}: give graphs of one kind."
                )
            return replace(convert(items), labels=None, classes=())
    raise DataError(f"graph 0 is {_name(items[0])}. Give {KINDS}.")


def own_labels(graphs: Any) -> np.ndarray:
    """The labels that graphs carry themselves; a ``DataError`` where there are none."""
    stores = [graphs] if isinstance(graphs, PackedGraphs) else _listed(graphs)
    found: list[Any] = []
    for number, item in enumerate(stores):
        if isinstance(item, PackedGraphs) and item.labels is not None:
            found += [item.classes[code] for code in item.labels.tolist()]
            continue
        value = item.get("y") if isinstance(item, Data) else None
        value = item.graph.get("label") if isinstance(item, nx.Graph) else value
        if value is None:
            raise DataError(f"graph {number} carries no label: give the labels as y.")
        found.append(value.item() if isinstance(value, Tensor) and value.numel() == 1 else value)
    return as_labels(found, len(found))


def as_labels(given: Any, count: int) -> np.ndarray:
    """One label for each graph [count], of the type that was given; mixed types as objects."""
    if isinstance(given, Tensor):
        given = given.detach().cpu().numpy()
    if not hasattr(given, "dtype"):
        given = list(given)
        mixed = len({type(value) for value in given}) > 1
        given = _objects(given) if mixed else np.asarray(given)
    values = np.asarray(given)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or len(values) != count:
        raise DataError(f"the labels have shape {list(values.shape)} for {count} graphs: one for each is needed.")
    missing = [i for i, value in enumerate(values.tolist()) if value is None or value != value]
    if missing:
        raise DataError(f"the label of graph {missing[0]} is missing ({len(missing)} in all): leave such graphs out.")
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        odd = values[values != np.floor(values)][0]
        raise DataError(
            f"the label {odd} is no class: labels with fractions are for regression. Give names or numbers."
        )
    if values.dtype.kind not in "biufUO":
        raise DataError(f"labels of type {values.dtype} were given, expected words, numbers, or true and false.")
    return values


def number_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and the number of each label's class [n], int64; at least two classes."""
    if labels.dtype.kind == "O":
        try:
            names = sorted(set(labels.tolist()), key=lambda value: (isinstance(value, str), value))
        except TypeError as error:
            raise DataError(f"labels of these types cannot be sorted: {error}. Give words or numbers.") from error
        number = {name: i for i, name in enumerate(names)}
        classes, codes = _objects(names), np.array([number[label] for label in labels.tolist()], np.int64)
    else:
        classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"all graphs are of class {show(classes.tolist()[0])}: graphs of at least two classes are needed."
        )
    return classes, codes.astype(np.int64)


def _objects(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _listed(graphs: Any) -> list[Any]:
    if isinstance(graphs, str | bytes | Path):
        raise DataError(f"{show(str(graphs))} is a single text. Read a file with sopool.data.load, or give {KINDS}.")
    if isinstance(graphs, nx.Graph | Data) and not isinstance(graphs, Batch):
        raise DataError("a single graph was given: put it into a list.")
    try:
        items = [graphs] if isinstance(graphs, Batch) else list(graphs)
    except TypeError as error:
        raise DataError(f"something {_name(graphs)} was given. Give {KINDS}.") from error
    if not items:
        raise DataError("there are no graphs.")
    if any(isinstance(item, Batch) for item in items):
        raise DataError("a PyG Batch was given: give the graphs it was made of, which its to_data_list() returns.")
    return items


def _name(item: Any) -> str:
    return f"of type {type(item).__name__}"


def _from_stores(stores: list[PackedGraphs]) -> PackedGraphs:
    """Scikit-learn picks graphs out of a store one by one."""
    names = {store.name for store in stores}
    name = names.pop() if len(names) == 1 else "graphs"
    return concatenate([replace(store, labels=None, classes=()) for store in stores], name)


CONVERT: dict[type, Callable[[list[Any]], PackedGraphs]] = {
    PackedGraphs: _from_stores,
    str: lambda texts: smiles_to_store(texts, on_error="raise")[0],
    nx.Graph: lambda graphs: from_networkx(graphs, labels=[0] * len(graphs), weight=None),
    Data: lambda graphs: from_pyg(graphs, labels=[0] * len(graphs)),
    Graph: lambda graphs: pack(replace(graph, label=None) for graph in graphs),
}
"""Labels that graphs carry are left out here, since they may be of any type: see :func:`own_labels`; and so are weights
of edges, which no network uses, so that graphs with and without them go together."""
