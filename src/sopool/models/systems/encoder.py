"""The graph convolutions that DiffPool and EigenGCN have at each of their levels."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import BatchNorm

from sopool.ops.message_passing.neighbors import Adjacency, aggregate


class NormalizedConvolution(torch.nn.Module):
    r"""Graph convolution whose output rows have the length 1.

    .. math:: y_i = \frac{z_i}{\|z_i\|}, \quad Z = A H W + b \quad \text{or} \quad Z = (A + I) H W + b

    Args:
        in_channels: Number of input features.
        out_channels: Number of output features.
        loops: Whether a node aggregates itself beside its neighbors.
    """

    def __init__(self, in_channels: int, out_channels: int, loops: bool) -> None:
        super().__init__()
        self.loops = loops
        self.linear = torch.nn.Linear(in_channels, out_channels)
        torch.nn.init.xavier_uniform_(self.linear.weight, torch.nn.init.calculate_gain("relu"))

    def forward(self, x: Tensor, neighbors: Adjacency) -> Tensor:
        """Apply the layer to node features ``[N, F]``."""
        weight = self.linear.weight
        if weight.shape[0] < weight.shape[1]:  # aggregate fewer columns
            return F.normalize(self._aggregate(x @ weight.t(), neighbors) + self.linear.bias)
        return F.normalize(self.linear(self._aggregate(x, neighbors)))

    def _aggregate(self, x: Tensor, neighbors: Adjacency) -> Tensor:
        """Return A X or (A + I) X."""
        total = aggregate(x, neighbors, "sum")
        return total if self.loops else total - x


class ConvolutionStack(torch.nn.Module):
    """Three convolutions with ReLU and batch norm between them; their outputs are concatenated.

    Args:
        in_channels: Number of input features.
        hidden: Width of the first two layers.
        last: Width of the last layer.
        loops: Whether a node aggregates itself beside its neighbors. Default: ``False``.
    """

    def __init__(self, in_channels: int, hidden: int, last: int, loops: bool = False) -> None:
        super().__init__()
        widths = [in_channels, hidden, hidden, last]
        self.layers = torch.nn.ModuleList(NormalizedConvolution(*pair, loops) for pair in pairwise(widths))
        self.norms = torch.nn.ModuleList(BatchNorm(hidden, allow_single_element=True) for _ in self.layers[1:])
        self.out_channels = sum(widths[1:])

    def forward(self, x: Tensor, neighbors: Adjacency) -> Tensor:
        """Return the outputs of all layers for node features ``[N, F]``."""
        first, second, third = self.layers
        before, between = self.norms
        x = before(first(x, neighbors).relu())
        y = between(second(x, neighbors).relu())
        return torch.cat([x, y, third(y, neighbors)], 1)


def dense_head(in_channels: int, out_channels: int) -> torch.nn.Sequential:
    """Return a layer of width 50, ReLU and the scores."""
    return torch.nn.Sequential(
        torch.nn.Linear(in_channels, 50), torch.nn.ReLU(inplace=True), torch.nn.Linear(50, out_channels)
    )
