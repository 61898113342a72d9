"""A network without message passing: what nodes are is pooled, and who is beside whom is not seen."""

import torch
from torch import Tensor
from torch_geometric.nn import global_add_pool

from sopool.models.systems import Recipe, trained


@trained(
    "mlp",
    sees="labels or degrees of nodes, summed: a network without message passing",
    paper="Errica et al., 2020",
    cost="N",
    recipe=Recipe(lr=0.01, halve_every=50),
    grid={"hidden": (32, 128)},
)
class StructureBlind(torch.nn.Module):
    """A multi-layer perceptron of the sum of embedded nodes.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Width of the hidden layers.
    """

    draws = False

    def __init__(self, in_channels: int, out_channels: int, hidden: int) -> None:
        super().__init__()
        self.node = torch.nn.Linear(in_channels, hidden)
        self.graph = torch.nn.Linear(hidden, hidden)
        self.head = torch.nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Return scores ``[G, C]`` of graphs with features ``[N, F]``."""
        pooled = global_add_pool(self.node(x).relu(), batch)
        scores: Tensor = self.head(self.graph(pooled).relu())
        return scores
