"""Readouts that were tested in the search (see docs/results/search.md) but did not become part of the package."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sopool.nn import BilinearSecondOrderAggregation
from sopool.nn.aggr.symmetric import SymmetricAggregation
from sopool.nn.layers import project
from sopool.ops import segment_gram, segment_mean, segment_sum
from sopool.ops.many_models.model_rows import EPS, MOMENTUM


class StandardizedSecondOrderAggregation(SymmetricAggregation):
    r"""Moments of mapped features that are standardized over all nodes of a batch, and scaled by the graph size.

    .. math::
        Z = (H W - \mu) / \sigma, \quad n^{-p} \, (Z^{\top} Z, \; Z^{\top} \mathbf{1})

    After a ReLU all features are non-negative, and H^T H is dominated by the product of their means, times the size of
    the graph. Subtracting the mean of each graph discards information that distinguishes graphs (CovPool); this readout
    subtracts the mean over all nodes of the batch instead.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, rank: int = 32, moments: Sequence[int] = (1, 2), power: float = 0.5) -> None:
        super().__init__(channels, rank, triangle=True, moments=moments)
        self.power = power
        self.register_buffer("running_mean", torch.zeros(rank))
        self.register_buffer("running_var", torch.ones(rank))

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Compute the moments of H W and standardize them afterwards for each graph, so that nodes are read once."""
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
        """Return the mean and 1 / deviation of all nodes, ``[M, 1, R]``, as in batch norm."""
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
    """The first moment of H and the second moment of H W; with a linear classifier, Sum/Avg is a special case.

    This is for training only: it has no `triangle` or `moments`, and supports neither folding nor explanations.
    """

    @property
    def out_channels(self) -> int:
        """Return F + R^2."""
        return self.channels + self.rank**2

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Return both moments; the first is the mean of H if the second is divided by the size."""
        mean = self.normalize is not None and "size" in self.normalize
        first = segment_mean(x, ptr, order) if mean else segment_sum(x, ptr, order)
        return torch.cat([first, super().pool(x, ptr, order)], dim=1)
