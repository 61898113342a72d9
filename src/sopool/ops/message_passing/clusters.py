"""Clusters of nodes that are known beforehand, with some eigenvectors of each cluster's Laplacian."""

from typing import NamedTuple

from torch import Tensor

from sopool.ops.message_passing.structure import GraphStructure


class Clusters(NamedTuple):
    """The clusters of a batch of graphs: those of one graph side by side, in the order of the smaller graph's nodes."""

    rows: Tensor
    """The nodes, cluster by cluster [N]."""
    ptr: Tensor
    """Where each cluster's nodes start in ``rows`` [K + 1]."""
    vectors: Tensor
    """The value of each eigenvector of its cluster at each of ``rows``, zero where a cluster has too few [N, H]."""
    graphs: GraphStructure
    """One node for each cluster; an edge for each edge between two clusters, as often as there are."""
