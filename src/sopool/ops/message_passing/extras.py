"""What a model needs of a batch of graphs besides their edges, taken from tables of a data set when it is asked for."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

T = TypeVar("T", covariant=True)


class Tables(Protocol[T]):
    """What was computed of all graphs of a data set, from which the part of a batch is taken."""

    def to(self, device: torch.device | str) -> "Tables[T]":
        """Return the tables on another device."""
        ...

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> T:
        """Return the part of a batch of graphs, on the device of the tables.

        Args:
            graphs: The number of each graph of the batch in the data set ``[B]``.
            ptr: The position of each graph's first node in the batch ``[B + 1]``.
            nodes: The number of each node of the batch in the data set ``[N]``.
        """
        ...


class Extras(Mapping[str, Any]):
    """The extras of a batch by name, each taken from its tables once, when it is first asked for.

    Args:
        tables: The tables of the data set by name.
        graphs: The number of each graph of the batch in the data set ``[B]``.
        ptr: The position of each graph's first node in the batch ``[B + 1]``.
        nodes: The number of each node of the batch in the data set ``[N]``.

    Examples:
        >>> import torch
        >>> from sopool.data.extras import NodeRows
        >>> from sopool.ops.message_passing.extras import Extras
        >>> tables = {"mass": NodeRows(torch.tensor([12.0, 1.0, 16.0]))}  # a graph of two nodes, and one of one node
        >>> batch = Extras(tables, torch.tensor([1, 0]), torch.tensor([0, 1, 3]), torch.tensor([2, 0, 1]))
        >>> batch["mass"], batch.stretch(1, 2)["mass"]
        (tensor([16., 12.,  1.]), tensor([12.,  1.]))
    """

    def __init__(self, tables: Mapping[str, Tables[Any]], graphs: Tensor, ptr: Tensor, nodes: Tensor) -> None:
        self._tables = tables
        self._graphs = graphs
        self._ptr = ptr
        self._nodes = nodes
        self._taken: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._taken:
            self._taken[name] = self._tables[name].take(self._graphs, self._ptr, self._nodes)
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def stretch(self, first: int, last: int) -> "Extras":
        """Return the extras of the graphs from ``first`` up to but not including ``last`` that have nodes."""
        ptr = self._ptr[first : last + 1]
        there = ptr.diff() > 0
        nodes = self._nodes[ptr[0] : ptr[-1]]
        own = torch.cat([ptr[:-1][there], ptr[-1:]]) - ptr[0]
        return Extras(self._tables, self._graphs[first:last][there], own, nodes)
