"""List the pairs of nodes at each distance in the graphs of a data set, for second order across nodes.

All pairs are ordered: two nodes of an undirected graph count twice. A node and itself are no pair. Distances are
lengths of shortest paths along the direction of the edges; repeated edges and self-loops change nothing.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sopool.data.graphs import GraphBatch, PackedGraphs, expand_segments
from sopool.data.neighbor_lists import Lists, Taken
from sopool.errors import SettingError
from sopool.ops.message_passing.distances import count_distances, find_distances
from sopool.ops.message_passing.pairs import Pairs
from sopool.ops.segment.standard import positions

if TYPE_CHECKING:
    from sopool.ops.triton.assembly import Assembled

MOST_PAIRS = 2**26
"""The default of the largest number of pairs of a data set, which take 384 MB, or twice
as much if edges have directions."""
TOGETHER = 2**16
"""The number of nodes whose pairs are found at a time, unless a single graph has more."""


@dataclass(frozen=True, eq=False)
class PairLists:
    """The P pairs of nodes of G graphs with N nodes in all, at distances 1 to K."""

    counts: Tensor
    """The number of pairs of each first node at each distance, int32 ``[N, K]``."""
    lists: Lists
    """The second nodes of each first node, sorted by distance, with the distance minus one as their label."""
    reverse: Lists | None
    """The first nodes of each second node; None if every pair occurs in both orders, so that both are equal."""

    @classmethod
    def of(cls, store: PackedGraphs, counts: Tensor, nodes: Tensor, undirected: bool) -> "PairLists":
        """Return the lists of given pairs.

        Args:
            store: The graphs, on a CPU.
            counts: The number of pairs of each first node at each distance, int32 ``[N, K]``.
            nodes: The second node of each pair, numbered from 0 within its graph, sorted by first node and distance,
                int32 ``[P]``.
            undirected: Whether every pair occurs in both orders.
        """
        lengths = counts.sum(1, dtype=torch.long)
        steps = torch.arange(counts.shape[1], dtype=torch.int16).repeat(len(counts))
        steps = steps.repeat_interleave(counts.flatten().long())
        starts = positions(lengths)
        lists = Lists(starts[store.node_ptr], starts, nodes, steps)
        if undirected:
            return cls(counts, lists, None)
        first = expand_segments(store.node_ptr[:-1], lists.graph_ptr)
        second = first + nodes
        order = second.sort(stable=True).indices
        own = torch.arange(len(counts)).repeat_interleave(lengths) - first
        back = positions(torch.bincount(second, minlength=len(counts)))
        return cls(counts, lists, Lists(lists.graph_ptr, back, own[order].int(), steps[order]))

    @property
    def distances(self) -> int:
        """The largest distance K."""
        return self.counts.shape[1]

    @property
    def sizes(self) -> Tensor:
        """The number of pairs of each graph ``[G]``."""
        return self.lists.graph_ptr.diff()

    def totals(self) -> list[int]:
        """Return the number of pairs of all graphs at each distance from 1 to K."""
        totals: list[int] = self.counts.sum(0, dtype=torch.long).tolist()
        return totals

    def to(self, device: torch.device | str) -> "PairLists":
        """Return the same lists on another device.

        Args:
            device: The target device.
        """
        reverse = None if self.reverse is None else self.reverse.to(device)
        return PairLists(self.counts.to(device), self.lists.to(device), reverse)

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Pairs:
        """Return the pairs of a batch of the graphs, on the device of the lists.

        Args:
            graphs: The numbers of the graphs ``[G]``.
            ptr: The position of each graph's first node in the batch ``[G + 1]``.
            nodes: The node of the data set that each node of the batch is ``[N]``.
        """
        taken = self.lists.take(graphs, ptr, nodes)
        back = taken if self.reverse is None else self.reverse.take(graphs, ptr, nodes)
        return self._pairs(self.counts.index_select(0, nodes), taken, back)

    def take_padded(self, assemble: Callable[[Lists], "Assembled"]) -> Pairs:
        """Return the pairs of a padded batch, whose spare nodes have none.

        Args:
            assemble: The function that assembles the batch's part of some lists.
        """
        out = assemble(self.lists)
        back = out if self.reverse is None else assemble(self.reverse)
        used = torch.arange(len(out.nodes), device=out.nodes.device) < out.ptr[-1]
        counts = self.counts.index_select(0, out.nodes) * used.unsqueeze(1)
        return self._pairs(counts, *(Taken(one.starts, one.members, one.labels) for one in (out, back)))

    def _pairs(self, counts: Tensor, taken: Taken, back: Taken) -> Pairs:
        assert back.labels is not None
        ptr = positions(counts.flatten().long())
        return Pairs(ptr, taken.nodes, (back.starts, back.nodes * self.distances + back.labels), self.distances)


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
    return PairLists.of(store, *find_counts(store, distances, most_pairs))


def find_counts(store: PackedGraphs, distances: int, most_pairs: int) -> tuple[Tensor, Tensor, bool]:
    """Return the counts and second nodes of the pairs up to that distance, and whether each occurs in both orders."""
    allowed = affordable(store, distances, most_pairs)
    counts = [torch.zeros(0, allowed, dtype=torch.int32)]
    nodes = [torch.zeros(0, dtype=torch.int32)]
    undirected = True
    for part in _parts(store):
        found = find_distances(part.edge_index, part.nodes.numel(), allowed)
        counts.append(found.counts.int())
        nodes.append(_within_graphs(part, found.counts, found.nodes))
        undirected &= found.undirected
    return torch.cat(counts), torch.cat(nodes), undirected


def pair_offsets(store: PackedGraphs, counts: Tensor) -> Tensor:
    """Return the position of the first pair of each graph ``[G + 1]``, given the counts of each node ``[N, K]``."""
    return positions(counts.sum(1, dtype=torch.long))[store.node_ptr]


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
