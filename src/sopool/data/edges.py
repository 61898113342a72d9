"""The edges of a whole store, a block at a time."""

from collections.abc import Iterator

import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs

BLOCK = 4_000_000
"""Edges looked at together: bounds the memory, whatever the number of edges."""


def edge_blocks(store: PackedGraphs, size: int = BLOCK) -> Iterator[Tensor]:
    """The edges of a few graphs at a time [2, e], int64, nodes numbered through the store.

    A block has at most ``size`` edges, or is one graph.
    """
    edge_ptr = store.edge_ptr.cpu()
    first = 0
    while first < len(store):
        last = int(torch.searchsorted(edge_ptr, edge_ptr[first] + size, right=True)) - 1
        last = max(last, first + 1)
        start = int(edge_ptr[first])
        stop = int(edge_ptr[last])
        shift = store.node_ptr[first:last].repeat_interleave(
            store.edge_ptr[first : last + 1].diff(), output_size=stop - start
        )
        yield store.edge_index[:, start:stop] + shift
        first = last


def out_degrees(store: PackedGraphs) -> Tensor:
    """The number of edges out of each node [N], int64; for undirected graphs that is the number of neighbours."""
    counts = torch.zeros(store.num_nodes, dtype=torch.long, device=store.device)
    for source, _ in edge_blocks(store):
        counts.scatter_add_(0, source, torch.ones_like(source))
    return counts
