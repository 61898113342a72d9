"""Compute spectral clusters of the graphs of a data set and the eigenvectors of each cluster, for EigenPool.

A graph of n nodes is divided into about n / size clusters by k-means on the leading eigenvectors of its normalized
adjacency matrix, at most 16 of them. Each cluster is a graph by itself, and its features are the eigenvectors of its
Laplacian D - A with the smallest eigenvalues. The clusters are the nodes of a smaller graph, which can be clustered in
turn. Edges are treated as undirected and counted as often as they are given; self-loops are ignored. The same graphs
always give the same clusters.
"""

from sopool.data.graphs import PackedGraphs
from sopool.ops.message_passing.spectral import ClusterLevel, ClusterSpec, Structure, cluster_graphs

__all__ = ["ClusterLevel", "ClusterSpec", "spectral_clusters"]


def spectral_clusters(store: PackedGraphs, spec: ClusterSpec) -> list[ClusterLevel]:
    """Return the clusters of every graph, one :class:`ClusterLevel` for each level.

    Args:
        store: The graphs.
        spec: Which clusters to compute.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.analysis.spectral import ClusterSpec, spectral_clusters
        >>> levels = spectral_clusters(load("MUTAG"), ClusterSpec(size=None, vectors=2))
        >>> len(levels), levels[0].sizes.shape
        (1, (188,))
    """
    arrays = (store.node_ptr, store.edge_index, store.edge_ptr)
    graphs = Structure(*(tensor.cpu().numpy() for tensor in arrays))
    levels = []
    for _ in range(spec.levels):
        levels.append(cluster_graphs(graphs, spec))
        graphs = Structure(levels[-1].node_ptr, levels[-1].edges, levels[-1].edge_ptr)
    return levels
