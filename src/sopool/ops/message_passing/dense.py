"""Small graphs with a weight for every pair of nodes, as a pooling to K nodes returns them."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

EPS = 1e-6


class Dense(NamedTuple):
    """Graphs of K nodes each, with weighted edges; node h of graph g is row ``g * K + h``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.dense import Dense
        >>> graphs = Dense(torch.tensor([[[0.0, 2.0], [2.0, 0.0]]]))  # one graph of two nodes
        >>> graphs.aggregate(torch.tensor([[1.0], [3.0]]), "sum").flatten()
        tensor([7., 5.])
    """

    weights: Tensor
    """The weight A_ij of node j for node i, ``[G, K, K]``. Weights are learned, so they have a gradient and may be
    negative."""

    def degrees(self, x: Tensor) -> Tensor:
        """Return 1 + the sum of the absolute weights of the neighbors of each node of ``x``, ``[G * K, 1]``."""
        return 1 + self.weights.abs().sum(2).view(-1, 1)

    def aggregate(self, x: Tensor, how: Literal["sum", "mean", "max"]) -> Tensor:
        """Return X + A X of each graph, divided by the degrees if ``how`` is ``"mean"``.

        Args:
            x: Node features ``[G * K, F]``.
            how: ``"sum"`` or ``"mean"``; ``"max"`` raises an error, since edges have weights.

        Returns:
            Node features ``[G * K, F]``.
        """
        if how == "max":
            raise ValueError(
                "how='max' is not defined for edges with weights, as in graphs that are pooled to k nodes: use a GNN "
                "that sums or averages, such as gin-0 or gcn, or another pooling."
            )
        total = x + (self.weights @ x.reshape(*self.weights.shape[:2], x.shape[1])).view_as(x)
        return total if how == "sum" else total / self.degrees(x)

    def squared_weights(self, ptr: Tensor, like: Tensor) -> Tensor:
        """Return the sum of all A_ij^2 of each graph ``[G]``."""
        return self.weights.square().sum((1, 2))


def normalize_by_degree(adj: Tensor) -> Tensor:
    r"""Divide signed adjacency matrices ``[G, K, K]`` by absolute degrees.

    .. math:: A_{ij} / \sqrt{\sum_l |A_{il}| \sum_l |A_{lj}|}

    The entries are first divided by the largest one, so that the ``EPS`` added to the degrees is relative to it.
    """
    largest = adj.abs().amax((1, 2), keepdim=True)
    adj = adj / torch.where(largest > 0, largest, 1.0)
    size = adj.abs()
    out_degree = size.sum(2, keepdim=True)
    in_degree = size.sum(1, keepdim=True)
    return adj * (out_degree + EPS).rsqrt() * (in_degree + EPS).rsqrt()
