"""The features of nodes, kept small, and which of their columns some graphs use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError

GraphSelection = Tensor | np.ndarray | Sequence[int] | None
"""Numbers of graphs, or a mask; None for all."""


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """Features of the N nodes of a store, kept small: a one-hot part is one number per node, not a row of zeros."""

    codes: Tensor
    """The column that is one in each of c one-hot parts [N, c], int32."""
    fallback: Tensor
    """Where the nodes of a column go when its value must not be used [width], int64: to the part's column for unknown
    values, or -1 if it has none. A column that may always be used has its own number here."""
    dense: Tensor | None = None
    """Numbers [N, d], float32."""
    dense_columns: Tensor | None = None
    """The columns of the numbers [d], int64."""

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.fallback.numel()

    @property
    def unknown(self) -> int:
        """How many nodes have a value that is not known."""
        elsewhere = ~self._always & (self.fallback >= 0)
        slots = torch.zeros_like(elsewhere).index_fill(0, self.fallback[elsewhere], True)
        return int(slots[self.codes.long()].any(1).sum())

    def rows(self, nodes: Tensor | None = None, codes: Tensor | None = None) -> Tensor:
        """The features of some nodes, or of all, as a matrix [n, width], float32; ``codes`` if not their own."""
        if codes is None:
            codes = self.codes if nodes is None else self.codes.index_select(0, nodes)
        rows = torch.zeros(codes.shape[0], self.width, device=codes.device).scatter_(1, codes.long(), 1.0)
        return self.add_dense(rows, nodes)

    def add_dense(self, rows: Tensor, nodes: Tensor | None = None) -> Tensor:
        """Put the numbers of some nodes, or of all, into their columns of ``rows`` [n, width]."""
        if self.dense is not None and self.dense_columns is not None:
            rows.index_copy_(1, self.dense_columns, self.dense if nodes is None else self.dense.index_select(0, nodes))
        return rows

    def stretch(self, first: int, last: int) -> "NodeFeatures":
        """Those of the nodes ``first`` to ``last``, the latter left out; shared, not copied."""
        dense = None if self.dense is None else self.dense[first:last]
        return replace(self, codes=self.codes[first:last], dense=dense)

    def to(self, device: torch.device | str) -> "NodeFeatures":
        """The same features on another device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **moved)

    def seen(self, store: PackedGraphs, graphs: GraphSelection) -> Tensor:
        """Which columns some graphs of the store use [width], bool; those that may always be used are set as well."""
        return self.used(nodes_of(store, graphs).to(self.codes.device))

    def used(self, nodes: Tensor) -> Tensor:
        """Which columns some nodes use [width], bool, given by number or as a mask; see :meth:`seen`."""
        return self._always.index_fill_(0, self.codes[nodes].flatten().long(), True)

    def substitutes(self, seen: Tensor) -> Tensor:
        """The column to use for each column [..., width], int64, given which are ``seen`` [..., width]; -1 for none.

        With a row of ``seen`` for each of many models, ``substitutes(seen)[model, codes]`` are the codes for each.
        """
        return torch.where(seen, torch.arange(self.width, device=self.fallback.device), self.fallback)

    @property
    def _always(self) -> Tensor:
        return self.fallback == torch.arange(self.width, device=self.fallback.device)


def nodes_of(store: PackedGraphs, graphs: GraphSelection) -> Tensor:
    """Which nodes belong to some graphs of a store [N], bool."""
    count = len(store)
    if graphs is None:
        return torch.ones(store.num_nodes, dtype=torch.bool, device=store.device)
    chosen = torch.as_tensor(graphs if isinstance(graphs, Tensor) else np.array(graphs), device=store.device)
    if chosen.dtype == torch.bool and chosen.shape == (count,):
        chosen = chosen.nonzero()
    elif chosen.numel() and (chosen.dtype == torch.bool or chosen.is_floating_point()):
        raise DataError(
            f"graphs must be whole numbers, or a mask of {count}; found {chosen.dtype} {list(chosen.shape)}."
        )
    chosen = chosen.long()
    wrong = chosen[(chosen < 0) | (chosen >= count)]
    if wrong.numel():
        raise DataError(f"there is no graph {int(wrong[0])}: {store.name} has {count}, numbered from 0.")
    member = torch.zeros(count, dtype=torch.bool, device=store.device).index_fill_(0, chosen.flatten(), True)
    return member.repeat_interleave(store.sizes, output_size=store.num_nodes)
