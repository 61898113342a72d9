"""What models need of graphs besides their edges, computed once for a data set: clusters, pairs of nodes and others."""

from sopool.data.extras.base import EdgeRows, Extra, GraphRows, NodeRows
from sopool.data.extras.clusters import SpectralClusters
from sopool.data.extras.edge_labels import EdgeLabels, edge_kinds
from sopool.data.extras.edge_numbers import EdgeNumbers, edge_numbers
from sopool.data.extras.kron import CoarserBatch, KronPyramid
from sopool.data.extras.pairs import NodePairs
from sopool.data.extras.resistance import ResistanceHistograms
from sopool.data.sources.array_cache import kept_arrays

__all__ = [
    "CoarserBatch",
    "EdgeLabels",
    "EdgeNumbers",
    "EdgeRows",
    "Extra",
    "GraphRows",
    "KronPyramid",
    "NodePairs",
    "NodeRows",
    "ResistanceHistograms",
    "SpectralClusters",
    "edge_kinds",
    "edge_numbers",
    "kept_arrays",
]
