"""Find the pairs of nodes that are up to K steps apart, by breadth-first searches from all nodes.

Distances are lengths of shortest paths along the direction of the edges. Repeated edges and self-loops change nothing,
and nodes that are not connected have no distance. With Numba, a search from each node follows the lists of neighbors
and takes a time linear in the edges that it meets. Otherwise, all searches advance together: the pairs at distance k
are extended by the neighbors of their second nodes, sorted, and compared with the pairs that are known.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.ops.numba import dispatch as compiled

CAPACITY = 2**22
"""The number of pairs that searches without Numba extend together."""


class Distances(NamedTuple):
    """The pairs of different nodes at distances 1 to K, sorted by first node, distance and second node."""

    counts: Tensor
    """The number of pairs of each first node at each distance, int64 ``[N, K]``."""
    nodes: Tensor
    """The second node of each of the P pairs, int64 ``[P]``."""
    undirected: bool
    """Whether each edge exists in both directions, so that each pair does."""


class Successors(NamedTuple):
    """The nodes that an edge leads to from each node i, ``nodes[ptr[i]:ptr[i + 1]]``: sorted, each once, without i."""

    ptr: Tensor
    nodes: Tensor
    undirected: bool

    def degrees(self) -> Tensor:
        """Return the length of each list ``[N]``."""
        return self.ptr.diff()


def find_distances(edge_index: Tensor, num_nodes: int, distances: int) -> Distances:
    """Return all pairs of nodes up to a distance.

    Args:
        edge_index: Edges ``[2, E]`` from sources to targets.
        num_nodes: The number of nodes N.
        distances: The largest distance K, at least 1.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.distances import find_distances
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0 - 1 - 2
        >>> found = find_distances(path, num_nodes=3, distances=2)
        >>> found.counts.tolist(), found.nodes.tolist()
        ([[1, 1], [2, 0], [1, 1]], [1, 2, 0, 2, 1, 0])
    """
    graph = _successors(edge_index, num_nodes)
    if distances == 1:
        return Distances(graph.degrees().unsqueeze(1), graph.nodes, graph.undirected)
    if compiled.serves(graph.nodes):
        counts = _count_by_loops(graph, distances)
        nodes = graph.nodes.new_empty(int(counts.sum()))
        compiled.prepare("list_pairs", *graph[:2], distances, nodes, module="distance_loops")()
        return Distances(counts, nodes, graph.undirected)
    found = [(_counts(part, num_nodes), _nodes(part, num_nodes)) for part in _searches(graph, num_nodes, distances)]
    counts, nodes = (torch.cat(parts) for parts in zip(*found, strict=True))
    return Distances(counts, nodes, graph.undirected)


def count_distances(edge_index: Tensor, num_nodes: int, distances: int) -> Tensor:
    """Return the number of pairs of each first node at each distance from 1 to ``distances``, int64 ``[N, K]``.

    The arguments are those of :func:`find_distances`. The pairs are not kept.
    """
    graph = _successors(edge_index, num_nodes)
    if compiled.serves(graph.nodes):
        return _count_by_loops(graph, distances)
    return torch.cat([_counts(part, num_nodes) for part in _searches(graph, num_nodes, distances)])


def check_nodes(what: str, index: Tensor, num_nodes: int) -> None:
    """Raise unless all entries of ``index`` ``[2, P]`` are nodes from 0 to ``num_nodes - 1``."""
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < num_nodes:
        at = int(((index < 0) | (index >= num_nodes)).any(0).nonzero()[0])
        raise ValueError(f"{what} {at} is {index[:, at].tolist()}, but there are only nodes 0 to {num_nodes - 1}.")


def _successors(edge_index: Tensor, num_nodes: int) -> Successors:
    """Return the lists of neighbors without repeated edges and loops."""
    check_nodes("Edge", edge_index, num_nodes)
    source, target = edge_index.long()
    between = source != target
    keys = (source * num_nodes + target)[between].unique()
    source = keys // num_nodes
    target = keys % num_nodes
    undirected = torch.equal((target * num_nodes + source).sort().values, keys)
    counts = torch.bincount(source, minlength=num_nodes)
    return Successors(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), target, undirected)


def _count_by_loops(graph: Successors, distances: int) -> Tensor:
    counts = graph.nodes.new_zeros(graph.ptr.numel() - 1, distances)
    compiled.prepare("count_pairs", graph.ptr, graph.nodes, counts, module="distance_loops")()
    return counts


class Searches(NamedTuple):
    """The pairs that searches from consecutive nodes found; the pair (i, j) has the key ``i * N + j``."""

    first: int
    last: int
    levels: list[Tensor]
    """The keys of the pairs at each distance from 1, sorted."""


def _searches(graph: Successors, num_nodes: int, distances: int) -> Iterator[Searches]:
    """Yield the searches from all nodes in order, so many at a time as ``CAPACITY`` allows."""
    waiting = [(0, num_nodes)]
    while waiting:
        first, last = waiting.pop()
        found = _search(graph, first, last, num_nodes, distances)
        if found is None:
            middle = (first + last) // 2
            waiting += [(middle, last), (first, middle)]
        else:
            yield Searches(first, last, found)


def _search(graph: Successors, first: int, last: int, num_nodes: int, distances: int) -> list[Tensor] | None:
    """Return the keys of each distance, or None if several searches together extend too many pairs."""
    sources = torch.arange(first, last, device=graph.nodes.device)
    frontier = known = sources * num_nodes + sources
    degrees = graph.degrees()
    levels = []
    for _ in range(distances):
        source = frontier // num_nodes
        node = frontier % num_nodes
        counts = degrees[node]
        total = int(counts.sum())
        if total > CAPACITY and last - first > 1:
            return None
        ends = counts.cumsum(0)
        shift = (graph.ptr[node] - ends + counts).repeat_interleave(counts, output_size=total)
        reached = graph.nodes[shift + torch.arange(total, device=shift.device)]
        keys = (source.repeat_interleave(counts, output_size=total) * num_nodes + reached).unique()
        frontier = keys[known[torch.searchsorted(known, keys).clamp(max=len(known) - 1)] != keys]
        known = torch.cat([known, frontier]).sort().values
        levels.append(frontier)
    return levels


def _counts(found: Searches, num_nodes: int) -> Tensor:
    """Return the number of pairs of each first node at each distance ``[last - first, K]``."""
    size = found.last - found.first
    owners = [keys // num_nodes - found.first for keys in found.levels]
    return torch.stack([torch.bincount(owner, minlength=size) for owner in owners], 1)


def _nodes(found: Searches, num_nodes: int) -> Tensor:
    """Return the second nodes, sorted by first node and distance."""
    keys = torch.cat(found.levels)
    order = (keys // num_nodes).sort(stable=True).indices  # the keys of each distance are sorted
    return keys[order] % num_nodes
