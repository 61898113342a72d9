"""Clusters of nodes that are computed before training, with eigenvectors of the Laplacian of each cluster."""

from typing import NamedTuple

from torch import Tensor

from sopool.ops.message_passing.structure import GraphStructure


class Clusters(NamedTuple):
    """The C clusters of a batch of graphs; those of one graph are consecutive, ordered as its pooled nodes."""

    rows: Tensor
    """The nodes, cluster by cluster ``[N]``."""
    ptr: Tensor
    """The position in ``rows`` at which each cluster starts ``[C + 1]``."""
    vectors: Tensor
    """The value of each of the H eigenvectors at each node of ``rows`` ``[N, H]``, zero if a cluster has fewer
    eigenvectors."""
    graphs: GraphStructure
    """The pooled graphs, with one node for each cluster and one edge for each edge between two clusters (with
    multiplicity)."""
