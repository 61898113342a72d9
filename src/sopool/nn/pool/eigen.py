from torch import Tensor

from sopool.nn.pool.base import GraphPooling, PoolingOutput
from sopool.nn.registry import pooling, readout
from sopool.ops import segment_apply, segment_gram
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.structure import GraphStructure


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
class EigenPooling(GraphPooling):
    r"""Eigenvector-based pooling (EigenPool) of spectral clusters.

    .. math:: H'_c = [\, u_{c,1}^{\top} H_c \,\|\, \ldots \,\|\, u_{c,m}^{\top} H_c \,], \quad
        A'_{cd} = \text{the number of edges between clusters } c \text{ and } d

    Here :math:`u_{c,l}` is the l-th eigenvector of the Laplacian of cluster :math:`c`. Clusters and eigenvectors depend
    on the graph alone and are computed once in advance (:mod:`sopool.data.analysis.spectral`); nothing is learned. The
    signs of eigenvectors and the basis for equal eigenvalues are arbitrary, so the result may depend on the order of
    the nodes. From the paper
    `"Graph Convolutional Networks with EigenPooling" <https://arxiv.org/abs/1904.13107>`_.

    Args:
        channels: Number of node features ``F``.
        vectors: Number of eigenvectors :math:`m` for each cluster. Default: ``2``.
        size: Approximate number of nodes of a cluster. If ``None``, each graph is one cluster. Default: ``None``.

    Examples:
        >>> EigenPooling(8, vectors=4, size=4).out_channels
        32
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

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Compute U_c^T H_c for each cluster c."""
        clusters = None if isinstance(graphs.neighbors, Dense) else graphs.neighbors.clusters
        if clusters is None or clusters.vectors.shape[1] != self.vectors:
            raise ValueError(
                f"{self!r} needs clusters with {self.vectors} eigenvectors each, but the graphs have "
                f"{'no clusters' if clusters is None else clusters.vectors.shape[1]}. "
                "Compute them with sopool.training.bank.cluster_tables.ClusterTables."
            )
        vectors = clusters.vectors.to(x.dtype)
        rows = clusters.rows
        pooled = segment_gram(vectors, x.index_select(0, rows), clusters.ptr)

        def lift(y: Tensor) -> Tensor:
            """Map values of the clusters to the nodes."""
            parts = y.reshape(y.shape[0], self.vectors, y.shape[1] // self.vectors).transpose(1, 2)
            lifted = segment_apply(vectors, parts, clusters.ptr)
            return lifted.new_zeros(lifted.shape).index_copy(0, rows, lifted)

        return PoolingOutput(pooled.flatten(1), clusters.graphs.ptr, lambda: clusters.graphs, lift)
