"""The label of each edge as an extra, for networks with ``forward(x, edge_index, batch)``."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sopool.data.extras.base import EdgeRows, Extra
from sopool.data.graphs import PackedGraphs


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

    def build(self, store: PackedGraphs, cached: bool = True) -> EdgeRows:
        """Return the labels of all edges."""
        return EdgeRows.of(store, labels_of(store))


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
