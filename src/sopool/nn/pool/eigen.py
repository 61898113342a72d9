from torch import Tensor

from sopool.nn.pool.base import EdgePooling
from sopool.nn.pool.graph_clusters import find_clusters
from sopool.nn.pool.inputs import sorted_graphs
from sopool.nn.pool.output import PoolingOutput, Projection
from sopool.nn.registry import pooling, readout
from sopool.ops import segment_gram
from sopool.ops.message_passing.clusters import Clusters
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.spectral import ClusterSpec
from sopool.ops.message_passing.structure import GraphStructure


def project(x: Tensor, clusters: Clusters) -> Tensor:
    """Return U_c^T H_c of each cluster c for node features ``[N, F]``, concatenated: ``[C, m * F]``."""
    vectors = clusters.vectors.to(x.dtype)
    return segment_gram(vectors, x.index_select(0, clusters.rows), clusters.ptr).flatten(1)


@pooling("eigenpool", options={"size": 4})
@readout(
    "eigenpool",
    formula="H'_c = U_c^T H_c for spectral clusters c, A' = edges between clusters",
    cost="N f m + E, clusters once per data set",
    vector="the graph as one cluster",
    default="m = 8; blocks m = 2, 4 nodes per cluster",
    paper="Ma et al. 2019, arXiv 1904.13107",
    options={"vectors": 8},
    vector_from="concat",
)
class EigenPooling(EdgePooling):
    r"""Eigenvector-based pooling (EigenPool) of spectral clusters.

    .. math:: H'_c = [\, u_{c,1}^{\top} H_c \,\|\, \ldots \,\|\, u_{c,m}^{\top} H_c \,], \quad
        A'_{cd} = \text{the number of edges between clusters } c \text{ and } d

    Here :math:`u_{c,l}` is the l-th eigenvector of the Laplacian of cluster :math:`c`. Clusters and eigenvectors depend
    on the graph alone; nothing is learned. Models compute them once for a data set
    (:mod:`sopool.data.analysis.spectral`). Called with ``edge_index``, the layer computes them on the CPU and keeps
    those of the last 32,768 graphs in memory; clusters can also be given. The signs of eigenvectors and the basis for
    equal eigenvalues are arbitrary, so the result may depend on the order of the nodes. From the paper
    `"Graph Convolutional Networks with EigenPooling" <https://arxiv.org/abs/1904.13107>`_.

    Args:
        channels: Number of node features ``F``.
        vectors: Number of eigenvectors :math:`m` for each cluster. Default: ``2``.
        size: Approximate number of nodes of a cluster. If ``None``, each graph is one cluster. Default: ``None``.

    Shapes:
        - **input:** node features ``[N, F]``, ``edge_index`` ``[2, E]``, ``batch`` ``[N]``, ``cluster`` ``[N]``
        - **output:** a :class:`~sopool.nn.PoolingOutput` with node features ``[N', m * F]``

    Examples:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> EigenPooling(8, vectors=4, size=2)(torch.randn(4, 8), edge_index).x.shape
        torch.Size([2, 32])
        >>> EigenPooling(8).nodes  # each graph becomes one node
        1
    """

    capturable = False

    def __init__(self, channels: int, vectors: int = 2, size: int | None = None) -> None:
        super().__init__(channels)
        if vectors < 1 or (size is not None and size < 2):
            raise ValueError(
                f"vectors={vectors}, size={size}: vectors must be at least 1, and size at least 2 or None."
            )
        self.vectors = vectors
        self.size = size

    @property
    def out_channels(self) -> int:
        """The number of features of the new nodes, ``vectors * channels``."""
        return self.vectors * self.channels

    @property
    def nodes(self) -> int | None:
        """The number of nodes of each pooled graph: 1 if each graph is one cluster, otherwise ``None``."""
        return 1 if self.size is None else None

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        cluster: Tensor | None = None,
    ) -> PoolingOutput:
        """Pool a batch of graphs in PyG's format.

        Args:
            x: Node features ``[N, F]``.
            edge_index: Edges ``[2, E]``; their directions do not matter, and a repeated edge counts repeatedly.
            edge_weight: Not supported; it must be ``None``.
            batch: The graph of each node ``[N]``, in any order. Default: ``None``, for a single graph.
            batch_size: The number of graphs. Default: ``None``, which means ``batch.max() + 1``.
            cluster: The cluster of each node ``[N]``, any integers; nodes of different graphs are never in one cluster.
                Default: ``None``, for spectral clusters.
        """
        if edge_weight is not None:
            raise ValueError(
                "edge_weight is given, but EigenPooling counts edges and has no use for weights: pass None. batch is "
                "the fourth argument, as in PyG."
            )
        x, graphs, order = sorted_graphs(self, x, Edges(edge_index), batch, batch_size)
        if cluster is not None:
            if cluster.shape != x.shape[:1] or cluster.is_floating_point():
                raise ValueError(
                    f"cluster has dtype {cluster.dtype} and shape {list(cluster.shape)}: it must have one integer for "
                    f"each of the {x.shape[0]} nodes."
                )
            cluster = cluster if order is None else cluster.index_select(0, order)
        pooled = self._project(x, self._clusters(graphs, cluster))
        return pooled if order is None else pooled.reordered(order)

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Compute U_c^T H_c for each cluster c."""
        return self._project(x, self._clusters(graphs))

    def _clusters(self, graphs: GraphStructure, cluster: Tensor | None = None) -> Clusters:
        """Return the clusters that were computed in advance, or those of the edges."""
        neighbors = graphs.neighbors
        if isinstance(neighbors, Edges) and neighbors.weight is None:
            return find_clusters(graphs.ptr, neighbors.edge_index, ClusterSpec(self.size, self.vectors), cluster)
        clusters: Clusters | None = neighbors.extras.get("clusters") if isinstance(neighbors, Neighbors) else None
        if clusters is None or clusters.vectors.shape[1] != self.vectors:
            raise ValueError(
                f"{self!r} needs clusters with {self.vectors} eigenvectors each, but the graphs have "
                f"{'no clusters' if clusters is None else clusters.vectors.shape[1]}. "
                "Compute them with sopool.data.extras.SpectralClusters, or call the layer with "
                "x, edge_index and batch. Edges with weights, as other pooling layers return them, have no clusters."
            )
        return clusters

    def _project(self, x: Tensor, clusters: Clusters) -> PoolingOutput:
        lift = Projection(clusters.vectors.to(x.dtype), clusters.rows, clusters.ptr)
        return PoolingOutput(project(x, clusters), clusters.graphs.ptr, lambda: clusters.graphs, lift)
