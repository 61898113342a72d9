"""Store the features of nodes in compact form."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sopool.data.features.numbers import Moments, Numbers
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError

GraphSelection = Tensor | np.ndarray | Sequence[int] | None
"""The indices of graphs, or a mask; None selects all graphs."""


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """The features of the N nodes of a store in compact form: a one-hot part takes one number per node.

    Encoders create it; :meth:`rows` returns the features as a matrix.

    Args:
        codes: The column that is 1 in each of C one-hot parts, int32 ``[N, C]``.
        fallback: The column that replaces each of the F columns where its value must not be used, int64 ``[F]``.
        numbers: The values of the D real-valued columns, with their mean and spread. Default: None.
        number_columns: The indices of the real-valued columns, int64 ``[D]``. Default: None.

    Examples:
        >>> from sopool.data import NodeLabelEncoder, load
        >>> graphs = load("MUTAG")
        >>> features = NodeLabelEncoder().fit(graphs).transform(graphs)
        >>> features.rows().shape
        torch.Size([3371, 8])
    """

    codes: Tensor
    """The column that is 1 in each of C one-hot parts, int32 ``[N, C]``."""
    fallback: Tensor
    """The column that replaces each column where its value must not be used, int64 ``[F]``: the part's column for
    unknown values, or -1 if it has none. A column that may always be used has its own index here."""
    numbers: Numbers | None = None
    """The values of the D real-valued columns, as they were given, with the moments by which they are standardized."""
    number_columns: Tensor | None = None
    """The indices of the real-valued columns, int64 ``[D]``."""

    @property
    def width(self) -> int:
        """The number of columns F."""
        return self.fallback.numel()

    @property
    def unknown(self) -> int:
        """The number of nodes with a value that was not seen in fitting."""
        elsewhere = ~self._always & (self.fallback >= 0)
        slots = torch.zeros_like(elsewhere).index_fill(0, self.fallback[elsewhere], True)
        return int(slots[self.codes.long()].any(1).sum())

    def rows(
        self,
        nodes: Tensor | None = None,
        codes: Tensor | None = None,
        moments: Moments | None = None,
        models: Tensor | None = None,
    ) -> Tensor:
        """Return the features of some or all nodes as a matrix, float32 ``[n, F]``.

        Args:
            nodes: The indices of the nodes. Default: None, all nodes.
            codes: The codes to use instead of the nodes' own, ``[n, C]``. Default: None.
            moments: The moments of the real-valued columns, ``[M, D]`` each, to use instead of the encoder's. Default:
                None.
            models: The row of ``moments`` for each node, int64 ``[n]``. Default: None.
        """
        if codes is None:
            codes = self.codes if nodes is None else self.codes.index_select(0, nodes)
        rows = torch.zeros(codes.shape[0], self.width, device=codes.device).scatter_(1, codes.long(), 1.0)
        return self.add_numbers(rows, nodes, moments, models)

    def add_numbers(
        self,
        rows: Tensor,
        nodes: Tensor | None = None,
        moments: Moments | None = None,
        models: Tensor | None = None,
    ) -> Tensor:
        """Write the real-valued columns of some or all nodes into ``rows``, ``[n, F]``, and return it.

        Args:
            rows: The matrix to write to.
            nodes: The indices of the nodes. Default: None, all nodes.
            moments: The moments to use instead of the encoder's, as for :meth:`rows`. Default: None.
            models: The row of ``moments`` for each node, as for :meth:`rows`. Default: None.
        """
        if self.numbers is not None and self.number_columns is not None:
            rows.index_copy_(1, self.number_columns, self.numbers.take(nodes, moments, models))
        return rows

    def stretch(self, first: int, last: int) -> "NodeFeatures":
        """Return the features of the nodes from ``first`` up to but not including ``last``, as views."""
        numbers = None if self.numbers is None else self.numbers.stretch(first, last)
        return replace(self, codes=self.codes[first:last], numbers=numbers)

    def to(self, device: torch.device | str) -> "NodeFeatures":
        """Return the same features on another device.

        Args:
            device: The target device.
        """
        moved = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **moved)

    def seen(self, store: PackedGraphs, graphs: GraphSelection) -> Tensor:
        """Return which columns the nodes of some graphs use or that may always be used, bool ``[F]``.

        Args:
            store: The graphs that the features belong to.
            graphs: The indices of the graphs, or a mask; None for all.
        """
        return self.used(nodes_of(store, graphs).to(self.codes.device))

    def used(self, nodes: Tensor) -> Tensor:
        """Return which columns some nodes use or that may always be used, bool ``[F]``.

        Args:
            nodes: The indices of the nodes, or a mask.
        """
        return self._always.index_fill_(0, self.codes[nodes].flatten().long(), True)

    def substitutes(self, seen: Tensor) -> Tensor:
        """Return the column to use for each column, int64 ``[..., F]``, or -1 for none.

        With a row of ``seen`` for each of M models, ``substitutes(seen)[model, codes]`` are the codes for each model.

        Args:
            seen: Which columns may be used, bool ``[..., F]``.
        """
        return torch.where(seen, torch.arange(self.width, device=self.fallback.device), self.fallback)

    @property
    def _always(self) -> Tensor:
        return self.fallback == torch.arange(self.width, device=self.fallback.device)


def nodes_of(store: PackedGraphs, graphs: GraphSelection) -> Tensor:
    """Return which nodes belong to some graphs of a store, bool ``[N]``."""
    count = len(store)
    if graphs is None:
        return torch.ones(store.num_nodes, dtype=torch.bool, device=store.device)
    chosen = torch.as_tensor(graphs if isinstance(graphs, Tensor) else np.array(graphs), device=store.device)
    if chosen.dtype == torch.bool and chosen.shape == (count,):
        chosen = chosen.nonzero()
    elif chosen.numel() and (chosen.dtype == torch.bool or chosen.is_floating_point()):
        raise DataError(
            f"graphs must be integers or a mask of length {count}, found {chosen.dtype} of shape {list(chosen.shape)}."
        )
    chosen = chosen.long()
    wrong = chosen[(chosen < 0) | (chosen >= count)]
    if wrong.numel():
        raise DataError(f"there is no graph {int(wrong[0])}: {store.name} has {count} graphs, numbered from 0.")
    member = torch.zeros(count, dtype=torch.bool, device=store.device).index_fill_(0, chosen.flatten(), True)
    return member.repeat_interleave(store.sizes, output_size=store.num_nodes)
