"""The result of a pooling layer: a batch of smaller graphs, and the way back to the nodes of the input."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch_geometric.data import Data

from sopool.nn.pool.edge_list import list_edges
from sopool.ops import segment_apply
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.segments import Segments, owners
from sopool.ops.segment.standard import total


class Lift(Protocol):
    """A map of values of the pooled nodes to the input nodes, ``[N', F]`` -> ``[N, F]``.

    It is a named tuple of tensors, so that a :class:`~sopool.nn.PoolingOutput` is a pytree.
    """

    def __call__(self, y: Tensor) -> Tensor:
        """Return the values of the input nodes."""

    def reordered(self, order: Tensor) -> "Lift":
        """Return the map to nodes in their original order; ``order`` ``[N]`` sorted them by graph."""


class KeptNodes(NamedTuple):
    """The map of layers that keep some nodes: zero for the others."""

    rows: Tensor
    """The input node of each pooled node ``[N']``."""
    scores: Tensor
    """The score y of each input node ``[N]``, before the nonlinearity."""
    spare: Tensor | None = None
    """Which pooled nodes are unused rows ``[N']``, bool; ``None`` if there are none."""

    def __call__(self, y: Tensor) -> Tensor:
        """Return the values of the kept nodes at their original positions, and zeros for the other nodes."""
        if self.spare is not None:
            y = y.masked_fill(self.spare.unsqueeze(1), 0)
        return total(y, self.rows, self.scores.shape[0])

    def reordered(self, order: Tensor) -> "KeptNodes":
        """Return the map to nodes in their original order."""
        scores = torch.empty_like(self.scores).index_copy(0, order, self.scores)
        return KeptNodes(order.index_select(0, self.rows), scores, self.spare)


class SoftAssignment(NamedTuple):
    """The map of layers whose K new nodes are weighted sums of all nodes: the transposed sums."""

    contribution: Tensor
    """The contribution of each input node to each new node of its graph ``[N, K]``."""
    ptr: Tensor
    """The first input node of each graph ``[G + 1]``."""
    order: Tensor | None = None
    """The permutation that sorts the input nodes by graph ``[N]``; ``None`` if they are sorted."""

    def __call__(self, y: Tensor) -> Tensor:
        """Return the sums of the new nodes, weighted by the contributions."""
        weights = y.reshape(self.ptr.numel() - 1, self.contribution.shape[1], y.shape[1]).transpose(1, 2)
        return segment_apply(self.contribution, weights, self.ptr, order=self.order)

    def reordered(self, order: Tensor) -> "SoftAssignment":
        """Return the map to nodes in their original order."""
        return SoftAssignment(Segments(self.ptr, order).unsort(self.contribution), self.ptr, order)


class Projection(NamedTuple):
    """The map of layers that project clusters on vectors: the transposed projections."""

    vectors: Tensor
    """The value of each of the m vectors of a cluster at each of ``rows`` ``[N, m]``."""
    rows: Tensor
    """The input nodes, cluster by cluster ``[N]``."""
    ptr: Tensor
    """The position in ``rows`` at which each cluster starts ``[C + 1]``."""

    def __call__(self, y: Tensor) -> Tensor:
        """Return the sums of the vectors of each cluster, weighted by ``y`` ``[C, m * F]``."""
        number = self.vectors.shape[1]
        parts = y.reshape(y.shape[0], number, y.shape[1] // number).transpose(1, 2)
        lifted = segment_apply(self.vectors.to(y.dtype), parts, self.ptr)
        return lifted.new_zeros(lifted.shape).index_copy(0, self.rows, lifted)

    def reordered(self, order: Tensor) -> "Projection":
        """Return the map to nodes in their original order."""
        return self._replace(rows=order.index_select(0, self.rows))


LIFTS: dict[str, Callable[..., Lift]] = {kind.__name__: kind for kind in (KeptNodes, SoftAssignment, Projection)}


@dataclass(eq=False, repr=False)
class PoolingOutput:
    """A batch of G pooled graphs with N' nodes, as every pooling layer returns it.

    It can be indexed and unpacked like the tuple of PyG's ``TopKPooling`` and ``SAGPooling``: ``x``, ``edge_index``,
    ``edge_attr``, ``batch``, ``perm`` and ``score``. Where no edge attributes were given, the third entry is
    ``edge_weight``. It is a pytree, and it can be copied and pickled.

    Args:
        x: Node features ``[N', out_channels]``.
        ptr: The first node of each graph ``[G + 1]``.
        make_graphs: A function that returns the structure of the pooled graphs. It is called once, on demand.
        lift: The way back to the nodes of the input.
        loss: Additional losses by name. Default: none.
        perm: The input node of each node. Default: ``None``.
        score: The score of each node. Default: ``None``.

    Examples:
        >>> import torch
        >>> from torch_geometric.nn import GraphConv
        >>> from sopool.nn import TopKPooling
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> pooled = TopKPooling(8)(torch.randn(4, 8), edge_index, batch=torch.tensor([0, 0, 1, 1]))
        >>> pooled.ptr
        tensor([0, 1, 2])
        >>> GraphConv(8, 16)(pooled.x, pooled.edge_index, pooled.edge_weight).shape
        torch.Size([2, 16])
        >>> x, edge_index, edge_attr, batch, perm, score = pooled
    """

    x: Tensor
    """Node features ``[N', out_channels]`` of the N' nodes of all pooled graphs."""
    ptr: Tensor
    """The first node of each graph ``[G + 1]``."""
    make_graphs: Callable[[], GraphStructure]
    """A function that returns the structure of the pooled graphs."""
    lift: Lift
    """The map of values of the pooled nodes back to the input nodes: ``lift(y)``, ``[N', F]`` -> ``[N, F]``."""
    loss: dict[str, Tensor] = field(default_factory=dict)
    """Additional losses for training by name, ``[G]`` each, e.g. ``"link"`` and ``"entropy"`` of DiffPool."""
    perm: Tensor | None = None
    """The input node of each node ``[N']``; ``None`` for layers that do not select nodes."""
    score: Tensor | None = None
    """The factor by which the features of each node were multiplied ``[N']``; ``None`` like ``perm``."""

    @cached_property
    def _graphs(self) -> GraphStructure:
        return self.make_graphs()

    def graphs(self) -> GraphStructure:
        """Return the structure of the pooled graphs, for the method ``pool`` of the next layer."""
        return self._graphs

    @cached_property
    def _edges(self) -> Edges:
        return list_edges(self.graphs().neighbors)

    @property
    def edge_index(self) -> Tensor:
        """The edges ``[2, E]`` from source to target: the edges that were kept, or all pairs for dense layers."""
        return self._edges.edge_index

    @property
    def edge_weight(self) -> Tensor | None:
        """The weight of each edge ``[E]``; ``None`` means 1. Learned weights may be negative."""
        return self._edges.weight

    @property
    def edge_attr(self) -> Tensor | None:
        """The attributes of each edge that was kept ``[E, ...]``; ``None`` if none were given."""
        return self._edges.attr

    @cached_property
    def batch(self) -> Tensor:
        """The graph of each node ``[N']``; G for an unused row."""
        return owners(self.ptr, self.x.shape[0])

    @cached_property
    def adj(self) -> Tensor | None:
        """Edge weights of dense layers ``[G, K, K]``: ``adj[g, i, j]`` for the edge i -> j; otherwise ``None``."""
        neighbors = self.graphs().neighbors
        return neighbors.weights.mT if isinstance(neighbors, Dense) else None

    @property
    def contribution(self) -> Tensor | None:
        """The contribution of each input node to each new node of dense layers ``[N, K]``; otherwise ``None``."""
        return self.lift.contribution if isinstance(self.lift, SoftAssignment) else None

    @property
    def total_loss(self) -> Tensor | None:
        """The sum of the additional losses of each graph ``[G]``; ``None`` if there are none."""
        losses = list(self.loss.values())
        return sum(losses[1:], losses[0]) if losses else None

    def as_data(self) -> Data:
        """Return the pooled graphs as PyG's ``Data``, with the fields that are not ``None``."""
        given = {name: getattr(self, name) for name in ("edge_weight", "edge_attr")}
        given = {name: value for name, value in given.items() if value is not None}
        return Data(x=self.x, edge_index=self.edge_index, batch=self.batch, num_nodes=self.x.shape[0], **given)

    def reordered(self, order: Tensor) -> "PoolingOutput":
        """Return the result for input nodes in their original order; ``order`` ``[N]`` sorted them by graph."""
        perm = None if self.perm is None else order.index_select(0, self.perm)
        return replace(self, lift=self.lift.reordered(order), perm=perm)

    def __len__(self) -> int:
        return len(ENTRIES)

    def __iter__(self) -> Iterator[Any]:
        return (read(self) for read in ENTRIES)

    def __getitem__(self, place: int | slice) -> Any:
        found = ENTRIES[place]
        return tuple(read(self) for read in found) if isinstance(found, tuple) else found(self)

    def __repr__(self) -> str:
        losses = f", loss={list(self.loss)}" if self.loss else ""
        return f"PoolingOutput(graphs={self.ptr.shape[-1] - 1}, x={list(self.x.shape)}{losses})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unflatten, _flatten(self)


ENTRIES: tuple[Callable[[PoolingOutput], Any], ...] = (
    lambda out: out.x,
    lambda out: out.edge_index,
    lambda out: out.edge_weight if out.edge_attr is None else out.edge_attr,
    lambda out: out.batch,
    lambda out: out.perm,
    lambda out: out.score,
)
"""The entries of PyG's tuple."""

TENSORS = ("x", "ptr", "edge_index", "edge_weight", "edge_attr", "batch", "adj", "perm", "score")
Context = tuple[tuple[str, ...], tuple[str, ...], str | None, tuple[str, ...]]
"""The names of the tensors and of the losses, the kind of ``lift``, and the names of its tensors."""


def _flatten(out: PoolingOutput) -> tuple[list[Any], Context]:
    """Return all tensors of a result, and their names. Tensors that are ``None`` are left out, as vmap requires."""
    tensors = {name: getattr(out, name) for name in TENSORS}
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    kind = None  # a user's layer may have any function
    lift: dict[str, Any] = {"lift": out.lift}
    if isinstance(out.lift, KeptNodes | SoftAssignment | Projection):
        kind = type(out.lift).__name__
        lift = {name: value for name, value in out.lift._asdict().items() if value is not None}
    leaves = [*tensors.values(), *out.loss.values(), *lift.values()]
    return leaves, (tuple(tensors), tuple(out.loss), kind, tuple(lift))


def _unflatten(leaves: Any, context: Context) -> PoolingOutput:
    names, losses, kind, parts = context
    values = iter(leaves)
    given = {name: next(values) for name in names}
    loss = {name: next(values) for name in losses}
    lift = {name: next(values) for name in parts}
    edges = Edges(given.pop("edge_index"), given.pop("edge_weight", None), given.pop("edge_attr", None))
    batch = given.pop("batch")
    adj = given.pop("adj", None)

    def graphs() -> GraphStructure:  # later, since the leaves are not always tensors
        return GraphStructure(given["ptr"], edges if adj is None else Dense(adj.mT))

    made = LIFTS[kind](**lift) if kind else lift["lift"]
    out = PoolingOutput(make_graphs=graphs, lift=made, loss=loss, **given)
    out.__dict__ |= {"_edges": edges, "batch": batch, "adj": adj}  # instead of computing them again
    return out


def _flatten_with_keys(out: PoolingOutput) -> tuple[list[tuple[Any, Any]], Context]:
    leaves, context = _flatten(out)
    names, losses, _, parts = context
    keys = [*names, *(f"loss.{name}" for name in losses), *(f"lift.{name}" for name in parts)]
    return [(pytree.GetAttrKey(key), leaf) for key, leaf in zip(keys, leaves, strict=True)], context


pytree.register_pytree_node(
    PoolingOutput,
    _flatten,
    _unflatten,
    serialized_type_name="sopool.nn.PoolingOutput",
    to_dumpable_context=list,
    from_dumpable_context=lambda context: tuple(tuple(part) if isinstance(part, list) else part for part in context),
    flatten_with_keys_fn=_flatten_with_keys,
)
