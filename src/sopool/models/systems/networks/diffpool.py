"""DiffPool: graph convolutions, and others that assign nodes to the clusters of a smaller graph."""

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from sopool.models.systems import Recipe, trained
from sopool.models.systems.encoder import ConvolutionStack, dense_head
from sopool.nn.pool.diff import assign
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.largest import segment_max

SHARES = {1: 0.1, 2: 0.25}
"""The clusters as a share of the nodes of the largest graph, or of the clusters before, by the number of poolings."""
MOST = 128
"""The largest number of clusters, so that matrices stay small where the largest graph has thousands of nodes."""


def clusters_of(nodes: int, poolings: int) -> list[int]:
    """Return the number of clusters after each pooling, at least 2."""
    if poolings not in SHARES:
        raise ValueError(f"poolings={poolings}: it must be 1 or 2.")
    numbers = []
    for _ in range(poolings):
        nodes = max(2, min(MOST, int(SHARES[poolings] * nodes)))
        numbers.append(nodes)
    return numbers


@trained(
    "diffpool-net",
    sees="neighbors in three steps, and again in graphs of soft clusters",
    paper="Ying et al., 2018",
    cost="N k^2 + E k, k a share of the largest graph",
    recipe=Recipe(epochs=1000, steps=None, batch_size=20, lr=0.001, clip=2.0),
    grid={"hidden": (64,), "poolings": (1, 2)},
    fitted={"nodes": lambda train: int(train.sizes.max())},
)
class DifferentiablePooling(torch.nn.Module):
    r"""The network of differentiable pooling, with three convolutions at each of its levels.

    .. math:: S = \mathrm{softmax}(\mathrm{GNN}_a(A, X) \, W_a), \quad H = \mathrm{GNN}_e(A, X), \quad
        X' = S^{\top} H, \quad A' = S^{\top} A S

    The maxima over the nodes of every level are concatenated, and a layer of 50 precedes the scores. The loss of each
    graph is increased by :math:`\|A - S S^{\top}\|_F / n` and the mean entropy of the rows of S of every level.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Width of each convolution.
        nodes: Number of nodes of the largest graph. Default: ``100``. Evaluations use that of the training graphs.
        poolings: ``1``, to a tenth of ``nodes``, or ``2``, each to a quarter of the nodes before. Default: ``1``.
    """

    draws = False

    def __init__(self, in_channels: int, out_channels: int, hidden: int, nodes: int = 100, poolings: int = 1) -> None:
        super().__init__()
        clusters = clusters_of(nodes, poolings)
        widths = [in_channels, *[3 * hidden] * poolings]
        self.encoders = torch.nn.ModuleList(ConvolutionStack(width, hidden, hidden) for width in widths)
        pairs = list(zip(widths, clusters, strict=False))
        self.assigners = torch.nn.ModuleList(ConvolutionStack(width, hidden, number) for width, number in pairs)
        self.logits = torch.nn.ModuleList(torch.nn.Linear(2 * hidden + number, number) for number in clusters)
        self.head = dense_head(3 * hidden * len(widths), out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores ``[G, C]`` and additional losses ``[G]`` of graphs with features ``[N, F]``."""
        ptr = index2ptr(batch, int(batch[-1]) + 1)
        graphs = GraphStructure(ptr, neighbors_of(edge_index, x.shape[0]))
        encoder, *later = self.encoders
        h = encoder(x, graphs.neighbors)
        readouts = [segment_max(h, ptr)]
        penalty = x.new_zeros(len(readouts[0]))
        for assigner, linear, encoder in zip(self.assigners, self.logits, later, strict=True):
            found = assign(h, linear(assigner(x, graphs.neighbors)), graphs)
            penalty = penalty + found.link + found.entropy
            x = found.x.flatten(0, 1)
            ptr = torch.arange(0, len(x) + 1, found.x.shape[1], device=x.device)
            graphs = GraphStructure(ptr, Dense(found.weights))
            h = encoder(x, graphs.neighbors)
            readouts.append(h.view(*found.x.shape[:2], -1).amax(1))
        return self.head(torch.cat(readouts, 1)), penalty
