"""GCAPS-CNN: layers whose capsules carry moments of the neighbors, and the covariance of all nodes as the readout."""

import torch
from torch import Tensor
from torch_geometric.nn import BatchNorm

from sopool.data.analysis.resistance import BINS
from sopool.data.extras import ResistanceHistograms
from sopool.models.systems import Recipe, trained
from sopool.nn import CovarianceAggregation
from sopool.ops.message_passing.neighbors import Neighbors, aggregate, neighbors_of

HOPS = 2
"""The number of steps that a layer sees."""
LAST = 16
"""The width of a capsule of the last layer, whose covariance has a number for each pair of features."""
DENSE = 128
"""The width of the dense layer."""
DROPPED = 0.5
"""The fraction of it that dropout sets to zero."""


class CapsuleLayer(torch.nn.Module):
    r"""One layer of graph capsules: capsule p reads the p-th powers of capsule p of the layer before.

    .. math:: Y_p = \mathrm{ReLU}(\mathrm{BN}(\sum_k P^k X_p^{\odot p} W_{pk})), \quad P = D^{-1} (A + I)

    Args:
        in_channels: Number of input features of a capsule ``F``.
        out_channels: Number of output features of a capsule ``H``.
        moments: Number of capsules ``P``.
    """

    def __init__(self, in_channels: int, out_channels: int, moments: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(moments, (HOPS + 1) * in_channels, out_channels))
        for capsule in self.weight:
            torch.nn.init.xavier_uniform_(capsule)
        self.norm = BatchNorm(moments * out_channels, allow_single_element=True)

    def forward(self, x: Tensor, neighbors: Neighbors) -> Tensor:
        """Return the capsules ``[N, P, H]`` of nodes with capsules ``[N, P, F]``."""
        powers = torch.stack([capsule**order for order, capsule in enumerate(x.unbind(1), 1)], 1)
        hops = [powers.flatten(1)]
        for _ in range(HOPS):
            hops.append(aggregate(hops[-1], neighbors, "mean"))
        seen = torch.cat([hop.view_as(powers) for hop in hops], 2)
        out = torch.bmm(seen.transpose(0, 1), self.weight).transpose(0, 1)
        normed: Tensor = self.norm(out.flatten(1)).relu()
        return normed.view_as(out)


@trained(
    "gcaps-cnn",
    sees="moments of the neighbors in four steps, the covariance of all nodes, and effective resistances",
    paper="Verma and Zhang, 2018",
    cost="4 P E + N (16 P)^2; once n^3",
    recipe=Recipe(epochs=300, steps=None, lr=0.001),
    grid={"hidden": (16, 32), "moments": (2, 3)},
    extras={"resistances": ResistanceHistograms()},
)
class GraphCapsules(torch.nn.Module):
    r"""The graph capsule network: two capsule layers, and the covariance and the mean of the nodes as the readout.

    .. math:: h_G = \left[\tfrac{1}{n} (H - \mathbf{1} \bar H)^T (H - \mathbf{1} \bar H), \; \bar H\right]

    Nodes start with their features and the logarithm of their degree. Of the covariance, the upper triangle is kept
    (:class:`~sopool.nn.CovarianceAggregation`). The histogram of the graph's effective resistances is appended, a
    dense layer of 128 with dropout 0.5 follows, and then the scores.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Width of a capsule of the first layer. Those of the second have 16 features.
        moments: Number of capsules ``P``, each for one moment of the neighbors. Default: ``2``.
    """

    draws = False

    def __init__(self, in_channels: int, out_channels: int, hidden: int, moments: int = 2) -> None:
        super().__init__()
        if moments < 1:
            raise ValueError(f"moments={moments}: it must be at least 1.")
        self.moments = moments
        self.first = CapsuleLayer(in_channels + 1, hidden, moments)
        self.second = CapsuleLayer(hidden, LAST, moments)
        self.readout = CovarianceAggregation(moments * LAST, triangle=True, normalize="size", moments=(1, 2))
        pooled = self.readout.out_channels
        assert pooled is not None
        width = pooled + BINS
        self.norm = BatchNorm(width, allow_single_element=True)
        self.dense = torch.nn.Linear(width, DENSE)
        self.drop = torch.nn.Dropout(DROPPED)
        self.head = torch.nn.Linear(DENSE, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, *, resistances: Tensor) -> Tensor:
        """Return scores ``[G, C]`` of graphs with features ``[N, F]``."""
        neighbors = neighbors_of(edge_index, x.shape[0])
        degree = neighbors.ptr.diff().to(x.dtype).log()  # of the node itself and its neighbors, so at least 0
        x = torch.cat([x, degree.unsqueeze(1)], 1)
        capsules = self.first(x.unsqueeze(1).expand(-1, self.moments, -1), neighbors)
        capsules = self.second(capsules, neighbors)
        pooled = torch.cat([self.readout(capsules.flatten(1), batch), resistances.to(x.dtype)], 1)
        scores: Tensor = self.head(self.drop(self.dense(self.norm(pooled)).relu()))
        return scores
