"""A data set in the layout that a bank needs: batches are made by index operations alone."""

from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Union

import numpy as np
import torch
from torch import Tensor

from sopool.data.division import Division
from sopool.data.features.edge_labels import EdgeCodes
from sopool.data.features.node_features import NodeFeatures
from sopool.data.graphs import PackedGraphs, expand_segments, take_segments
from sopool.objectives import Objective, objective_for, truth_of
from sopool.ops.message_passing.neighbors import EdgeLabels, Neighbors

if TYPE_CHECKING:
    from sopool.ops.triton.assembly import Assembled
    from sopool.training.bank.cluster_tables import ClusterTables


class Lists(NamedTuple):
    """The neighbors of each node, including itself, in increasing order; the lists of one graph are contiguous."""

    graph_ptr: Tensor
    """The position of each graph's first entry in ``nodes`` ``[G + 1]``."""
    starts: Tensor
    """The position of each node's first entry in ``nodes`` ``[N + 1]``."""
    nodes: Tensor
    """The L neighbors, numbered from 0 within each graph ``[L]``, int32."""
    labels: Tensor | None = None
    """The label of the edge to each neighbor ``[L]``, int32; -1 for the node itself. None if labels are not used."""

    @property
    def lengths(self) -> Tensor:
        """The number of neighbors of each node ``[N]``."""
        return self.starts.diff()

    def to(self, device: torch.device | str) -> "Lists":
        """Return the lists on another device."""
        labels = None if self.labels is None else self.labels.to(device)
        return Lists(self.graph_ptr.to(device), self.starts.to(device), self.nodes.to(device), labels)

    def same(self, other: "Lists") -> bool:
        """Return whether two sets of lists are equal."""
        pairs = zip(self, other, strict=True)
        return all(torch.equal(a, b) for a, b in pairs if a is not None and b is not None)

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> "Taken":
        """Return the lists of a batch of graphs, with nodes numbered within the batch."""
        list_ptr, members = take_segments(self.graph_ptr, graphs)
        shift = expand_segments(ptr[:-1], list_ptr)
        starts = torch.zeros(nodes.numel() + 1, dtype=torch.long, device=ptr.device)
        torch.cumsum(self.lengths.index_select(0, nodes), 0, out=starts[1:])
        labels = None if self.labels is None else self.labels.index_select(0, members).long()
        return Taken(starts, shift.add_(self.nodes.index_select(0, members)), labels)


class Taken(NamedTuple):
    """The neighbor lists of a batch."""

    starts: Tensor
    nodes: Tensor
    labels: Tensor | None

    @property
    def lists(self) -> tuple[Tensor, Tensor]:
        """The positions and neighbors, as :class:`~sopool.ops.message_passing.neighbors.Neighbors` expects them."""
        return self.starts, self.nodes


class Capacity(NamedTuple):
    """The size that a batch is padded to; a captured step needs fixed shapes."""

    nodes: int
    """The number of nodes."""
    listed: int
    """The number of neighbors in all lists."""


class Batch(NamedTuple):
    """A batch of graphs, in the form that models take."""

    x: Tensor
    """The node features ``[N, F]``."""
    neighbors: Neighbors
    """The neighbors of each node, as message passing needs them."""
    ptr: Tensor
    """The position of each graph's first node ``[G + 1]``."""
    graph_x: Tensor | None = None
    """The standardized attributes of each graph ``[G, D]``, 0 where missing; None if they are not used."""

    def to(self, dtype: torch.dtype) -> "Batch":
        """Return the batch with all features of one precision."""
        return self._replace(x=self.x.to(dtype), graph_x=None if self.graph_x is None else self.graph_x.to(dtype))


@dataclass(frozen=True, eq=False)
class GraphTables:
    """All graphs of a data set on one device, from which batches are made.

    Examples:
        >>> import torch
        >>> from sopool.data import AttributeEncoder, make_agreement
        >>> graphs = make_agreement(20)
        >>> tables = GraphTables.build(graphs, AttributeEncoder().fit(graphs).transform(graphs))
        >>> batch = tables.batch(torch.tensor([[0, 1], [2, 3]]))  # two graphs for each of two models
        >>> len(tables), batch.ptr.shape, batch.x.shape[0] == int(batch.ptr[-1])
        (20, torch.Size([5]), True)
    """

    node_ptr: Tensor
    """The position of each graph's first node ``[G + 1]``."""
    neighbors: Lists
    """The lists of the nodes that each node receives messages from."""
    transposed: Lists | None
    """The lists of the nodes that receive messages from each node. None for undirected graphs, where both are equal."""
    features: NodeFeatures
    """The node features."""
    objective: Objective | None = None
    """What is predicted; None in tables for prediction."""
    truth: Tensor | None = None
    """The true values, see :func:`~sopool.objectives.truth_of`; None in tables for prediction."""
    weights: Tensor | None = None
    """The weight of each graph in the loss ``[G]``; None for equal weights."""
    clusters: Union["ClusterTables", None] = None
    """The clusters of each graph, for models that need them."""
    edge_kinds: int = 0
    """The number of edge labels, including the one for unknown labels; 0 if they are not used."""
    division: Division = field(default_factory=Division)
    """What training, held-out and test graphs are divided by; always on the host."""

    @classmethod
    def build(
        cls,
        store: PackedGraphs,
        features: NodeFeatures,
        edges: EdgeCodes | None = None,
        objective: Objective | None = None,
    ) -> "GraphTables":
        """Build the tables of graphs to train on.

        Args:
            store: The graphs, with labels or targets.
            features: The features of their nodes.
            edges: The labels of their edges. Default: None, for models that do not use them.
            objective: What to predict. Default: None, found from the values, see
                :func:`~sopool.objectives.objective_for`.
        """
        objective = objective or objective_for(store)
        neighbors = make_lists(store, 1, edges)
        transposed = make_lists(store, 0, edges)
        both = None if neighbors.same(transposed) else transposed
        kinds = 0 if edges is None else edges.kinds
        truth = truth_of(store, objective.task)
        division = Division.of(store)
        return cls(store.node_ptr, neighbors, both, features, objective, truth, edge_kinds=kinds, division=division)

    @classmethod
    def for_prediction(
        cls, store: PackedGraphs, features: NodeFeatures, edges: EdgeCodes | None = None
    ) -> "GraphTables":
        """Build the tables of graphs without labels, and without the transposed lists, which only gradients need.

        Args:
            store: The graphs.
            features: The features of their nodes.
            edges: The labels of their edges. Default: None, for models that do not use them.
        """
        kinds = 0 if edges is None else edges.kinds
        return cls(store.node_ptr, make_lists(store, 1, edges), None, features, edge_kinds=kinds)

    @property
    def goal(self) -> tuple[Objective, Tensor]:
        """The objective and the true values of tables to train on."""
        assert self.objective is not None
        assert self.truth is not None
        return self.objective, self.truth

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def device(self) -> torch.device:
        """The device of the tables."""
        return self.node_ptr.device

    @property
    def mean_nodes(self) -> float:
        """The mean number of nodes of a graph."""
        return self.features.codes.shape[0] / max(1, len(self))

    @property
    def nbytes(self) -> int:
        """The size of the tables in bytes."""
        return _nbytes(self)

    def to(self, device: torch.device | str) -> "GraphTables":
        """Return the tables on another device."""
        return replace(
            self,
            node_ptr=self.node_ptr.to(device),
            neighbors=self.neighbors.to(device),
            transposed=None if self.transposed is None else self.transposed.to(device),
            features=self.features.to(device),
            truth=None if self.truth is None else self.truth.to(device),
            weights=None if self.weights is None else self.weights.to(device),
            clusters=None if self.clusters is None else self.clusters.to(device),
        )

    def columns_used(self, graphs: Tensor) -> Tensor:
        """Return which feature columns occur in some graphs ``[F]``, bool."""
        return self.features.used(take_segments(self.node_ptr, graphs.to(self.node_ptr.device))[1])

    def edge_labels_used(self, graphs: Tensor) -> Tensor:
        """Return which edge labels occur in some graphs, unknown labels left out ``[edge_kinds - 1]``, bool."""
        assert self.neighbors.labels is not None
        _, members = take_segments(self.neighbors.graph_ptr, graphs.to(self.device))
        labels = self.neighbors.labels.index_select(0, members).long()
        return torch.bincount(labels[labels >= 0], minlength=self.edge_kinds)[:-1] > 0

    def capacity(self, graphs: np.ndarray) -> Capacity:
        """Return the size of a batch of these graphs."""
        nodes, listed = self._sizes
        return Capacity(int(nodes[graphs].sum()), int(listed[graphs].sum()))

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of nodes and of listed neighbors of each graph, on the host."""
        return self.node_ptr.diff().cpu().numpy(), self.neighbors.graph_ptr.diff().cpu().numpy()

    def batch(self, graphs: Tensor, substitutes: Tensor | None = None, capacity: Capacity | None = None) -> Batch:
        """Return a batch of graphs.

        Args:
            graphs: The numbers of the g graphs of each of the M models ``[M, g]``.
            substitutes: The feature column that model m uses in place of column c ``[M, F]``. Default: None, the same
                one.
            capacity: The size to pad the batch to. Kernels make the batch then, nothing waits for the device, and rows
                after ``ptr[-1]`` belong to no graph. Default: None, no padding.
        """
        if capacity is not None:
            return self._batch_in(capacity, graphs, substitutes)
        chosen = graphs.flatten()
        ptr, nodes = take_segments(self.node_ptr, chosen)
        neighbors = self.neighbors.take(chosen, ptr, nodes)
        transposed = neighbors if self.transposed is None else self.transposed.take(chosen, ptr, nodes)
        codes = self.features.codes.index_select(0, nodes)
        if substitutes is not None:
            model = expand_segments(torch.arange(len(graphs), device=ptr.device), ptr[:: graphs.shape[1]])
            codes = substitutes[model.unsqueeze(1), codes.long()]
        clusters = None if self.clusters is None else self.clusters.take(chosen, ptr, nodes)
        labels = self._labels(neighbors, transposed, ptr[:: max(1, graphs.shape[1])]) if self.edge_kinds else None
        return Batch(
            self.features.rows(nodes, codes), Neighbors(*neighbors.lists, transposed.lists, clusters, labels), ptr
        )

    def copies(self, models: int, substitutes: Tensor) -> Batch:
        """Return a batch of all graphs once for each model, as :meth:`batch` would, but without index operations."""
        graphs = len(self)
        nodes = self.features.codes.shape[0]
        listed = self.neighbors.nodes.numel()
        if self.clusters is not None or self.transposed is not None:
            return self.batch(torch.arange(graphs, device=self.device).expand(models, -1), substitutes)
        ptr = _repeat(self.node_ptr, nodes, models)
        starts = _repeat(self.neighbors.starts, listed, models)
        members = expand_segments(self.node_ptr[:-1], self.neighbors.graph_ptr).add_(self.neighbors.nodes)
        labels = None if self.neighbors.labels is None else self.neighbors.labels.long().repeat(models)
        taken = Taken(starts, _shifted(members, nodes, models), labels)
        codes = substitutes[:, self.features.codes.long()].flatten(0, 1)
        own = None if self.features.dense is None else torch.arange(nodes, device=self.device).repeat(models)
        known = self._labels(taken, taken, ptr[:: max(1, graphs)]) if self.edge_kinds else None
        return Batch(self.features.rows(own, codes), Neighbors(*taken.lists, taken.lists, labels=known), ptr)

    def _labels(self, neighbors: Taken, transposed: Taken, models: Tensor) -> EdgeLabels:
        """Return the edge labels of a batch, numbered across the models, whose rows start at ``models`` ``[M + 1]``."""

        def count(taken: Taken) -> Tensor:
            assert taken.labels is not None
            ends = taken.starts.index_select(0, models)
            first = expand_segments(self.edge_kinds * torch.arange(len(models) - 1, device=ends.device), ends)
            return torch.where(taken.labels < 0, -1, taken.labels + first)

        codes = count(neighbors)
        return EdgeLabels(codes, codes if transposed is neighbors else count(transposed), self.edge_kinds)

    def _batch_in(self, capacity: Capacity, graphs: Tensor, substitutes: Tensor | None) -> Batch:
        """Return a padded batch; padding rows are zero. Models that need clusters do not use padded batches."""
        from sopool.ops.triton.assembly import assemble, one_hot

        def take(lists: Lists) -> "Assembled":
            codes = self.features.codes
            return assemble(graphs, self.node_ptr, *lists, codes, capacity, substitutes, self.edge_kinds)

        out = take(self.neighbors)
        reverse = out if self.transposed is None else take(self.transposed)
        x = self.features.add_dense(one_hot(out.codes, self.features.width), out.nodes)
        labels = None
        if out.labels is not None and reverse.labels is not None:
            labels = EdgeLabels(out.labels, reverse.labels, self.edge_kinds)
        neighbors = Neighbors(out.starts, out.members, (reverse.starts, reverse.members), labels=labels)
        return Batch(x, neighbors, out.ptr)


def _shifted(numbers: Tensor, by: int, times: int) -> Tensor:
    """Repeat numbers ``[n]`` and add ``by`` more each time: ``[times * n]``."""
    return (numbers + by * torch.arange(times, device=numbers.device).unsqueeze(1)).flatten()


def _repeat(ptr: Tensor, total: int, times: int) -> Tensor:
    """Return the ``ptr`` of the same segments, repeated."""
    return torch.cat([_shifted(ptr[:-1], total, times), ptr.new_full((1,), total * times)])


def make_lists(store: PackedGraphs, by: int, labels: EdgeCodes | None = None) -> Lists:
    """Return the neighbor lists by edge target (``by=1``) or by edge source (``by=0``); one integer sort makes them."""
    bits = max(0, int(store.sizes.max()) - 1).bit_length() if len(store) else 0
    own = torch.arange(store.num_nodes, device=store.device)
    first = store.node_ptr[:-1]
    target = expand_segments(first, store.edge_ptr).add_(store.edge_index[by])
    key = torch.cat([own, target]).bitwise_left_shift_(bits)
    key[: store.num_nodes] += own - expand_segments(first, store.node_ptr)
    key[store.num_nodes :] += store.edge_index[1 - by]
    kinds = 1 if labels is None else labels.kinds + 1
    if labels is not None:  # 0 for the node itself; repeated edges are in the same order in both directions
        key.mul_(kinds)[store.num_nodes :] += labels.codes + 1
    ordered = _sort(key)
    codes = None
    if labels is not None:
        codes = (ordered % kinds - 1).int()
        ordered //= kinds
    lengths = torch.bincount(target, minlength=store.num_nodes).add_(1)
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return Lists(starts[store.node_ptr], starts, ordered.bitwise_and_((1 << bits) - 1).int(), codes)


def _sort(keys: Tensor) -> Tensor:
    """Sort in increasing order, in place if possible."""
    if keys.device.type != "cpu":
        return keys.sort().values
    keys.numpy().sort(kind="stable")  # fast for partly sorted keys: the edges of a graph are contiguous
    return keys


def _nbytes(thing: object) -> int:
    """Return the size of all tensors in nested dataclasses and tuples."""
    if isinstance(thing, Tensor):
        return thing.nbytes
    parts = thing if isinstance(thing, tuple) else vars(thing).values() if is_dataclass(thing) else ()
    return sum(_nbytes(part) for part in parts)
