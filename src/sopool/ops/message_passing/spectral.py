"""Divide graphs into spectral clusters and compute the eigenvectors of each cluster, with NumPy."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from sopool._runtime.packages import require
from sopool.ops.message_passing.eigenvectors import laplacian_vectors, leading_vectors

DIMENSIONS = 16


class ClusterSpec(NamedTuple):
    """Which clusters to compute.

    Args:
        size: The approximate number of nodes per cluster; None makes each graph one cluster.
        vectors: The number of eigenvectors per cluster.
        levels: The number of levels; each one clusters the clusters of the one before. Default: 1.

    Examples:
        >>> from sopool.ops.message_passing.spectral import ClusterSpec
        >>> ClusterSpec(size=4, vectors=2)
        ClusterSpec(size=4, vectors=2, levels=1)
    """

    size: int | None
    """The approximate number of nodes per cluster; None makes each graph one cluster."""
    vectors: int
    """The number of eigenvectors per cluster."""
    levels: int = 1
    """The number of levels; each one clusters the clusters of the one before."""


class ClusterLevel(NamedTuple):
    """The K clusters of all G graphs of a data set, in the order of the graphs.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.analysis.spectral import ClusterSpec, spectral_clusters
        >>> (level,) = spectral_clusters(load("MUTAG"), ClusterSpec(size=None, vectors=2))
        >>> level.vectors.shape
        (3371, 2)
    """

    rows: np.ndarray
    """The nodes, cluster by cluster, numbered from 0 within each graph, int32 ``[N]``."""
    vectors: np.ndarray
    """The values of a cluster's H eigenvectors at each of ``rows``, float32 ``[N, H]``; zero where a cluster has fewer
    nodes."""
    sizes: np.ndarray
    """The number of nodes of each cluster, int64 ``[K]``."""
    node_ptr: np.ndarray
    """The offset of each graph's first cluster, int64 ``[G + 1]``."""
    edges: np.ndarray
    """The pairs of clusters that an edge joins, once for each edge, numbered within each graph, int32 ``[2, E]``."""
    edge_ptr: np.ndarray
    """The offset of each graph's first edge between clusters, int64 ``[G + 1]``."""


class Structure(NamedTuple):
    """The nodes and edges of graphs without features: those of a store, or of its clusters."""

    node_ptr: np.ndarray
    edges: np.ndarray
    edge_ptr: np.ndarray

    def numbered_through(self) -> np.ndarray:
        """Return the edges with nodes numbered across all graphs, ``[2, E]``."""
        edges: np.ndarray = self.edges + np.repeat(self.node_ptr[:-1], np.diff(self.edge_ptr))
        return edges


def cluster_graphs(graphs: Structure, spec: ClusterSpec, labels: list[np.ndarray] | None = None) -> ClusterLevel:
    """Return the clusters of every graph.

    Args:
        graphs: The graphs.
        spec: Which clusters to compute.
        labels: The cluster of each node of each graph, numbered from 0 without gaps. Default: None, spectral clusters.
    """
    require("EigenPooling", "scipy", "sklearn")
    least = 1 if spec.size is None and labels is None else 0  # if every graph is one cluster, so is an empty graph
    labels = [_assign(graphs, g, spec.size) for g in range(len(graphs.node_ptr) - 1)] if labels is None else labels
    counts = np.array([label.max(initial=least - 1) + 1 for label in labels], np.int64)
    node_ptr = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
    of_node = np.concatenate([np.zeros(0, np.int64), *labels]) + np.repeat(node_ptr[:-1], np.diff(graphs.node_ptr))
    order = np.argsort(of_node, kind="stable")
    sizes = np.bincount(of_node, minlength=int(node_ptr[-1]))
    source, target = graphs.numbered_through()
    within = (of_node[source] == of_node[target]) & (source != target)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    vectors = laplacian_vectors(place[source[within]], place[target[within]], sizes, spec.vectors)
    graph_of_edge = np.repeat(np.arange(len(counts)), np.diff(graphs.edge_ptr))
    across = of_node[source] != of_node[target]
    ends = np.stack([of_node[source[across]], of_node[target[across]]]) - node_ptr[graph_of_edge[across]]
    joined = np.bincount(graph_of_edge[across], minlength=len(counts))
    return ClusterLevel(
        (order - np.repeat(graphs.node_ptr[:-1], np.diff(graphs.node_ptr))).astype(np.int32),
        vectors,
        sizes,
        node_ptr,
        ends.astype(np.int32),
        np.concatenate([np.zeros(1, np.int64), joined.cumsum()]),
    )


def _assign(graphs: Structure, number: int, size: int | None) -> np.ndarray:
    """Return the cluster of each node of one graph, ``[N]``, numbered from 0 in the order of first occurrence."""
    nodes = int(graphs.node_ptr[number + 1] - graphs.node_ptr[number])
    wanted = 1 if size is None else -(-nodes // size)
    if wanted <= 1:
        return np.zeros(nodes, np.int64)
    edges = graphs.edges[:, graphs.edge_ptr[number] : graphs.edge_ptr[number + 1]]
    points = leading_vectors(edges, nodes, min(wanted, DIMENSIONS))
    points = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    return _in_order(_k_means(points, wanted))


def _k_means(points: np.ndarray, wanted: int) -> Any:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():  # a symmetric graph may have fewer distinct points, and then fewer clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(wanted, n_init=1, max_iter=50, random_state=0).fit_predict(points.round(6))


def _in_order(labels: np.ndarray) -> np.ndarray:
    """Renumber clusters in the order of first occurrence, without gaps."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.argsort(first)] = np.arange(len(first))
    return numbers[inverse]
