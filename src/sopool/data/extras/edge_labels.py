"""The label of each edge as an extra, for networks with ``forward(x, edge_index, batch)``."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sopool.data.extras.base import Extra
from sopool.data.graphs import PackedGraphs, take_segments


@dataclass(frozen=True)
class EdgeLabels(Extra):
    """The label of each edge of a batch ``[E]``, int64, in the order of ``edge_index`` as networks get it.

    Labels are those of the store, numbered from 0. In a store that has only attributes of edges, the label is the
    column of the largest one, which is that of the one if they are one-hot. Without any, all labels are 0.

    Examples:
        >>> import torch
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.extras import EdgeLabels
        >>> graph = Graph(3, [(2, 1), (1, 2), (0, 1), (1, 0)], edge_labels=["b", "b", "a", "a"])
        >>> tables = EdgeLabels().build(pack([graph]))
        >>> tables.take(torch.tensor([0]), torch.tensor([0, 3]), torch.arange(3))  # of (1, 0), (0, 1), (2, 1), (1, 2)
        tensor([0, 0, 1, 1])
    """

    @property
    def key(self) -> str:
        """The version of the method."""
        return "1"

    def reads(self, store: PackedGraphs) -> tuple[str, ...]:
        """Return the labels, or the attributes of graphs that have only these."""
        if store.edge_labels is not None:
            return ("edge_labels",)
        return ("edge_attributes",) if store.edge_attributes is not None and store.edge_attributes.shape[1] else ()

    def build(self, store: PackedGraphs, cached: bool = True) -> "LabelTables":
        """Return the labels, sorted as lists of neighbors are: by target and then by source."""
        labels = labels_of(store)
        source, target = store.edge_index.numpy()
        graph = np.repeat(np.arange(len(store)), store.edge_ptr.diff().numpy())
        order = np.lexsort((labels.numpy(), source, target, graph))
        return LabelTables(store.edge_ptr, labels[torch.from_numpy(order)].int())


@dataclass(frozen=True, eq=False)
class LabelTables:
    """The label of each edge of all graphs."""

    edge_ptr: Tensor
    """The position of each graph's first edge ``[G + 1]``."""
    labels: Tensor
    """The labels of the edges of each graph, sorted by target and then by source ``[E]``, int32."""

    def to(self, device: torch.device | str) -> "LabelTables":
        """Return the tables on another device."""
        return LabelTables(self.edge_ptr.to(device), self.labels.to(device))

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Tensor:
        """Return the labels of the edges of a batch ``[E]``, int64."""
        return self.labels.index_select(0, take_segments(self.edge_ptr, graphs)[1]).long()


def labels_of(store: PackedGraphs) -> Tensor:
    """Return the label of each edge in the order of the store ``[E]``, int64."""
    if store.edge_labels is not None:
        return store.edge_labels.long()
    if store.edge_attributes is not None and store.edge_attributes.shape[1]:
        return store.edge_attributes.argmax(1)
    return torch.zeros(store.num_edges, dtype=torch.long)


def edge_kinds(train: PackedGraphs) -> int:
    """Return the number of labels, 1 + the largest label of an edge, for ``fitted={"kinds": edge_kinds}``.

    Args:
        train: The training graphs of a fold. Other graphs may have labels from this number on.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.extras import edge_kinds
        >>> edge_kinds(load("MUTAG"))
        4
    """
    labels = labels_of(train)
    return int(labels.max()) + 1 if len(labels) else 1
