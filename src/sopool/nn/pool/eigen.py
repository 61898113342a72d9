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
    vector="each graph is one cluster, one node",
    default="m = 8; blocks m = 2, 4 nodes to a cluster",
    paper="Ma et al. 2019, arXiv 1904.13107",
    options={"vectors": 8},
    vector_from="concat",
)
class EigenPooling(GraphPooling):
    r"""Eigenvector-based pooling (EigenPool) from the `"Graph Convolutional Networks with EigenPooling"
    <https://arxiv.org/abs/1904.13107>`_ paper: spectral clusters become nodes, with their signal's lowest frequencies.

    .. math:: H'_c = [\, u_{c,1}^{\top} H_c \,\|\, \ldots \,\|\, u_{c,m}^{\top} H_c \,], \quad
        A'_{cd} = \text{the number of edges between clusters } c \text{ and } d

    :math:`u_{c,l}` is the l-th eigenvector of the Laplacian of cluster :math:`c` alone. Clusters and eigenvectors
    depend on the graph only: they are computed beforehand, once (:mod:`sopool.data.analysis.spectral`), and nothing is
    learned. An eigenvector's sign is a convention, and where eigenvalues are equal so are the eigenvectors: there the
    result may depend on the order of the nodes.

    Args:
        channels: Number of node features :math:`f`.
        vectors: How many eigenvectors :math:`m` of each cluster.
        size: About how many nodes make a cluster; None makes each graph one cluster, and so a vector.
    """

    capturable = False

    def __init__(self, channels: int, vectors: int = 2, size: int | None = None) -> None:
        super().__init__(channels)
        if vectors < 1 or (size is not None and size < 2):
            raise ValueError(f"vectors={vectors}, size={size}: at least 1 and 2 are needed.")
        self.vectors = vectors
        self.size = size

    @property
    def out_channels(self) -> int:
        """As often as there are eigenvectors, the channels."""
        return self.vectors * self.channels

    @property
    def nodes(self) -> int | None:
        """1 where a graph is one cluster."""
        return 1 if self.size is None else None

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """U_c^T H_c of every cluster c."""
        clusters = None if isinstance(graphs.neighbors, Dense) else graphs.neighbors.clusters
        if clusters is None or clusters.vectors.shape[1] != self.vectors:
            raise ValueError(
                f"{self!r} needs clusters with {self.vectors} eigenvectors each, and the graphs come "
                f"{'without any' if clusters is None else f'with {clusters.vectors.shape[1]}'}. "
                "Make them with sopool.training.bank.cluster_tables.ClusterTables."
            )
        vectors = clusters.vectors.to(x.dtype)
        rows = clusters.rows
        pooled = segment_gram(vectors, x.index_select(0, rows), clusters.ptr)

        def lift(y: Tensor) -> Tensor:
            """[K, m c] -> [N, c]."""
            parts = y.reshape(y.shape[0], self.vectors, y.shape[1] // self.vectors).transpose(1, 2)
            lifted = segment_apply(vectors, parts, clusters.ptr)
            return lifted.new_zeros(lifted.shape).index_copy(0, rows, lifted)

        return PoolingOutput(pooled.flatten(1), clusters.graphs.ptr, lambda: clusters.graphs, lift)
