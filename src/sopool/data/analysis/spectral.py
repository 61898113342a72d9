"""Spectral clusters of graphs and the eigenvectors of each, for EigenPool: computed once for a data set.

A graph is cut into about n / size clusters by k-means on the first eigenvectors of its normalised adjacency, at most 16
of them. Each cluster, a graph by itself, has the eigenvectors of its Laplacian D - A with the smallest eigenvalues. The
clusters are the nodes of a smaller graph, which is clustered in turn. Here edges count without direction, as often as
they are given; loops do not count. The same graphs give the same clusters.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np

from sopool.data.analysis.eigenvectors import laplacian_vectors, leading_vectors
from sopool.data.graphs import PackedGraphs

DIMENSIONS = 16


class ClusterSpec(NamedTuple):
    """Which clusters."""

    size: int | None
    """About how many nodes make a cluster; None: all of a graph's."""
    vectors: int
    """Eigenvectors of each cluster."""
    levels: int = 1
    """How often clusters are clustered."""


class ClusterLevel(NamedTuple):
    """The clusters of all graphs of a data set, those of one graph side by side."""

    rows: np.ndarray
    """The nodes, cluster by cluster, numbered from 0 within each graph [N], int32."""
    vectors: np.ndarray
    """The values of a cluster's eigenvectors at each of ``rows`` [N, H], float32; zero where there are too few."""
    sizes: np.ndarray
    """Nodes of each cluster [K], int64."""
    node_ptr: np.ndarray
    """Where each graph's clusters start [G + 1], int64."""
    edges: np.ndarray
    """Clusters joined by an edge, once for each edge [2, E], numbered within each graph, int32."""
    edge_ptr: np.ndarray
    """Where each graph's start [G + 1], int64."""


class Structure(NamedTuple):
    """Graphs without anything else: as in a store, or one level up."""

    node_ptr: np.ndarray
    edges: np.ndarray
    edge_ptr: np.ndarray

    def numbered_through(self) -> np.ndarray:
        """The edges, with nodes numbered through all graphs [2, E]."""
        edges: np.ndarray = self.edges + np.repeat(self.node_ptr[:-1], np.diff(self.edge_ptr))
        return edges


def spectral_clusters(store: PackedGraphs, spec: ClusterSpec) -> list[ClusterLevel]:
    """The clusters of every graph, then those of the clusters, and so on."""
    arrays = (store.node_ptr, store.edge_index, store.edge_ptr)
    graphs = Structure(*(tensor.cpu().numpy() for tensor in arrays))
    levels = []
    for _ in range(spec.levels):
        levels.append(_level(graphs, spec))
        graphs = Structure(levels[-1].node_ptr, levels[-1].edges, levels[-1].edge_ptr)
    return levels


def _level(graphs: Structure, spec: ClusterSpec) -> ClusterLevel:
    labels = [_assign(graphs, g, spec.size) for g in range(len(graphs.node_ptr) - 1)]
    least = 1 if spec.size is None else 0  # where every graph is one cluster, an empty one is, too
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
    """The cluster of each node of one graph [n], numbered from 0 in the order in which they are met."""
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

    with warnings.catch_warnings():  # in a symmetric graph fewer points may differ: then there are fewer clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(wanted, n_init=1, max_iter=50, random_state=0).fit_predict(points.round(6))


def _in_order(labels: np.ndarray) -> np.ndarray:
    """The same clusters, numbered as they are met; numbers that no node has are left out."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.argsort(first)] = np.arange(len(first))
    return numbers[inverse]
