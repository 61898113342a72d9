"""Graphs as a list of edges, which may have weights and attributes, as PyG stores them."""

from typing import Literal, NamedTuple

from torch import Tensor

from sopool.ops.segment.segments import owners
from sopool.ops.segment.standard import add_rows, total
from sopool.ops.segment.torch_backend import widen


class Edges(NamedTuple):
    """Directed edges; the target of an edge aggregates its source. An edge that occurs twice counts twice.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.edges import Edges
        >>> edges = Edges(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))  # the path 0 - 1 - 2
        >>> edges.aggregate(torch.tensor([[1.0], [2.0], [4.0]]), "sum").flatten()
        tensor([3., 7., 6.])
    """

    edge_index: Tensor
    """The sources and targets ``[2, E]``."""
    weight: Tensor | None = None
    """The weight of each edge ``[E]``; ``None`` means 1. Weights may have a gradient and may be negative."""
    attr: Tensor | None = None
    """Further attributes of each edge ``[E, ...]``, which nothing here uses."""

    def degrees(self, x: Tensor) -> Tensor:
        """Return 1 + the sum of the absolute weights of the edges to each of the N nodes, ``[N, 1]``."""
        one = widen(x.new_ones(x.shape[0]))
        return add_rows(one, self.edge_index[1], self._weights(like=one).abs()).unsqueeze(1)

    def aggregate(self, x: Tensor, how: Literal["sum", "mean", "max"]) -> Tensor:
        """Return X + A X, divided by the degrees if ``how`` is ``"mean"``.

        Args:
            x: Node features ``[N, F]``.
            how: ``"sum"`` or ``"mean"``; ``"max"`` raises an error, since edges may have weights.

        Returns:
            Node features ``[N, F]``.
        """
        if how == "max":
            raise ValueError(
                "how='max' is not defined for edges with weights: use a GNN that sums or averages, such as gin-0 or "
                "gcn."
            )
        rows = widen(x)
        messages = rows.index_select(0, self.edge_index[0])
        if self.weight is not None:
            messages = messages * self._weights(like=rows).unsqueeze(1)
        sums = add_rows(rows, self.edge_index[1], messages)
        return (sums if how == "sum" else sums / self.degrees(x)).to(x.dtype)

    def squared_weights(self, ptr: Tensor, like: Tensor) -> Tensor:
        """Return the sum of all A_ij^2 of each graph ``[G]``, in the dtype of ``like`` ``[N, F]``.

        A_ij is the summed weight of all edges from j to i.
        """
        source, target = self.edge_index
        weights = self._weights(like)
        number = self.edge_index.shape[1]
        # Sorted by the pair of nodes, equal edges are consecutive and have one place in the sum.
        pairs, order = (target * like.shape[0] + source).sort()
        place = pairs.diff(prepend=pairs.new_full((1,), -1)).ne(0).cumsum(0) - 1
        mine = weights.index_select(0, order)
        sums = total(mine, place, number)
        graph = owners(ptr, like.shape[0]).index_select(0, target.index_select(0, order))
        return total(mine * sums.index_select(0, place), graph, ptr.numel() - 1)

    def renumbered(self, place: Tensor) -> "Edges":
        """Return the edges after node i was moved to position ``place[i]``."""
        return self._replace(edge_index=place[self.edge_index])

    def between(self, place: Tensor) -> "Edges":
        """Return the edges between nodes that are kept: ``place`` ``[N]`` has their new numbers, and -1 for others."""
        ends = place[self.edge_index]
        kept = (ends >= 0).all(0)
        weight, attr = (None if values is None else values[kept] for values in (self.weight, self.attr))
        return Edges(ends[:, kept], weight, attr)

    def _weights(self, like: Tensor) -> Tensor:
        if self.weight is None:
            return like.new_ones(self.edge_index.shape[1])
        return self.weight.to(like.dtype)
