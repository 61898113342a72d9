"""The neighbor lists of all graphs of a data set, of which batches take theirs by index operations alone."""

from typing import NamedTuple

import torch
from torch import Tensor

from sopool.data.features.edge_features import EdgeFeatures
from sopool.data.graphs import PackedGraphs, expand_segments, take_segments


class Lists(NamedTuple):
    """The neighbors of each node, including itself, in increasing order; the lists of one graph are contiguous."""

    graph_ptr: Tensor
    """The position of each graph's first entry in ``nodes`` ``[G + 1]``."""
    starts: Tensor
    """The position of each node's first entry in ``nodes`` ``[N + 1]``."""
    nodes: Tensor
    """The L neighbors, numbered from 0 within each graph ``[L]``, int32."""
    labels: Tensor | None = None
    """The code of the edge to each neighbor ``[L]``, int32; -1 for the node itself. None if codes are not used."""
    edges: Tensor | None = None
    """The edge to each neighbor ``[L]``, int32; negative for the node itself. None if no numbers of edges are used."""

    @property
    def lengths(self) -> Tensor:
        """The number of neighbors of each node ``[N]``."""
        return self.starts.diff()

    def to(self, device: torch.device | str) -> "Lists":
        """Return the lists on another device."""
        numbers = (None if value is None else value.to(device) for value in (self.labels, self.edges))
        return Lists(self.graph_ptr.to(device), self.starts.to(device), self.nodes.to(device), *numbers)

    def same(self, other: "Lists") -> bool:
        """Return whether two sets of lists are equal, whichever edges they are of."""
        pairs = zip(self[:4], other[:4], strict=True)
        return all(torch.equal(a, b) for a, b in pairs if a is not None and b is not None)

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> "Taken":
        """Return the lists of a batch of graphs, with nodes numbered within the batch."""
        list_ptr, members = take_segments(self.graph_ptr, graphs)
        shift = expand_segments(ptr[:-1], list_ptr)
        starts = torch.zeros(nodes.numel() + 1, dtype=torch.long, device=ptr.device)
        torch.cumsum(self.lengths.index_select(0, nodes), 0, out=starts[1:])
        labels = None if self.labels is None else self.labels.index_select(0, members).long()
        edges = None if self.edges is None else self.edges.index_select(0, members).long()
        return Taken(starts, shift.add_(self.nodes.index_select(0, members)), labels, edges)


class Taken(NamedTuple):
    """The neighbor lists of a batch."""

    starts: Tensor
    nodes: Tensor
    labels: Tensor | None = None
    edges: Tensor | None = None

    @property
    def lists(self) -> tuple[Tensor, Tensor]:
        """The positions and neighbors, as :class:`~sopool.ops.message_passing.neighbors.Neighbors` expects them."""
        return self.starts, self.nodes


def make_lists(store: PackedGraphs, by: int, edges: EdgeFeatures | None = None) -> Lists:
    """Return the neighbor lists by edge target (``by=1``) or by edge source (``by=0``); one integer sort makes them."""
    bits = max(0, int(store.sizes.max()) - 1).bit_length() if len(store) else 0
    own = torch.arange(store.num_nodes, device=store.device)
    first = store.node_ptr[:-1]
    target = expand_segments(first, store.edge_ptr).add_(store.edge_index[by])
    key = torch.cat([own, target]).bitwise_left_shift_(bits)
    key[: store.num_nodes] += own - expand_segments(first, store.node_ptr)
    key[store.num_nodes :] += store.edge_index[1 - by]
    codes = None if edges is None else edges.codes
    kinds = 1 if codes is None or edges is None else edges.kinds + 1
    if codes is not None:  # 0 for the node itself; repeated edges are in the same order in both directions
        key.mul_(kinds)[store.num_nodes :] += codes + 1
    numbers = None
    if edges is None or (edges.attributes is None and edges.weights is None):
        ordered = _sort(key)
    else:
        ordered, places = key.sort(stable=True)
        numbers = (places - store.num_nodes).int()
    labels = None
    if codes is not None:
        labels = (ordered % kinds - 1).int()
        ordered //= kinds
    lengths = torch.bincount(target, minlength=store.num_nodes).add_(1)
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    nodes = ordered.bitwise_and_((1 << bits) - 1).int()
    return Lists(starts[store.node_ptr], starts, nodes, labels, numbers)


def _sort(keys: Tensor) -> Tensor:
    """Sort in increasing order, in place if possible."""
    if keys.device.type != "cpu":
        return keys.sort().values
    keys.numpy().sort(kind="stable")  # fast for partly sorted keys: the edges of a graph are contiguous
    return keys
