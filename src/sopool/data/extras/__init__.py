"""What models need of graphs besides their edges, computed once for a data set: clusters, pairs of nodes and others."""

from sopool.data.extras.base import Extra, GraphRows, NodeRows
from sopool.data.extras.clusters import SpectralClusters
from sopool.data.extras.edge_labels import EdgeLabels, edge_kinds
from sopool.data.extras.pairs import NodePairs
from sopool.data.sources.array_cache import kept_arrays

__all__ = [
    "EdgeLabels",
    "Extra",
    "GraphRows",
    "NodePairs",
    "NodeRows",
    "SpectralClusters",
    "edge_kinds",
    "kept_arrays",
]
