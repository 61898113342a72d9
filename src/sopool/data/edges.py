"""Iterate over the edges of a whole data set, one block at a time."""

from collections.abc import Iterator

import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs

BLOCK = 4_000_000
"""The number of edges processed at once, which bounds the memory used."""


def edge_blocks(store: PackedGraphs, size: int = BLOCK) -> Iterator[Tensor]:
    """Yield the edges of a few graphs at a time as int64 ``[2, E]``, with nodes numbered across the whole store.

    A block has at most ``size`` edges, unless it consists of a single graph.
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
    """Return the out-degree of each node as int64 ``[N]``; in undirected graphs it is the number of neighbors."""
    counts = torch.zeros(store.num_nodes, dtype=torch.long, device=store.device)
    for source, _ in edge_blocks(store):
        counts.scatter_add_(0, source, torch.ones_like(source))
    return counts
