"""Convert a graph to and from PyG ``Data``."""

import warnings
from collections.abc import Iterable
from reprlib import repr as show
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from sopool.data.graphs import KINDS, PackedGraphs
from sopool.data.names import check_column_names
from sopool.data.pack import Graph
from sopool.errors import DataError

if TYPE_CHECKING:  # importing PyG is slow
    from torch_geometric.data import Data

PYG_KEYS = (
    *("x", "edge_index", "edge_attr", "edge_weight", "y", "u"),
    *("node_label", "edge_label", "node_category", "edge_category", "batch", "ptr"),
)
"""The tensors of PyG data that :func:`from_pyg` reads, and those that say which node is of which graph."""
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class PygFeatures(NamedTuple):
    """The tensors of PyG data with numbers and categories of nodes or edges."""

    field: str
    """The field of :class:`Graph` with the categories."""
    numbers: str
    """The tensor with measures, unless it has the categories."""
    codes: str | None
    """The tensor with categories, if any."""
    names: list[str]
    """The names of its columns; numbered if empty."""

    @classmethod
    def of(cls, graphs: "list[Data]", kind: str, numbers: str, asked: bool | list[str]) -> "PygFeatures":
        """Find the tensor of categories, which ``asked`` may request; ``kind`` is ``"node"`` or ``"edge"``."""
        names = [] if isinstance(asked, bool) else asked
        field = f"{kind}_categories"
        check_column_names(KINDS[field], names)
        own = f"{kind}_category"
        if any(data.get(own) is not None for data in graphs):
            return cls(field, numbers, own, names)
        if asked and graphs and all(data.get(numbers) is None for data in graphs):
            raise DataError(f"{field}={show(asked)} was given, but the graphs have no {numbers}.")
        return cls(field, numbers, numbers if asked else None, names)

    def attributes(self, data: "Data", number: int) -> Any:
        """Return the measures, float32 ``[N, F]``, or None."""
        values = None if self.codes == self.numbers else _tensor(data, self.numbers, number)
        return None if values is None else _columns(values).float().numpy()

    def categories(self, data: "Data", number: int) -> dict[str, list[int]] | None:
        """Return the categories ``[N]`` of each column, or None."""
        found = None if self.codes is None else _tensor(data, self.codes, number)
        if found is None:
            return None
        values = _columns(found)
        if values.numel() and values.dtype.is_floating_point:
            raise DataError(
                f"graph {number}: {self.codes} is of type {values.dtype}, but categories are whole numbers: convert it "
                f"with {self.codes}.long(), or leave {self.field} out if it has measures."
            )
        names = self.names or [f"category {place}" for place in range(values.shape[1])]
        if len(names) != values.shape[1]:
            raise DataError(
                f"graph {number}: {self.codes} has {values.shape[1]} columns, but {self.field} names {len(names)}: "
                f"{names}."
            )
        return dict(zip(names, values.long().t().tolist(), strict=True))


def warn_of_codes(graphs: "list[Data]", features: Iterable[PygFeatures]) -> None:
    """Warn once if measures are whole numbers, which may be codes."""
    whole = [
        one
        for one in features
        if one.codes != one.numbers and any(_is_whole(_tensor(data, one.numbers, i)) for i, data in enumerate(graphs))
    ]
    if whole:
        keys = " and ".join(one.numbers for one in whole)
        asking = " and ".join(f"{one.field}=True" for one in whole)
        warnings.warn(
            f"{keys} of the graphs hold whole numbers, which are read as measures and would be standardized. If they "
            f"are codes, as those of PyG's from_smiles and of OGB, give {asking}. If they are measures, convert them "
            "with float().",
            stacklevel=3,
        )


def _is_whole(values: torch.Tensor | None) -> bool:
    return values is not None and values.numel() > 0 and values.dtype in INTEGERS


def warn_of_tensors(graphs: "list[Data]") -> None:
    """Warn once of tensors that are not read."""
    unread = {
        key: None
        for data in graphs
        for key, value in data.to_dict().items()
        if key not in PYG_KEYS and isinstance(value, torch.Tensor)
    }
    if unread:
        warnings.warn(
            f"from_pyg does not read {', '.join(unread)} of the graphs. Numbers of nodes are read from x, those of "
            "edges from edge_attr, and those of graphs from u.",
            stacklevel=3,
        )


def graph_of_data(
    number: int, data: "Data", label: Any, nodes: PygFeatures, edges: PygFeatures, graph_attributes: list[str]
) -> Graph:
    """Convert PyG data, those with this ``number`` in messages."""
    pairs = _tensor(data, "edge_index", number)
    if pairs is None:
        raise DataError(f"graph {number} has no edge_index: pass Data with edge_index [2, edges].")
    if pairs.numel() and (pairs.dim() != 2 or len(pairs) != 2):
        raise DataError(f"graph {number} has an edge_index of shape {list(pairs.shape)}, expected [2, edges].")
    node_labels, edge_labels = (_tensor(data, key, number) for key in ("node_label", "edge_label"))
    weights = _tensor(data, "edge_weight", number)
    return Graph(
        num_nodes=int(data.num_nodes or 0),
        edges=pairs.t().numpy(),
        label=int(label) if isinstance(label, float) and label.is_integer() else label,
        node_labels=None if node_labels is None else node_labels.tolist(),
        node_attributes=nodes.attributes(data, number),
        node_categories=nodes.categories(data, number),
        edge_labels=None if edge_labels is None else edge_labels.tolist(),
        edge_attributes=edges.attributes(data, number),
        edge_categories=edges.categories(data, number),
        edge_weights=None if weights is None else weights.float().numpy(),
        graph_attributes=_graph_attributes(data, number, graph_attributes),
    )


def _graph_attributes(data: "Data", number: int, names: list[str]) -> dict[str, float] | list[float] | None:
    """Return the numbers given beside a graph in ``u``, by their names if they have any."""
    found = _tensor(data, "u", number)
    if found is None and names:
        raise DataError(f"graph {number} has no u, but graph_attributes names its columns: {names}.")
    if found is None:
        return None
    if found.dim() > 2 or (found.dim() == 2 and len(found) != 1):
        raise DataError(f"graph {number}: u has shape {list(found.shape)}, expected [1, D], one row for the graph.")
    values: list[float] = found.flatten().tolist()
    if names and len(names) != len(values):
        raise DataError(
            f"graph {number}: u has {len(values)} columns, but graph_attributes names {len(names)}: {names}."
        )
    return dict(zip(names, values, strict=True)) if names else values


def _tensor(data: "Data", key: str, number: int) -> torch.Tensor | None:
    """Return an attribute as a dense CPU tensor of at least one dimension, or None if it is missing."""
    if data.get(key) is None:
        return None
    try:
        found = torch.as_tensor(data[key]).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"graph {number}: {key} must be a tensor of numbers ({error}).") from error
    if found.is_complex():
        raise DataError(f"graph {number}: {key} holds complex numbers, expected real ones.")
    found = found if found.layout == torch.strided else found.to_dense()
    return found if found.dim() else found.reshape(1)


def _columns(values: torch.Tensor) -> torch.Tensor:
    """Return values ``[N]`` or ``[N, ...]`` as ``[N, F]``."""
    return values.unsqueeze(1) if values.dim() == 1 else values.flatten(1)


def data_of_graph(graph: PackedGraphs) -> "Data":
    """Convert a store of one graph."""
    from torch_geometric.data import Data

    data = Data(edge_index=graph.edge_index.long(), num_nodes=graph.num_nodes)
    optional = {
        "x": graph.node_attributes,
        "y": graph.targets if graph.labels is None else graph.labels,
        "node_label": None if graph.node_labels is None else graph.node_labels.long(),
        "edge_label": None if graph.edge_labels is None else graph.edge_labels.long(),
        "node_category": None if graph.node_categories is None else graph.node_categories.long(),
        "edge_category": None if graph.edge_categories is None else graph.edge_categories.long(),
        "edge_attr": graph.edge_attributes,
        "edge_weight": graph.edge_weights,
        "u": graph.graph_attributes,
    }
    for key, value in optional.items():
        if value is not None:
            data[key] = value
    return data
