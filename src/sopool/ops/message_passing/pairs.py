"""Pairs of nodes at each distance, as lists: for each node the nodes one step away, two steps away and so on.

The first node of a pair comes first along the direction of the edges. All pairs are ordered: in an undirected graph
each occurs in both orders. A node and itself are no pair of the lists; they are at distance 0.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops.message_passing.distances import check_nodes, find_distances
from sopool.ops.message_passing.neighbors import Neighbors, aggregate
from sopool.ops.numba import dispatch as compiled
from sopool.ops.segment import standard
from sopool.ops.segment.standard import exporting


class Pairs(NamedTuple):
    """P pairs of N nodes at distances 1 to K.

    The nodes at distance k from node i are ``nodes[ptr[i * K + k - 1]:ptr[i * K + k]]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import find_pairs
        >>> pairs = find_pairs(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3, distances=2)
        >>> pair_index, pair_distance = pairs.coordinates()
        >>> pair_index
        tensor([[0, 0, 1, 1, 2, 2],
                [1, 2, 0, 2, 1, 0]])
        >>> pair_distance
        tensor([1, 2, 1, 1, 1, 2])
    """

    ptr: Tensor
    """The position at which each list starts ``[N * K + 1]``, int64."""
    nodes: Tensor
    """The entries of all lists ``[P]``, int64."""
    transposed: tuple[Tensor, Tensor]
    """``(ptr, lists)`` of the transposed lists, ``[N + 1]`` and ``[P]``: the lists that contain each node, where
    ``i * K + k - 1`` is the list of node i and distance k."""
    distances: int
    """The largest distance K."""

    @property
    def num_nodes(self) -> int:
        """The number of nodes N."""
        return self.transposed[0].numel() - 1

    def counts(self) -> Tensor:
        """Return the number of pairs of each first node at each distance, int64 ``[N, K]``."""
        return self.ptr.diff().view(self.num_nodes, self.distances)

    def owners(self) -> Tensor:
        """Return the list that each entry is in ``[P]``, ``i * K + k - 1`` for node i and distance k."""
        lists = torch.arange(self.ptr.numel() - 1, device=self.ptr.device)
        return lists.repeat_interleave(self.ptr.diff(), output_size=self.nodes.numel())

    def coordinates(self) -> tuple[Tensor, Tensor]:
        """Return the first and second node of each pair, int64 ``[2, P]``, and its distance, int64 ``[P]``."""
        owners = self.owners()
        return torch.stack([owners // self.distances, self.nodes]), owners % self.distances + 1

    def total(self, x: Tensor) -> Tensor:
        """Return the sum over each list: ``[N, F]`` to ``[N, K, F]``."""
        lists = Neighbors(self.ptr, self.nodes, self.transposed)
        return aggregate(x, lists, "sum").view(self.num_nodes, self.distances, x.shape[1])


def find_pairs(edge_index: Tensor, num_nodes: int, distances: int) -> Pairs:
    """Return the pairs of nodes of a graph, or of a batch of graphs, up to a distance.

    The distance from i to j is the number of edges of a shortest path along the direction of the edges. Repeated edges
    and self-loops change nothing.

    Args:
        edge_index: Edges ``[2, E]`` from sources to targets, as in PyG.
        num_nodes: The number of nodes N.
        distances: The largest distance K, at least 1.

    Examples:
        >>> import torch
        >>> from sopool.ops import find_pairs
        >>> pairs = find_pairs(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3, distances=2)
        >>> pairs.counts()  # of the path 0 - 1 - 2
        tensor([[1, 1],
                [2, 0],
                [1, 1]])
    """
    _check_distances(distances)
    if exporting():
        return _export_edges(edge_index, num_nodes, distances)
    return from_counts(*find_distances(edge_index, num_nodes, distances))


def list_pairs(pair_index: Tensor, pair_distance: Tensor, num_nodes: int, distances: int) -> Pairs:
    """Return given pairs of nodes as lists; pairs at larger distances than ``distances`` are left out.

    Args:
        pair_index: The first and second node of each pair ``[2, P]``, in any order.
        pair_distance: The distance of each pair, an integer from 1 ``[P]``.
        num_nodes: The number of nodes N.
        distances: The largest distance K, at least 1.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.pairs import list_pairs
        >>> list_pairs(torch.tensor([[2, 0], [0, 1]]), torch.tensor([2, 1]), num_nodes=3, distances=2).nodes
        tensor([1, 0])
    """
    _check_distances(distances)
    if exporting():
        return _export_pairs(pair_index, pair_distance, num_nodes, distances)
    check_nodes("Pair", pair_index, num_nodes)
    first, second = pair_index.long()
    near = pair_distance <= distances
    lists = (first * distances + pair_distance.long() - 1)[near]
    lists, order = lists.sort(stable=True)
    counts = torch.bincount(lists, minlength=num_nodes * distances).view(num_nodes, distances)
    return from_counts(counts, second[near][order], undirected=False)


def from_counts(counts: Tensor, nodes: Tensor, undirected: bool) -> Pairs:
    """Return the pairs with given numbers of each first node at each distance ``[N, K]``, and their second nodes.

    Args:
        counts: The number of pairs of each first node at each distance, int64 ``[N, K]``.
        nodes: The second node of each pair, sorted by first node and distance, int64 ``[P]``.
        undirected: Whether each pair occurs in both orders, so that the transposed lists need no sorting.
    """
    num_nodes, distances = counts.shape
    ptr = torch.cat([counts.new_zeros(1), counts.flatten().cumsum(0)])
    pairs = Pairs(ptr, nodes, (ptr[::distances], nodes), distances)
    owners = pairs.owners()
    if undirected:
        return pairs._replace(transposed=(ptr[::distances].contiguous(), nodes * distances + owners % distances))
    into = torch.bincount(nodes, minlength=num_nodes)
    ends = torch.cat([into.new_zeros(1), into.cumsum(0)])
    if not compiled.serves(nodes):
        return pairs._replace(transposed=(ends, owners[nodes.sort(stable=True).indices]))
    lists = torch.empty_like(owners)
    compiled.prepare("transpose_lists", nodes.contiguous(), owners, ends, lists, module="distance_loops")()
    return pairs._replace(transposed=(ends, lists))


def _export_edges(edge_index: Tensor, num_nodes: int, distances: int) -> Pairs:
    """Return the pairs at distance 1 with operators that a program can hold."""
    if distances > 1:
        raise ValueError(
            f"distances={distances}: an exported program cannot search for pairs of nodes. Export the readout with "
            "pair_index and pair_distance in place of edge_index, or with walks=True or distances=1."
        )
    first, second = edge_index
    key = first * num_nodes + second
    order = standard.rising(key)
    again = key[order] == F.pad(key[order], (1, 0), value=-1)[:-1]
    first, second = first[order], second[order]
    return _export_pairs(torch.stack([first, second]), 1 + (again | (first == second)).long(), num_nodes, 1)


def _export_pairs(pair_index: Tensor, pair_distance: Tensor, num_nodes: int, distances: int) -> Pairs:
    """Return the lists with operators that a program can hold; pairs that are too far come after all lists."""
    first, second = pair_index
    near = pair_distance <= distances
    lists = torch.where(near, first * distances + pair_distance - 1, num_nodes * distances)
    ptr = standard.positions(standard.count(lists, num_nodes * distances + 1)[:-1])
    ends = standard.positions(standard.count(torch.where(near, second, num_nodes), num_nodes + 1)[:-1])
    return Pairs(ptr, second[standard.rising(lists)], (ends, lists[:0]), distances)  # sums in programs need no others


def _check_distances(distances: int) -> None:
    if distances < 1:
        raise ValueError(f"distances={distances}: it must be the largest distance between two nodes, at least 1.")
