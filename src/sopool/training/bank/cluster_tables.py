"""The clusters of a data set as the bank needs them, beside its graphs: for EigenPool."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from sopool.data.analysis.cluster_cache import clusters_of
from sopool.data.analysis.spectral import ClusterLevel, ClusterSpec
from sopool.data.graphs import PackedGraphs, take_segments
from sopool.ops.message_passing.clusters import Clusters
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.structure import GraphStructure
from sopool.training.bank.batching import Lists, make_lists


@dataclass(frozen=True, eq=False)
class ClusterTables:
    """One level of clusters of all graphs, on one device."""

    rows: Tensor
    """The nodes, cluster by cluster, numbered from 0 within each graph [N], int32."""
    vectors: Tensor
    """[N, H]."""
    sizes: Tensor
    """Nodes of each cluster [K]."""
    cluster_ptr: Tensor
    """Where each graph's clusters start [G + 1]."""
    neighbors: Lists
    transposed: Lists
    above: "ClusterTables | None"
    """The clusters of these clusters."""

    @classmethod
    def build(cls, store: PackedGraphs, spec: ClusterSpec) -> "ClusterTables":
        """From a store; the clusters are computed unless they are in the cache."""
        return cls.of(clusters_of(store, spec))

    @classmethod
    def of(cls, levels: Sequence[ClusterLevel]) -> "ClusterTables":
        """The tables of the first level, which hold those of the next."""
        rows, vectors, sizes, node_ptr, edges, edge_ptr = (torch.from_numpy(array) for array in levels[0])
        smaller = PackedGraphs(node_ptr, edge_ptr, edges)
        above = cls.of(levels[1:]) if len(levels) > 1 else None
        return cls(rows, vectors, sizes, node_ptr, make_lists(smaller, 1), make_lists(smaller, 0), above)

    def to(self, device: torch.device | str) -> "ClusterTables":
        """The same on another device."""
        moved: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                moved[field.name] = value.to(device)
        return replace(self, **moved)

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Clusters:
        """The clusters of some graphs laid side by side, whose ``nodes`` start at ``ptr``."""
        first = ptr[:-1].repeat_interleave(ptr.diff(), output_size=nodes.numel())
        new, clusters = take_segments(self.cluster_ptr, graphs)
        sizes = self.sizes.index_select(0, clusters)
        above = None if self.above is None else self.above.take(graphs, new, clusters)
        neighbors, transposed = (lists.take(graphs, new, clusters).lists for lists in (self.neighbors, self.transposed))
        return Clusters(
            rows=first + self.rows.index_select(0, nodes),
            ptr=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
            vectors=self.vectors.index_select(0, nodes),
            graphs=GraphStructure(new, Neighbors(*neighbors, transposed, above)),
        )
