"""A data set in the layout that a bank needs: batches are made by index operations alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool.data.analysis.distances import PairLists
from sopool.data.division import Division
from sopool.data.extras.base import Extra
from sopool.data.features.edge_features import NO_EDGE_FEATURES, EdgeFeatures
from sopool.data.features.node_features import NodeFeatures
from sopool.data.features.numbers import Moments, Numbers
from sopool.data.graphs import PackedGraphs, expand_segments, take_segments
from sopool.data.neighbor_lists import Lists, Taken, make_lists
from sopool.objectives import Objective, objective_for, truth_of
from sopool.ops.message_passing.extras import Extras, Tables
from sopool.ops.message_passing.neighbors import EdgeLabels, EdgeValues, Neighbors
from sopool.training.bank.inputs import AS_ENCODED, ModelInputs

if TYPE_CHECKING:
    from sopool.ops.triton.assembly import Assembled


class Capacity(NamedTuple):
    """The size that a batch is padded to; a captured step needs fixed shapes."""

    nodes: int
    """The number of nodes."""
    listed: int
    """The number of neighbors in all lists."""
    pairs: int = 0
    """The number of pairs of nodes, for models that need them."""


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
        neighbors = self.neighbors
        if neighbors.values is not None:
            order, attributes, weights = neighbors.values
            attributes, weights = (None if value is None else value.to(dtype) for value in (attributes, weights))
            neighbors = neighbors._replace(values=EdgeValues(order, attributes, weights))
        graph_x = None if self.graph_x is None else self.graph_x.to(dtype)
        return self._replace(x=self.x.to(dtype), neighbors=neighbors, graph_x=graph_x)


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
    extras: Mapping[str, Tables[Any]] = field(default_factory=dict)
    """What models need besides, by name, see :class:`~sopool.data.extras.Extra`."""
    edges: EdgeFeatures = NO_EDGE_FEATURES
    """What is used of the edges; the lists have their codes."""
    order: Tensor | None = None
    """The position in the lists of the same graph of each entry of its transposed lists ``[L]``, int32; None if no
    numbers of edges are used."""
    graph_numbers: Numbers | None = None
    """The attributes of the graphs ``[G, D]``; None if they are not used."""
    division: Division = field(default_factory=Division)
    """What training, held-out and test graphs are divided by; always on the host."""

    @classmethod
    def build(
        cls,
        store: PackedGraphs,
        features: NodeFeatures,
        edges: EdgeFeatures | None = None,
        objective: Objective | None = None,
        graph_numbers: Numbers | None = None,
    ) -> "GraphTables":
        """Build the tables of graphs to train on.

        Args:
            store: The graphs, with labels or targets.
            features: The features of their nodes.
            edges: The features of their edges. Default: None, for models that do not use them.
            objective: What to predict. Default: None, found from the values, see
                :func:`~sopool.objectives.objective_for`.
            graph_numbers: The attributes of the graphs. Default: None, for models that do not use them.
        """
        objective = objective or objective_for(store)
        neighbors = make_lists(store, 1, edges)
        transposed = make_lists(store, 0, edges)
        return cls(
            store.node_ptr,
            neighbors,
            None if neighbors.same(transposed) else transposed._replace(edges=None),
            features,
            objective,
            truth_of(store, objective.task),
            edges=_in_tables(edges),
            order=_order(neighbors, transposed),
            graph_numbers=graph_numbers,
            division=Division.of(store),
        )

    @classmethod
    def for_prediction(
        cls,
        store: PackedGraphs,
        features: NodeFeatures,
        edges: EdgeFeatures | None = None,
        graph_numbers: Numbers | None = None,
    ) -> "GraphTables":
        """Build the tables of graphs without labels, and without the transposed lists, which only gradients need.

        Args:
            store: The graphs.
            features: The features of their nodes.
            edges: The features of their edges. Default: None, for models that do not use them.
            graph_numbers: The attributes of the graphs. Default: None, for models that do not use them.
        """
        neighbors = make_lists(store, 1, edges)
        return cls(
            store.node_ptr,
            neighbors,
            None,
            features,
            edges=_in_tables(edges),
            order=_order(neighbors, neighbors),
            graph_numbers=graph_numbers,
        )

    @property
    def goal(self) -> tuple[Objective, Tensor]:
        """The objective and the true values of tables to train on."""
        assert self.objective is not None
        assert self.truth is not None
        return self.objective, self.truth

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def edge_kinds(self) -> int:
        """The number of codes of edges; 0 if they are not used."""
        return self.edges.kinds

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
            extras={name: extra.to(device) for name, extra in self.extras.items()},
            edges=self.edges.to(device),
            order=None if self.order is None else self.order.to(device),
            graph_numbers=None if self.graph_numbers is None else self.graph_numbers.to(device),
        )

    def with_extras(self, store: PackedGraphs, needed: Mapping[str, Extra], cached: bool = True) -> "GraphTables":
        """Return the tables with what a model needs besides the edges, on the device of the tables.

        Args:
            store: The graphs of the tables, on a CPU.
            needed: What to compute, by name, see :func:`~sopool.models.extras_for`.
            cached: Whether to use the cache, which graphs that are predicted only once would fill. Default: ``True``.
        """
        built = {name: extra.build(store, cached).to(self.device) for name, extra in needed.items()}
        return replace(self, extras=built)

    def columns_used(self, graphs: Tensor) -> Tensor:
        """Return which feature columns occur in some graphs ``[F]``, bool."""
        return self.features.used(take_segments(self.node_ptr, graphs.to(self.node_ptr.device))[1])

    def inputs_of(self, graphs: Sequence[Tensor], unknown: bool) -> ModelInputs:
        """Return how models take the features, each learned from its own training graphs alone.

        Args:
            graphs: The training graphs of each model.
            unknown: Whether feature values that a model's training graphs do not have are treated as unknown.
        """
        features = self.features
        graphs = [some.to(self.device) for some in graphs]
        nodes = [take_segments(self.node_ptr, some)[1] for some in graphs]
        return ModelInputs(
            features.substitutes(torch.stack(list(map(features.used, nodes)))) if unknown else None,
            nodes=_moments(features.numbers, nodes),
            edges=_moments(self.edges.attributes, map(self._edges_of, graphs)),
            graphs=_moments(self.graph_numbers, graphs),
        )

    def _edges_of(self, graphs: Tensor) -> Tensor:
        """Return the edges of some graphs."""
        assert self.neighbors.edges is not None
        edges = self.neighbors.edges.index_select(0, take_segments(self.neighbors.graph_ptr, graphs)[1]).long()
        return edges[edges >= 0]

    def edge_labels_used(self, graphs: Tensor) -> Tensor:
        """Return which values of edge labels and categories occur in some graphs ``[L]``, bool.

        Values that were not seen in fitting are left out; L is the sum of ``edges.sizes``.
        """
        assert self.neighbors.labels is not None
        _, members = take_segments(self.neighbors.graph_ptr, graphs.to(self.device))
        codes = self.neighbors.labels.index_select(0, members).long()
        used = torch.bincount(codes[codes >= 0], minlength=self.edge_kinds) > 0
        return self.edges.known_values(used)

    def capacity(self, graphs: np.ndarray) -> Capacity:
        """Return the size of a batch of these graphs."""
        return Capacity(*(int(sizes[graphs].sum()) for sizes in self._sizes))

    @cached_property
    def _sizes(self) -> list[np.ndarray]:
        """The number of nodes, of listed neighbors and, if they are needed, of pairs of each graph, on the host."""
        sizes = [self.node_ptr.diff(), self.neighbors.graph_ptr.diff()]
        sizes += [lists.sizes for lists in self._pairs.values()]
        return [each.cpu().numpy() for each in sizes]

    @property
    def _pairs(self) -> dict[str, PairLists]:
        """The pairs of nodes, the only extras that padded batches may have."""
        return {name: tables for name, tables in self.extras.items() if isinstance(tables, PairLists)}

    def batch(self, graphs: Tensor, inputs: ModelInputs = AS_ENCODED, capacity: Capacity | None = None) -> Batch:
        """Return a batch of graphs.

        Args:
            graphs: The numbers of the g graphs of each of the M models ``[M, g]``.
            inputs: How each model takes the features. Default: as they are encoded.
            capacity: The size to pad the batch to. Kernels make the batch then, nothing waits for the device, and rows
                after ``ptr[-1]`` belong to no graph. Default: None, no padding.
        """
        if capacity is not None:
            return self._batch_in(capacity, graphs, inputs)
        chosen = graphs.flatten()
        ptr, nodes = take_segments(self.node_ptr, chosen)
        models = ptr[:: max(1, graphs.shape[1])]
        neighbors = self.neighbors.take(chosen, ptr, nodes)
        transposed = neighbors if self.transposed is None else self.transposed.take(chosen, ptr, nodes)
        codes = self.features.codes.index_select(0, nodes)
        owners = _owners(models)
        if inputs.substitutes is not None:
            codes = inputs.substitutes[owners.unsqueeze(1), codes.long()]
        extras = Extras(self.extras, chosen, ptr, nodes)
        labels = self._labels(neighbors, transposed, models) if self.edge_kinds else None
        values = None
        if self.order is not None:
            entries, members = take_segments(self.neighbors.graph_ptr, chosen)
            order = expand_segments(entries[:-1], entries).add_(self.order.index_select(0, members))
            values = self._values(neighbors, order, models, inputs)
        x = self.features.rows(nodes, codes, inputs.nodes, owners)
        neighbors_of_all = Neighbors(*neighbors.lists, transposed.lists, labels, values, extras)
        return Batch(x, neighbors_of_all, ptr, self._graph_x(graphs, inputs))

    def copies(self, models: int, inputs: ModelInputs) -> Batch:
        """Return a batch of all graphs once for each model, as :meth:`batch` would, but without index operations."""
        graphs = len(self)
        nodes = self.features.codes.shape[0]
        listed = self.neighbors.nodes.numel()
        if self.extras or self.transposed is not None:
            return self.batch(torch.arange(graphs, device=self.device).expand(models, -1), inputs)
        ptr = _repeat(self.node_ptr, nodes, models)
        starts = _repeat(self.neighbors.starts, listed, models)
        members = expand_segments(self.node_ptr[:-1], self.neighbors.graph_ptr).add_(self.neighbors.nodes)
        labels, edges = (
            None if value is None else value.long().repeat(models)
            for value in (self.neighbors.labels, self.neighbors.edges)
        )
        taken = Taken(starts, _shifted(members, nodes, models), labels, edges)
        every = torch.arange(models, device=self.device)
        codes = self.features.codes.long().expand(models, -1, -1)
        if inputs.substitutes is not None:
            codes = inputs.substitutes[every.view(-1, 1, 1), codes]
        x = self.features.rows(
            torch.arange(nodes, device=self.device).repeat(models),
            codes.flatten(0, 1),
            inputs.nodes,
            every.repeat_interleave(nodes),
        )
        ends = ptr[:: max(1, graphs)]
        known = self._labels(taken, taken, ends) if self.edge_kinds else None
        values = None
        if self.order is not None:
            first = expand_segments(self.neighbors.graph_ptr[:-1], self.neighbors.graph_ptr)
            values = self._values(taken, _shifted(first + self.order, listed, models), ends, inputs)
        neighbors = Neighbors(*taken.lists, taken.lists, labels=known, values=values)
        every_graph = torch.arange(graphs, device=self.device).expand(models, -1)
        return Batch(x, neighbors, ptr, self._graph_x(every_graph, inputs))

    def _values(self, neighbors: Taken, order: Tensor, models: Tensor, inputs: ModelInputs) -> EdgeValues:
        """Return the numbers of the edges of a batch, whose rows of each model start at ``models`` ``[M + 1]``."""
        assert neighbors.edges is not None
        itself = neighbors.edges < 0
        edges = neighbors.edges.clamp(min=0)
        attributes = weights = None
        if self.edges.attributes is not None:
            owners = _owners(neighbors.starts.index_select(0, models))
            attributes = self.edges.attributes.take(edges, inputs.edges, owners).masked_fill(itself.unsqueeze(1), 0)
        if self.edges.weights is not None:
            weights = self.edges.weights.index_select(0, edges).masked_fill(itself, 1)
        return EdgeValues(order, attributes, weights)

    def _graph_x(self, graphs: Tensor, inputs: ModelInputs) -> Tensor | None:
        """Return the attributes of the graphs of each model ``[M, g]`` as rows; missing ones have the mean, 0."""
        if self.graph_numbers is None:
            return None
        owners = torch.arange(len(graphs), device=self.device).repeat_interleave(graphs.shape[1])
        rows = self.graph_numbers.take(graphs.flatten(), inputs.graphs, owners)
        return rows.masked_fill(rows.isnan(), 0)

    def _labels(self, neighbors: Taken, transposed: Taken, models: Tensor) -> EdgeLabels:
        """Return the edge labels of a batch, numbered across the models, whose rows start at ``models`` ``[M + 1]``."""

        def count(taken: Taken) -> Tensor:
            assert taken.labels is not None
            first = self.edge_kinds * _owners(taken.starts.index_select(0, models))
            return torch.where(taken.labels < 0, -1, taken.labels + first)

        codes = count(neighbors)
        other = codes if transposed is neighbors else count(transposed)
        return EdgeLabels(codes, other, self.edge_kinds, self.edges.combinations)

    def _batch_in(self, capacity: Capacity, graphs: Tensor, inputs: ModelInputs) -> Batch:
        """Return a padded batch. Models that need numbers of edges, or extras besides pairs, use no padded batches."""
        from sopool.ops.triton.assembly import assemble, one_hot

        def take(lists: Lists, listed: int = capacity.listed, kinds: int = self.edge_kinds) -> "Assembled":
            size = (capacity.nodes, listed)
            return assemble(graphs, self.node_ptr, *lists[:4], self.features.codes, size, inputs.substitutes, kinds)

        out = take(self.neighbors)
        reverse = out if self.transposed is None else take(self.transposed)
        take_pairs = partial(take, listed=capacity.pairs, kinds=0)
        extras = {name: lists.take_padded(take_pairs) for name, lists in self._pairs.items()}
        rows = torch.arange(capacity.nodes, device=self.device)
        ends = out.ptr[graphs.shape[1] :: graphs.shape[1]].contiguous()
        # Spare rows count as those of the last model.
        owners = torch.bucketize(rows, ends, right=True).clamp(max=len(graphs) - 1)
        x = self.features.add_numbers(one_hot(out.codes, self.features.width), out.nodes, inputs.nodes, owners)
        labels = None
        if out.labels is not None and reverse.labels is not None:
            labels = EdgeLabels(out.labels, reverse.labels, self.edge_kinds, self.edges.combinations)
        members = (out.starts, out.members, (reverse.starts, reverse.members))
        neighbors = Neighbors(*members, labels=labels, extras=extras)
        return Batch(x, neighbors, out.ptr, self._graph_x(graphs, inputs))


def _moments(numbers: Numbers | None, rows: Iterable[Tensor]) -> Moments | None:
    """Return the moments of the rows of each model; None if there are no numbers."""
    return None if numbers is None else Moments.stack(list(map(numbers.moments_of, rows)))


def _in_tables(edges: EdgeFeatures | None) -> EdgeFeatures:
    """Return the features of edges without the codes, which the lists have.

    If there are no edges, they get a row of numbers: the entries of nodes themselves read the first one and ignore it.
    """
    if edges is None:
        return NO_EDGE_FEATURES
    attributes, weights = edges.attributes, edges.weights
    if attributes is not None and not len(attributes.values):
        attributes = replace(attributes, values=attributes.values.new_zeros(1, attributes.width))
    if weights is not None and not len(weights):
        weights = weights.new_ones(1)
    return replace(edges, codes=None, attributes=attributes, weights=weights)


def _order(neighbors: Lists, transposed: Lists) -> Tensor | None:
    """Return the position of each entry of the transposed lists in the lists of the same graph ``[L]``, int32."""
    if neighbors.edges is None or transposed.edges is None:
        return None
    places = torch.empty(len(neighbors.edges), dtype=torch.int32, device=neighbors.edges.device)
    first = expand_segments(neighbors.graph_ptr[:-1], neighbors.graph_ptr)
    own = torch.arange(len(places), device=places.device) - first
    # Negative numbers, which stand for the nodes themselves, count from the end.
    places[neighbors.edges.long()] = own.int()
    return places[transposed.edges.long()]


def _owners(ends: Tensor) -> Tensor:
    """Return the model of each row, given where the rows of each model start, and their number ``[M + 1]``."""
    return expand_segments(torch.arange(len(ends) - 1, device=ends.device), ends)


def _shifted(numbers: Tensor, by: int, times: int) -> Tensor:
    """Repeat numbers ``[n]`` and add ``by`` more each time: ``[times * n]``."""
    return (numbers + by * torch.arange(times, device=numbers.device).unsqueeze(1)).flatten()


def _repeat(ptr: Tensor, total: int, times: int) -> Tensor:
    """Return the ``ptr`` of the same segments, repeated."""
    return torch.cat([_shifted(ptr[:-1], total, times), ptr.new_full((1,), total * times)])


def _nbytes(thing: object) -> int:
    """Return the size of all tensors in nested dataclasses and tuples."""
    if isinstance(thing, Tensor):
        return thing.nbytes
    parts = thing if isinstance(thing, tuple) else ()
    if isinstance(thing, Mapping) or is_dataclass(thing):
        parts = tuple((thing if isinstance(thing, Mapping) else vars(thing)).values())
    return sum(_nbytes(part) for part in parts)
