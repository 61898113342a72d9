"""A data set as the bank needs it: graphs laid side by side by index operations alone."""

from dataclasses import dataclass, is_dataclass, replace
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
    from sopool.ops.triton.assembly import Assembled
    from sopool.training.clusters import ClusterTables


class Lists(NamedTuple):
    """Whom each node hears, itself included, in increasing order; the lists of one graph lie side by side."""

    graph_ptr: Tensor
    """Where each graph's lists start in ``nodes`` [G + 1]."""
    starts: Tensor
    """Where each node's list starts there [N + 1]."""
    nodes: Tensor
    """Numbered from 0 within each graph [L], int32."""

    @property
    def lengths(self) -> Tensor:
        """Of each node's list [N]."""
        return self.starts.diff()

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The (ptr, nodes) of a batch: the lists of its ``nodes``, numbered within it."""
        list_ptr, members = take_segments(self.graph_ptr, graphs)
        shift = spread(ptr[:-1], list_ptr)
        starts = torch.zeros(nodes.numel() + 1, dtype=torch.long, device=ptr.device)
        torch.cumsum(self.lengths.index_select(0, nodes), 0, out=starts[1:])
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
        undirected = torch.equal(hears.nodes, heard_by.nodes) and torch.equal(hears.starts, heard_by.starts)
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
        return self.features.codes.shape[0] / max(1, len(self))

    @property
    def nbytes(self) -> int:
        """What they take."""
        return _nbytes(self)

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

        With ``room`` kernels do it: nothing waits for the device, and rows past ``ptr[-1]`` are spare, of no graph.
        """
        if room is not None:
            return self._batch_in(room, graphs, substitutes)
        chosen = graphs.flatten()
        ptr, nodes = take_segments(self.node_ptr, chosen)
        hears = self.hears.take(chosen, ptr, nodes)
        heard_by = hears if self.heard_by is None else self.heard_by.take(chosen, ptr, nodes)
        codes = self.features.codes.index_select(0, nodes)
        if substitutes is not None:
            model = spread(torch.arange(len(graphs), device=ptr.device), ptr[:: graphs.shape[1]])
            codes = substitutes[model.unsqueeze(1), codes.long()]
        clusters = None if self.clusters is None else self.clusters.take(chosen, ptr, nodes)
        return Batch(self.features.rows(nodes, codes), Neighbors(*hears, heard_by, clusters), ptr)

    def _batch_in(self, room: Room, graphs: Tensor, substitutes: Tensor | None) -> Batch:
        """Rows are as in the other one, spare ones of zeros; clusters are for models that need no room."""
        from sopool.ops.triton.assembly import assemble, one_hot

        def take(lists: Lists) -> "Assembled":
            codes = self.features.codes
            return assemble(graphs, self.node_ptr, *lists, codes, room, substitutes)

        out = take(self.hears)
        reverse = out if self.heard_by is None else take(self.heard_by)
        x = self.features.add_dense(one_hot(out.codes, self.features.width), out.nodes)
        return Batch(x, Neighbors(out.starts, out.members, (reverse.starts, reverse.members)), out.ptr)


def make_lists(store: PackedGraphs, by: int) -> Lists:
    """The lists of the edges' targets (``by`` 1) or sources (0). One sort of whole numbers makes them."""
    most = int(store.sizes.max()) if len(store) else 0
    own = torch.arange(store.num_nodes, device=store.device)
    first = store.node_ptr[:-1].repeat_interleave(store.sizes, output_size=store.num_nodes)
    keys = [own * most + (own - first)]
    keys += [edges[by] * most + (edges[1 - by] - first[edges[1 - by]]) for edges in edge_blocks(store)]
    ordered = torch.from_numpy(np.sort(torch.cat(keys).cpu().numpy())).to(store.device)
    lengths = torch.bincount(ordered // max(1, most), minlength=store.num_nodes)
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return Lists(starts[store.node_ptr], starts, (ordered % max(1, most)).int())


def _nbytes(thing: object) -> int:
    """Of all tensors in something made of dataclasses and tuples."""
    if isinstance(thing, Tensor):
        return thing.nbytes
    parts = thing if isinstance(thing, tuple) else vars(thing).values() if is_dataclass(thing) else ()
    return sum(_nbytes(part) for part in parts)
