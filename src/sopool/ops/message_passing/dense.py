"""Small graphs with a weight for every pair of nodes: what a pooling to k nodes leaves of a graph."""

from typing import Literal, NamedTuple

from torch import Tensor


class Dense(NamedTuple):
    """Graphs of k nodes each; node h of graph g is row g k + h."""

    weights: Tensor
    """A: the weight of node j for node i [G, k, k]. Learned, so of any sign, and with a gradient."""

    @property
    def degrees(self) -> Tensor:
        """Return 1 + the sum of the absolute weights of each node's neighbors [G k, 1]."""
        return 1 + self.weights.abs().sum(2).view(-1, 1)

    def aggregate(self, x: Tensor, how: Literal["sum", "mean", "max"]) -> Tensor:
        """X + A X, for the mean divided by the degree: [G k, f] -> [G k, f]."""
        if how == "max":
            raise ValueError(
                "The largest value over neighbours is not defined where edges have weights, as in graphs pooled to k "
                "nodes: take a GNN that sums or averages, such as gin-0 or gcn, or another pooling."
            )
        total = x + (self.weights @ x.reshape(*self.weights.shape[:2], x.shape[1])).view_as(x)
        return total if how == "sum" else total / self.degrees
