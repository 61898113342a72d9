"""Readouts that were tried in the search (see docs/results/search.md), and did not earn a place in the package."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sopool.nn import BilinearSecondOrderAggregation
from sopool.nn.aggr.symmetric import SymmetricAggregation
from sopool.nn.layers import project
from sopool.ops import segment_gram, segment_mean, segment_sum
from sopool.ops.many_models.model_rows import EPS, MOMENTUM


class StandardizedSecondOrderAggregation(SymmetricAggregation):
    r"""The moments of mapped features that are standardised over all nodes of a batch, and scaled by the size.

    .. math::
        Z = (H W - \mu) / \sigma, \quad n^{-p} \, (Z^{\top} Z, \; Z^{\top} \mathbf{1})

    After a ReLU all features are positive, and H^T H is mostly the product of their means, times the size of the graph.
    Taking away the mean of a graph loses what tells graphs apart (CovPool); this takes away that of all nodes.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, rank: int = 32, moments: Sequence[int] = (1, 2), power: float = 0.5) -> None:
        super().__init__(channels, rank, triangle=True, moments=moments)
        self.power = power
        self.register_buffer("running_mean", torch.zeros(rank))
        self.register_buffer("running_var", torch.ones(rank))

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """The moments of H W are corrected afterwards, graph by graph: the nodes are read once."""
        z = project(x, self.weight, ptr, order)
        rank = z.shape[1]
        models = self.running_mean.numel() // rank
        second = segment_gram(z, z, ptr, order=order).view(models, -1, rank, rank)
        first = segment_sum(z, ptr, order).view(models, -1, rank)
        size = ptr.diff().to(z.dtype).view(models, -1, 1)
        mean, scale = self._statistics(first, second, size)
        cross = first.unsqueeze(3) * mean.unsqueeze(2)
        second = second - cross - cross.transpose(2, 3) + size.unsqueeze(3) * mean.unsqueeze(3) * mean.unsqueeze(2)
        shrink = size.clamp(min=1).pow(-self.power)
        second = second * scale.unsqueeze(3) * scale.unsqueeze(2) * shrink.unsqueeze(3)
        out = self._finish(second.flatten(0, 1), ptr)
        first = (first - size * mean) * scale * shrink
        return out if 1 not in self.moments else torch.cat([out, first.flatten(0, 1)], dim=1)

    def _statistics(self, first: Tensor, second: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and one over the deviation of all nodes [M, 1, rank], as a batch norm has them."""
        mean = self.running_mean.view(len(first), -1)
        variance = self.running_var.view(len(first), -1)
        if self.training and first.shape[1]:
            nodes = size.sum(1)
            running_mean = mean
            running_var = variance
            mean = first.sum(1) / nodes
            variance = (second.diagonal(dim1=2, dim2=3).sum(1) / nodes - mean.square()).clamp(min=0)
            with torch.no_grad():
                running_mean.lerp_(mean, MOMENTUM)
                running_var.lerp_(variance * nodes / (nodes - 1).clamp(min=1), MOMENTUM)
        return mean.unsqueeze(1), (variance + EPS).rsqrt().unsqueeze(1)


class BothMomentsAggregation(BilinearSecondOrderAggregation):
    r"""The first moment of H, all of it, beside the second of H W: with a linear head, Sum/Avg is a special case.

    For training alone: it has no `triangle` or `moments`, and can be neither folded nor explained.
    """

    @property
    def out_channels(self) -> int:
        """f + r^2."""
        return self.channels + self.rank**2

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """The mean of H if the second moment is divided by the size."""
        mean = self.normalize is not None and "size" in self.normalize
        first = segment_mean(x, ptr, order) if mean else segment_sum(x, ptr, order)
        return torch.cat([first, super().pool(x, ptr, order)], dim=1)
