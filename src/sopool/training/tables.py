"""A data set as the bank needs it: graphs laid side by side by index operations alone."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Union

import numpy as np
import torch
from torch import Tensor

from sopool.data.edges import edge_blocks
from sopool.data.errors import DataError
from sopool.data.features import NodeFeatures
from sopool.data.store import PackedGraphs, spread, take_segments
from sopool.ops.neighbors import Neighbors

if TYPE_CHECKING:
    from sopool.training.clusters import ClusterTables


class Lists(NamedTuple):
    """Whom each node hears, itself included, in increasing order; the lists of one graph lie side by side."""

    graph_ptr: Tensor
    """Where each graph's lists start in ``nodes`` [G + 1]."""
    lengths: Tensor
    """Of each node's list [N]."""
    nodes: Tensor
    """Numbered from 0 within each graph [L], int32."""

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor, room: "Room | None") -> tuple[Tensor, Tensor]:
        """The (ptr, nodes) of a batch: the lists of its ``nodes``, numbered within it; empty ones for spare nodes."""
        listed = None if room is None else room.listed
        list_ptr, members = take_segments(self.graph_ptr, graphs, listed)
        shift = spread(ptr[:-1], list_ptr, listed)
        starts = torch.zeros(nodes.numel() + 1, dtype=torch.long, device=ptr.device)
        torch.cumsum(self.lengths.index_select(0, nodes), 0, out=starts[1:])
        starts = starts if room is None else starts.clamp_(max=list_ptr[-1])
        return starts, shift.add_(self.nodes.index_select(0, members))


class Room(NamedTuple):
    """How much space a batch has: shapes that are known before the graphs are, as a captured step needs them."""

    nodes: int
    listed: int
    """Members of all lists."""


class Batch(NamedTuple):
    """Some graphs side by side, with what a model asks for."""

    x: Tensor
    neighbors: Neighbors
    ptr: Tensor


@dataclass(frozen=True, eq=False)
class GraphTables:
    """All graphs of a data set on one device."""

    node_ptr: Tensor
    hears: Lists
    heard_by: Lists | None
    """None for undirected graphs, where it is ``hears``."""
    features: NodeFeatures
    labels: Tensor
    """The class of each graph [G]; all 0 in tables for prediction."""
    classes: int
    clusters: Union["ClusterTables", None] = None
    """For models that ask for them."""

    @classmethod
    def build(cls, store: PackedGraphs, features: NodeFeatures) -> "GraphTables":
        """From a store and the features of its nodes, on the store's device."""
        if store.labels is None:
            raise DataError(f"{store.name} has no labels: there is nothing to learn.")
        hears, heard_by = make_lists(store, 1), make_lists(store, 0)
        undirected = torch.equal(hears.nodes, heard_by.nodes) and torch.equal(hears.lengths, heard_by.lengths)
        return cls(store.node_ptr, hears, None if undirected else heard_by, features, store.labels, len(store.classes))

    @classmethod
    def for_prediction(cls, store: PackedGraphs, features: NodeFeatures, classes: int) -> "GraphTables":
        """Likewise, of graphs without labels: who is heard by whom is left out, since only gradients ask for it."""
        none = torch.zeros(len(store), dtype=torch.long, device=store.device)
        return cls(store.node_ptr, make_lists(store, 1), None, features, none, classes)

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.node_ptr.device

    @property
    def mean_nodes(self) -> float:
        """Nodes per graph."""
        return self.hears.lengths.numel() / max(1, len(self))

    def to(self, device: torch.device | str) -> "GraphTables":
        """The same on another device."""
        return replace(
            self,
            node_ptr=self.node_ptr.to(device),
            hears=Lists(*(tensor.to(device) for tensor in self.hears)),
            heard_by=None if self.heard_by is None else Lists(*(tensor.to(device) for tensor in self.heard_by)),
            features=self.features.to(device),
            labels=self.labels.to(device),
            clusters=None if self.clusters is None else self.clusters.to(device),
        )

    def columns_used(self, graphs: Tensor) -> Tensor:
        """Which columns of the features some graphs use [width], bool."""
        return self.features.used(take_segments(self.node_ptr, graphs.to(self.node_ptr.device))[1])

    def room(self, graphs: np.ndarray) -> Room:
        """What a batch of these graphs takes."""
        nodes, listed = self._sizes
        return Room(int(nodes[graphs].sum()), int(listed[graphs].sum()))

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """The nodes and list members of each graph, on the host."""
        return self.node_ptr.diff().cpu().numpy(), self.hears.graph_ptr.diff().cpu().numpy()

    def batch(self, graphs: Tensor, substitutes: Tensor | None = None, room: Room | None = None) -> Batch:
        """Lay ``graphs`` [M, g] side by side; model m sees column ``substitutes[m, c]`` [M, width] where c is due.

        With ``room`` nothing waits for the device, and rows past ``ptr[-1]`` are spare: they belong to no graph.
        """
        chosen = graphs.flatten()
        space = None if room is None else room.nodes
        ptr, nodes = take_segments(self.node_ptr, chosen, space)
        hears = self.hears.take(chosen, ptr, nodes, room)
        heard_by = hears if self.heard_by is None else self.heard_by.take(chosen, ptr, nodes, room)
        codes = None
        if substitutes is not None:
            models = torch.arange(len(graphs), device=ptr.device)
            model = spread(models, ptr[:: graphs.shape[1]], space)
            codes = substitutes[model.unsqueeze(1), self.features.codes.index_select(0, nodes).long()]
        clusters = None if self.clusters is None else self.clusters.take(chosen, ptr, nodes)
        return Batch(self.features.rows(nodes, codes), Neighbors(*hears, heard_by, clusters), ptr)


def make_lists(store: PackedGraphs, by: int) -> Lists:
    """The lists of the edges' targets (``by`` 1) or sources (0). One sort of whole numbers makes them."""
    most = int(store.sizes.max()) if len(store) else 0
    own = torch.arange(store.num_nodes, device=store.device)
    first = store.node_ptr[:-1].repeat_interleave(store.sizes, output_size=store.num_nodes)
    keys = [own * most + (own - first)]
    keys += [edges[by] * most + (edges[1 - by] - first[edges[1 - by]]) for edges in edge_blocks(store)]
    ordered = torch.from_numpy(np.sort(torch.cat(keys).cpu().numpy())).to(store.device)
    lengths = torch.bincount(ordered // max(1, most), minlength=store.num_nodes)
    ends = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return Lists(ends[store.node_ptr], lengths, (ordered % max(1, most)).int())
