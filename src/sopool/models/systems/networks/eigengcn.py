"""EigenGCN: graph convolutions on a graph, and on the smaller graph of its spectral clusters."""

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from sopool.data.analysis.spectral import ClusterSpec
from sopool.data.extras import SpectralClusters
from sopool.models.systems import Recipe, trained
from sopool.models.systems.encoder import ConvolutionStack, dense_head
from sopool.nn.pool.eigen import project
from sopool.ops.message_passing.clusters import Clusters
from sopool.ops.message_passing.neighbors import Neighbors, neighbors_of
from sopool.ops.segment.largest import segment_max

CLUSTERS = ClusterSpec(size=10, vectors=3, levels=2)
"""Clusters of about ten nodes, and about ten of these in each of the next level, with up to three eigenvectors."""


@trained(
    "eigengcn",
    sees="neighbors in three steps, and again in the graph of spectral clusters; eigenvectors of clusters",
    paper="Ma et al., 2019",
    cost="6 E + N k for k eigenvectors, clusters once per data set",
    recipe=Recipe(epochs=1000, steps=None, batch_size=20, lr=0.001, clip=2.0),
    grid={"hidden": (64,), "vectors": (1, 2, 3)},
    extras={"clusters": SpectralClusters(CLUSTERS)},
)
class EigenvectorPooling(torch.nn.Module):
    r"""The network of EigenPool, with three convolutions on the graph and three on the graph of its clusters.

    .. math:: H'_c = [\, u_{c,1}^{\top} H_c \,\|\, \ldots \,\|\, u_{c,m}^{\top} H_c \,]

    Here :math:`u_{c,l}` is the l-th eigenvector of the Laplacian of cluster :math:`c`, zero if the cluster has fewer
    nodes. The output of the second convolutions is pooled in the same way to clusters of clusters, of which graphs of
    up to 100 nodes have a single one. The maxima over the nodes, the clusters and the clusters of clusters are
    concatenated, and a layer of 50 precedes the scores.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Width of each convolution.
        vectors: Number of eigenvectors :math:`m`, at most 3. Default: ``3``.
    """

    draws = False

    def __init__(self, in_channels: int, out_channels: int, hidden: int, vectors: int = CLUSTERS.vectors) -> None:
        super().__init__()
        if not 1 <= vectors <= CLUSTERS.vectors:
            raise ValueError(f"vectors={vectors}: it must be from 1 to {CLUSTERS.vectors}.")
        self.vectors = vectors
        self.first = ConvolutionStack(in_channels, hidden, hidden, loops=True)
        self.second = ConvolutionStack(vectors * self.first.out_channels, hidden, hidden, loops=True)
        self.head = dense_head((2 + vectors) * self.first.out_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, clusters: Clusters) -> Tensor:
        """Return scores ``[G, C]`` of graphs with features ``[N, F]``."""
        ptr = index2ptr(batch, int(batch[-1]) + 1)
        smaller = clusters.graphs
        assert isinstance(smaller.neighbors, Neighbors)
        larger_clusters: Clusters = smaller.neighbors.extras["clusters"]
        nodes = self.first(x, neighbors_of(edge_index, x.shape[0]))
        pooled = self.second(self._pool(nodes, clusters), smaller.neighbors)
        last = self._pool(pooled, larger_clusters)
        each = ((nodes, ptr), (pooled, smaller.ptr), (last, larger_clusters.graphs.ptr))
        scores: Tensor = self.head(torch.cat([segment_max(rows, starts) for rows, starts in each], 1))
        return scores

    def _pool(self, x: Tensor, clusters: Clusters) -> Tensor:
        """Return the projections of each cluster on its first eigenvectors."""
        return project(x, clusters._replace(vectors=clusters.vectors[:, : self.vectors]))
