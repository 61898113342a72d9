"""DGCNN: graph convolutions, whose last layer says in which order 1-D convolutions read the nodes."""

from itertools import pairwise

import torch
from torch import Tensor

from sopool.models.presets import sort_size
from sopool.models.systems import Recipe, trained
from sopool.nn.aggr.sort import LEAST, SortConvolutionAggregation
from sopool.ops.message_passing.neighbors import aggregate, neighbors_of

DENSE = 128
"""The width of the dense layer."""
DROPPED = 0.5
"""The fraction of it that dropout sets to zero."""


@trained(
    "dgcnn",
    sees="neighbors in four steps, by their means, and the nodes in the order of the last step",
    paper="Zhang et al., 2018",
    cost="4 E + N log N",
    recipe=Recipe(epochs=300, steps=None, batch_size=50),
    grid={"lr": (0.001, 0.0001)},
    fitted={"k": lambda train: sort_size(train.sizes)},
)
class SortedConvolutions(torch.nn.Module):
    r"""The deep graph convolutional neural network, with layers of width 32, 32, 32 and 1 by default.

    .. math:: H_{l+1} = \tanh(D^{-1} (A + I) H_l W_l)

    The nodes of each graph are sorted by the last layer, and the first K of them are read by two 1-D convolutions
    (:class:`~sopool.nn.SortConvolutionAggregation`). Then follow a dense layer of 128 with dropout 0.5, and the scores.
    Where the last layer is equal, the sum of all layers decides, and then the position.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Width of the layers before the last one.
        k: Number of nodes ``K`` to read. Default: ``10``. Evaluations use the size that 60 % of the training graphs do
            not exceed, at least 10.
    """

    draws = False

    def __init__(self, in_channels: int, out_channels: int, hidden: int, k: int = LEAST) -> None:
        super().__init__()
        widths = [in_channels, hidden, hidden, hidden, 1]
        weights = (torch.empty(shape) for shape in pairwise(widths))
        self.weights = torch.nn.ParameterList(map(torch.nn.init.xavier_uniform_, weights))
        self.readout = SortConvolutionAggregation(sum(widths[1:]), k)
        self.dense = torch.nn.Linear(self.readout.out_channels, DENSE)
        self.drop = torch.nn.Dropout(DROPPED)
        self.head = torch.nn.Linear(DENSE, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Return scores ``[G, C]`` of graphs with features ``[N, F]``."""
        neighbors = neighbors_of(edge_index, x.shape[0])
        layers = [x]
        for weight in self.weights:
            layers.append(aggregate(layers[-1] @ weight, neighbors, "mean").tanh())
        pooled = self.readout(torch.cat(layers[1:], 1), batch)
        scores: Tensor = self.head(self.drop(self.dense(pooled).relu()))
        return scores
