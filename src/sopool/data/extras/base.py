"""The base class of extras, and tables with one row for each node, edge or graph."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs, take_segments
from sopool.ops.message_passing.extras import Tables


class Extra(ABC):
    """Base class of what a model needs of graphs besides their edges, which is computed once for a data set.

    An extra is a small frozen dataclass: its fields say what is computed, and runs with equal extras share the tables.
    It is called ``build(store)`` for all graphs, and its tables ``take(graphs, ptr, nodes)`` for each batch; numbers
    that it takes have a dtype of their own, to be cast to that of ``x``. It must not use labels of graphs or targets,
    nor may what a graph has depend on the other graphs.

    Examples:
        >>> from dataclasses import dataclass
        >>> import torch
        >>> from sopool.data import load
        >>> from sopool.data.extras import Extra, NodeRows
        >>> @dataclass(frozen=True)
        ... class Degrees(Extra):
        ...     most: int
        ...
        ...     @property
        ...     def key(self):
        ...         return f"{self.most}"
        ...
        ...     def build(self, store, cached=True):
        ...         target = store.batch(range(len(store))).edge_index[1]
        ...         degrees = torch.bincount(target, minlength=store.num_nodes)
        ...         return NodeRows(degrees.clamp(max=self.most))
        >>> graphs = load("MUTAG")
        >>> tables = Degrees(most=2).build(graphs)
        >>> tables.take(torch.tensor([0]), graphs.node_ptr[:2], torch.arange(5))
        tensor([2, 2, 2, 2, 2])
    """

    slow: ClassVar[bool] = False
    """Whether it takes so long that a file in the cache is worthwhile for a part of a data set too, such as each fold
    of an estimate."""

    def reads(self, store: PackedGraphs) -> tuple[str, ...]:
        """Return which of ``"edge_labels"`` and ``"edge_attributes"`` of these graphs it reads. Default: neither.

        A model that is fitted gives it no others, of nodes only the labels and attributes that it encodes, and labels
        with the numbers that they had in training, whatever their numbers in another store.
        """
        return ()

    @property
    @abstractmethod
    def key(self) -> str:
        """A text that differs if the same graphs give another result: part of the keys of runs and cache files."""

    @abstractmethod
    def build(self, store: PackedGraphs, cached: bool = True) -> Tables[Any]:
        """Return the tables of graphs.

        Args:
            store: The graphs, on a CPU.
            cached: Whether to use the cache, see :func:`kept_arrays`, if computing takes long. Graphs that are
                predicted only once would fill it. Default: ``True``.
        """


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Tables with one row for each node.

    Args:
        rows: The rows of all nodes ``[N, ...]``.
    """

    rows: Tensor

    def to(self, device: torch.device | str) -> "NodeRows":
        """Return the tables on another device."""
        return NodeRows(self.rows.to(device))

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Tensor:
        """Return the rows of the nodes of a batch."""
        return self.rows.index_select(0, nodes)


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Tables with one row for each edge, in the order in which networks get the edges: by target, then by source.

    Args:
        edge_ptr: The position of each graph's first edge ``[G + 1]``.
        rows: The rows of all edges ``[E, ...]``.
    """

    edge_ptr: Tensor
    rows: Tensor

    @classmethod
    def of(cls, store: PackedGraphs, rows: Tensor) -> "EdgeRows":
        """Return the tables of rows that are in the order of the store; those of a repeated edge are sorted."""
        source, target = store.edge_index.numpy()
        graph = np.repeat(np.arange(len(store)), store.edge_ptr.diff().numpy())
        order = np.lexsort((*rows.reshape(len(rows), rows.shape[1:].numel()).numpy().T, source, target, graph))
        return cls(store.edge_ptr, rows[torch.from_numpy(order)])

    def to(self, device: torch.device | str) -> "EdgeRows":
        """Return the tables on another device."""
        return EdgeRows(self.edge_ptr.to(device), self.rows.to(device))

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Tensor:
        """Return the rows of the edges of a batch."""
        return self.rows.index_select(0, take_segments(self.edge_ptr, graphs)[1])


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Tables with one row for each graph.

    Args:
        rows: The rows of all graphs ``[G, ...]``.
    """

    rows: Tensor

    def to(self, device: torch.device | str) -> "GraphRows":
        """Return the tables on another device."""
        return GraphRows(self.rows.to(device))

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Tensor:
        """Return the rows of the graphs of a batch."""
        return self.rows.index_select(0, graphs)
