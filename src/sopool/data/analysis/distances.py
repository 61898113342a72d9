"""List the pairs of nodes at each distance in the graphs of a data set, for second order across nodes.

All pairs are ordered: two nodes of an undirected graph count twice. A node and itself are no pair. Distances are
lengths of shortest paths along the direction of the edges; repeated edges and self-loops change nothing.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.data.graphs import GraphBatch, PackedGraphs, expand_segments, take_segments
from sopool.errors import SettingError
from sopool.ops.message_passing.distances import count_distances, find_distances
from sopool.ops.message_passing.pairs import Pairs, from_counts

MOST_PAIRS = 2**26
"""The default of the largest number of pairs of a data set, which take 256 MB."""
TOGETHER = 2**16
"""The number of nodes whose pairs are found at a time, unless a single graph has more."""


class PairLists(NamedTuple):
    """The P pairs of nodes of G graphs with N nodes in all, at distances 1 to K."""

    counts: Tensor
    """The number of pairs of each first node at each distance, int32 ``[N, K]``."""
    nodes: Tensor
    """The second node of each pair, numbered from 0 within its graph, sorted by first node and distance, int32
    ``[P]``."""
    ptr: Tensor
    """The position of the first pair of each graph, int64 ``[G + 1]``."""
    undirected: bool
    """Whether every pair occurs in both orders."""

    @property
    def distances(self) -> int:
        """The largest distance K."""
        return self.counts.shape[1]

    def totals(self) -> list[int]:
        """Return the number of pairs of all graphs at each distance from 1 to K."""
        totals: list[int] = self.counts.sum(0, dtype=torch.long).tolist()
        return totals

    def to(self, device: torch.device | str) -> "PairLists":
        """Return the same lists on another device.

        Args:
            device: The target device.
        """
        return PairLists(self.counts.to(device), self.nodes.to(device), self.ptr.to(device), self.undirected)

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Pairs:
        """Return the pairs of a batch of the graphs, on the device of the lists.

        Args:
            graphs: The numbers of the graphs ``[G]``.
            ptr: The position of each graph's first node in the batch ``[G + 1]``.
            nodes: The node of the data set that each node of the batch is ``[N]``.
        """
        pair_ptr, entries = take_segments(self.ptr, graphs)
        shift = expand_segments(ptr[:-1], pair_ptr)
        second = self.nodes.index_select(0, entries) + shift
        return from_counts(self.counts.index_select(0, nodes).long(), second, self.undirected)


def pair_lists(store: PackedGraphs, distances: int, most_pairs: int = MOST_PAIRS) -> PairLists:
    """Return the pairs of nodes of every graph up to a distance, or up to the largest one that ``most_pairs`` allows.

    Args:
        store: The graphs, on a CPU.
        distances: The largest distance K, at least 1.
        most_pairs: The largest number of pairs of all graphs together. If there are more, the largest distance is
            reduced, with a warning. Default: ``MOST_PAIRS``.

    Raises:
        SettingError: If there are more pairs at distance 1 alone.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.analysis.distances import pair_lists
        >>> lists = pair_lists(load("MUTAG"), distances=3)
        >>> lists.distances, lists.totals()
        (3, [7442, 10856, 11512])
    """
    lists = find_lists(store, distances, most_pairs)
    warn_of_fewer(store, distances, lists.distances, most_pairs)
    return lists


def all_pair_lists(store: PackedGraphs, distances: int, most_pairs: int = MOST_PAIRS) -> PairLists:
    """Return the pairs of nodes of every graph up to a distance.

    Args:
        store: The graphs, on a CPU.
        distances: The largest distance K, at least 1.
        most_pairs: The largest number of pairs of all graphs together. Default: ``MOST_PAIRS``.

    Raises:
        SettingError: If there are more pairs.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.analysis.distances import all_pair_lists
        >>> all_pair_lists(load("MUTAG"), distances=2).totals()
        [7442, 10856]
    """
    allowed = affordable(store, distances, most_pairs)
    refuse_fewer(store, distances, allowed, most_pairs)
    return find_lists(store, allowed, most_pairs)


def find_lists(store: PackedGraphs, distances: int, most_pairs: int) -> PairLists:
    """Return the pairs up to the largest distance that ``most_pairs`` allows, without a warning."""
    allowed = affordable(store, distances, most_pairs)
    counts = [torch.zeros(0, allowed, dtype=torch.int32)]
    nodes = [torch.zeros(0, dtype=torch.int32)]
    undirected = True
    for part in _parts(store):
        found = find_distances(part.edge_index, part.nodes.numel(), allowed)
        counts.append(found.counts.int())
        nodes.append(_within_graphs(part, found.counts, found.nodes))
        undirected &= found.undirected
    every = torch.cat(counts)
    return PairLists(every, torch.cat(nodes), pair_offsets(store, every), undirected)


def pair_offsets(store: PackedGraphs, counts: Tensor) -> Tensor:
    """Return the position of the first pair of each graph ``[G + 1]``, given the counts of each node ``[N, K]``."""
    ends = counts.sum(1, dtype=torch.long).cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])[store.node_ptr]


def warn_of_fewer(store: PackedGraphs, distances: int, allowed: int, most_pairs: int) -> None:
    """Warn if the pairs do not reach the wanted distance."""
    if allowed < distances:
        warnings.warn(
            f"{store.name} has more than {most_pairs:,} pairs of nodes up to distance {distances}, so the pairs go up "
            f"to distance {allowed} only. Increase most_pairs for more.",
            stacklevel=3,
        )


def refuse_fewer(store: PackedGraphs, distances: int, allowed: int, most_pairs: int) -> None:
    """Raise a ``SettingError`` if the pairs do not reach the wanted distance."""
    if allowed < distances:
        raise SettingError(
            f"{store.name} has more than {most_pairs:,} pairs of nodes up to distance {distances}: use the option "
            f"distances={allowed} of sopool-pairs, or walks=true, which needs no pairs."
        )


def is_undirected(store: PackedGraphs) -> bool:
    """Return whether each edge exists in both directions."""
    return all(find_distances(part.edge_index, part.nodes.numel(), 1).undirected for part in _parts(store))


def affordable(store: PackedGraphs, distances: int, most_pairs: int) -> int:
    """Return the largest distance, up to ``distances``, up to which there are at most ``most_pairs`` pairs."""
    if distances < 1:
        raise SettingError(f"distances={distances}: it must be the largest distance between two nodes, at least 1.")
    if int((store.sizes * (store.sizes - 1)).sum()) <= most_pairs:
        return distances
    totals = torch.zeros(distances, dtype=torch.long)
    for part in _parts(store):
        totals += count_distances(part.edge_index, part.nodes.numel(), distances).sum(0)
    allowed = int((totals.cumsum(0) <= most_pairs).sum())
    if allowed == 0:
        raise SettingError(
            f"most_pairs={most_pairs:,}, but {store.name} has {int(totals[0]):,} pairs of nodes at distance 1 alone: "
            "increase it."
        )
    return allowed


def _parts(store: PackedGraphs) -> Iterator[GraphBatch]:
    """Yield all graphs in order, a limited number of nodes at a time."""
    first = 0
    while first < len(store):
        limit = store.node_ptr[first] + TOGETHER
        last = max(first + 1, int(torch.searchsorted(store.node_ptr, limit, right=True)) - 1)
        yield store.batch(torch.arange(first, last))
        first = last


def _within_graphs(part: GraphBatch, counts: Tensor, nodes: Tensor) -> Tensor:
    """Return the second nodes numbered from 0 within each graph, int32 ``[P]``."""
    starts = part.ptr[:-1].repeat_interleave(part.ptr.diff())
    return (nodes - starts.repeat_interleave(counts.sum(1))).int()
