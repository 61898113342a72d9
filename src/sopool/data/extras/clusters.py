"""Spectral clusters as an extra, for EigenPool."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from sopool.data.analysis.cluster_cache import cache_key, clusters_of
from sopool.data.analysis.spectral import ClusterLevel, ClusterSpec, spectral_clusters
from sopool.data.extras.base import Extra
from sopool.data.graphs import PackedGraphs, take_segments
from sopool.data.neighbor_lists import Lists, make_lists
from sopool.ops.message_passing.clusters import Clusters
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.standard import positions


@dataclass(frozen=True)
class SpectralClusters(Extra):
    """The spectral clusters of each graph, with eigenvectors of each cluster; batches have ``Clusters``.

    Args:
        spec: Which clusters to compute.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.extras import SpectralClusters
        >>> from sopool.data.analysis.spectral import ClusterSpec
        >>> SpectralClusters(ClusterSpec(size=None, vectors=2)).build(load("MUTAG"), cached=False).vectors.shape
        torch.Size([3371, 2])
    """

    slow = True
    spec: ClusterSpec

    @property
    def key(self) -> str:
        """The clusters, and the version of the method."""
        return cache_key(self.spec)

    def build(self, store: PackedGraphs, cached: bool = True) -> "ClusterTables":
        """Return the clusters of graphs."""
        return ClusterTables.of((clusters_of if cached else spectral_clusters)(store, self.spec))


@dataclass(frozen=True, eq=False)
class ClusterTables:
    """One level of clusters of all graphs, on one device."""

    rows: Tensor
    """The nodes ordered by cluster, numbered from 0 within each graph ``[N]``, int32."""
    vectors: Tensor
    """The first H eigenvectors of each cluster, with one row for each node ``[N, H]``."""
    sizes: Tensor
    """The number of nodes of each of the K clusters ``[K]``."""
    cluster_ptr: Tensor
    """The position of each graph's first cluster ``[G + 1]``."""
    neighbors: Lists
    """The lists of the clusters that each cluster receives messages from."""
    transposed: Lists
    """The lists of the clusters that receive messages from each cluster."""
    above: "ClusterTables | None"
    """The next level: the clusters of these clusters; None at the last level."""

    @classmethod
    def of(cls, levels: Sequence[ClusterLevel]) -> "ClusterTables":
        """Return the tables of the first level, which contain those of the next one."""
        rows, vectors, sizes, node_ptr, edges, edge_ptr = (torch.from_numpy(array) for array in levels[0])
        smaller = PackedGraphs(node_ptr, edge_ptr, edges)
        above = cls.of(levels[1:]) if len(levels) > 1 else None
        return cls(rows, vectors, sizes, node_ptr, make_lists(smaller, 1), make_lists(smaller, 0), above)

    def to(self, device: torch.device | str) -> "ClusterTables":
        """Return the tables on another device."""
        moved: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                moved[field.name] = value.to(device)
        return replace(self, **moved)

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Clusters:
        """Return the clusters of a batch of graphs whose ``nodes`` start at ``ptr``."""
        first = ptr[:-1].repeat_interleave(ptr.diff(), output_size=nodes.numel())
        new, clusters = take_segments(self.cluster_ptr, graphs)
        sizes = self.sizes.index_select(0, clusters)
        upper = {} if self.above is None else {"clusters": self.above.take(graphs, new, clusters)}
        neighbors, transposed = (lists.take(graphs, new, clusters).lists for lists in (self.neighbors, self.transposed))
        return Clusters(
            rows=first + self.rows.index_select(0, nodes),
            ptr=positions(sizes),
            vectors=self.vectors.index_select(0, nodes),
            graphs=GraphStructure(new, Neighbors(*neighbors, transposed, extras=upper)),
        )
