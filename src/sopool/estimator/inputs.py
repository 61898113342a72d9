"""Graphs as a user has them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from reprlib import repr as show
from typing import Any

import networkx as nx
from torch_geometric.data import Batch, Data

from sopool.data.chem import smiles_to_store
from sopool.data.convert import from_networkx, from_pyg
from sopool.data.errors import DataError, refuse_table
from sopool.data.pack import Graph, pack
from sopool.data.store import PackedGraphs, concatenate

KINDS = "a packed store, or a list of PyG Data, of NetworkX graphs or of SMILES"


def as_store(graphs: Any) -> PackedGraphs:
    """Graphs of any kind as a store without labels."""
    if isinstance(graphs, PackedGraphs):
        if not len(graphs):
            raise DataError(f"{graphs.name} has no graphs.")
        return replace(graphs, labels=None, classes=()).to("cpu")
    items = listed(graphs)
    for kind, convert in CONVERT.items():
        if isinstance(items[0], kind):
            odd = next((i for i, item in enumerate(items) if not isinstance(item, kind)), None)
            if odd is not None:
                raise DataError(
                    f"graph {odd} is {_name(items[odd])}, graph 0 {_name(items[0])}: give graphs of one kind."
                )
            return replace(convert(items), labels=None, classes=())
    raise DataError(f"graph 0 is {_name(items[0])}. Give {KINDS}.")


def listed(graphs: Any) -> list[Any]:
    """Graphs as a list, whatever holds them; a ``DataError`` for what holds none."""
    if isinstance(graphs, str | bytes | Path):
        raise DataError(f"{show(str(graphs))} is a single text. Read a file with sopool.data.load, or give {KINDS}.")
    if isinstance(graphs, nx.Graph | Data) and not isinstance(graphs, Batch):
        raise DataError("a single graph was given: put it into a list.")
    refuse_table(graphs)
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
"""Labels that graphs carry are left out here, since they may be of any type, see ``labels.own_labels``; and so are
weights of edges, which no network uses, so that graphs with and without them go together."""
