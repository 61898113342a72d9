"""The spectral clusters of the graphs of a batch, which are computed once for each graph and kept in memory."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from sopool.ops.message_passing.clusters import Clusters
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.spectral import ClusterLevel, ClusterSpec, Structure, cluster_graphs
from sopool.ops.message_passing.structure import GraphStructure

KEPT = 2**15
"""The number of graphs whose clusters are kept in memory; those that were not used for the longest time are dropped."""


def find_clusters(ptr: Tensor, edge_index: Tensor, spec: ClusterSpec, cluster: Tensor | None = None) -> Clusters:
    """Return the clusters of a batch of graphs.

    The result does not depend on the order of the edges, nor on the other graphs of the batch.

    Args:
        ptr: The first node of each graph ``[G + 1]``.
        edge_index: Edges ``[2, E]``.
        spec: Which clusters to compute; one level.
        cluster: The cluster of each node ``[N]``, instead of spectral clusters. Default: None.
    """
    first = ptr.cpu().numpy()
    source, target = edge_index.cpu().numpy()
    graph = np.searchsorted(first, target, side="right") - 1
    order = np.lexsort((target, source, graph))
    edges = (np.stack([source, target]) - first[graph])[:, order].astype(np.int32)
    ends = np.searchsorted(graph[order], np.arange(len(first)))
    labels = None if cluster is None else cluster.cpu().numpy().astype(np.int64)
    levels = [
        _clusters_of(
            int(first[g + 1] - first[g]),
            edges[:, ends[g] : ends[g + 1]].tobytes(),
            None if labels is None else labels[first[g] : first[g + 1]].tobytes(),
            spec,
        )
        for g in range(len(first) - 1)
    ]
    return _together(levels, first, spec.vectors, ptr.device)


@lru_cache(maxsize=KEPT)
def _clusters_of(nodes: int, edges: bytes, labels: bytes | None, spec: ClusterSpec) -> ClusterLevel:
    """Return the clusters of one graph."""
    pairs = np.frombuffer(edges, np.int32).reshape(2, -1)
    graph = Structure(np.array([0, nodes]), pairs, np.array([0, pairs.shape[1]]))
    if labels is None:
        return cluster_graphs(graph, spec)
    _, numbers = np.unique(np.frombuffer(labels, np.int64), return_inverse=True)
    return cluster_graphs(graph, spec, [numbers.astype(np.int64)])


def _together(levels: list[ClusterLevel], first: np.ndarray, vectors: int, device: torch.device) -> Clusters:
    """Concatenate the clusters of graphs whose nodes start at ``first``."""
    counts = np.array([len(level.sizes) for level in levels], np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
    rows = [level.rows + start for level, start in zip(levels, first, strict=False)]
    edges = [level.edges + start for level, start in zip(levels, offsets, strict=False)]
    sizes = np.concatenate([np.zeros(1, np.int64), *(level.sizes for level in levels)])
    values = np.concatenate([np.zeros((0, vectors), np.float32), *(level.vectors for level in levels)])
    joined = np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1)
    tensors = (np.concatenate([np.zeros(0, np.int64), *rows]), sizes.cumsum(), values, offsets, joined)
    members, ptr, table, new, edge_index = (torch.from_numpy(array).to(device) for array in tensors)
    return Clusters(members, ptr, table, GraphStructure(new, Edges(edge_index)))
