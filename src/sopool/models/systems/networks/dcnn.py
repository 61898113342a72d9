"""DCNN: what a diffusion finds after each number of steps, averaged over the nodes, and one weight for each entry."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sopool.data.analysis.diffusion import visits
from sopool.data.extras import Extra, NodeRows
from sopool.data.graphs import PackedGraphs
from sopool.models.systems import Recipe, trained
from sopool.ops import segment_gram

MOST_HOPS = 5
"""The largest number of steps of a diffusion."""


@dataclass(frozen=True)
class Visits(Extra):
    """The share of each node after each number of steps of a diffusion ``[N, hops + 1]``.

    Args:
        hops: The largest number of steps.
    """

    hops: int

    @property
    def key(self) -> str:
        """The number of steps, and the version of the method."""
        return f"{self.hops}-1"

    def build(self, store: PackedGraphs, cached: bool = True) -> NodeRows:
        """Return the shares, which take less time to compute than to read from a file."""
        return NodeRows(torch.from_numpy(visits(store.to("cpu"), self.hops)))


@trained(
    "dcnn",
    sees="features that a diffusion of up to 1, 3 or 5 steps finds, averaged over the nodes it starts from",
    paper="Atwood and Towsley, 2016",
    cost="h N",
    recipe=Recipe(epochs=100, steps=None, batch_size=10, lr=0.05, optimizer="adagrad"),
    grid={"hops": (3, 1, 5)},
    extras={"visits": Visits(MOST_HOPS)},
)
class DiffusionConvolutions(torch.nn.Module):
    r"""The diffusion-convolutional neural network for graphs.

    .. math:: \mathrm{softmax}(\tanh(W \odot Z) \, U + b), \quad Z_h = \tfrac{1}{n} 1^T P^h X,
        \quad P_{ij} = A_{ij} / (d_j + 1)

    Since the mean over the nodes commutes with the elementwise product, the shares 1^T P^h / n of the nodes are
    computed once for a data set, and Z is one product of shares and features for each graph.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Not used: the network has no hidden layer.
        hops: The largest number of steps ``H`` of the diffusion, at most 5. Default: ``3``.
    """

    draws = False

    def __init__(self, in_channels: int, out_channels: int, hidden: int, hops: int = 3) -> None:
        super().__init__()
        if not 0 <= hops <= MOST_HOPS:
            raise ValueError(f"hops={hops}: it must be from 0 to {MOST_HOPS}.")
        self.weight = torch.nn.Parameter(torch.randn(hops + 1, in_channels))
        self.head = torch.nn.Linear((hops + 1) * in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, visits: Tensor) -> Tensor:
        """Return scores ``[G, C]`` of graphs with features ``[N, F]`` and shares of nodes ``[N, 6]``."""
        shares = visits[:, : len(self.weight)].to(x.dtype)
        found = segment_gram(shares, x, index=batch)  # [G, H + 1, F]
        scores: Tensor = self.head((self.weight * found).tanh().flatten(1))
        return scores
