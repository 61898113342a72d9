"""What every layer that makes graphs smaller shares, and how a vector is made of what it leaves."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from sopool.nn.aggr.base import repr_of
from sopool.nn.pool.edge_list import list_edges
from sopool.ops import segment_apply, segment_mean
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.largest import segment_max
from sopool.ops.segment.segments import Segments, check_edges, find_segments, owners

VectorFrom = Literal["max-mean", "concat"]
"""How a vector is made of the nodes that are left of a graph, see :class:`PooledReadout`."""


@dataclass(frozen=True, eq=False)
class PoolingOutput:
    """A batch of G smaller graphs, and as PyG has them: ``conv(pooled.x, pooled.edge_index, pooled.edge_weight)``."""

    x: Tensor
    """Node features [n, out_channels]."""
    ptr: Tensor
    """Where each graph's nodes start [G + 1]."""
    graphs: Callable[[], GraphStructure]
    """Gives the graphs themselves: made when asked for, since the last block of a model needs none."""
    lift: Callable[[Tensor], Tensor]
    """Values of the new nodes back to the old ones, through the transposed map: [n, c] -> [N, c']."""
    loss: Tensor | None = None
    """What each graph adds to its loss in training [G]."""

    @cached_property
    def batch(self) -> Tensor:
        """The graph of each node [n]; G for a spare row."""
        return owners(self.ptr, self.x.shape[0])

    @property
    def edge_index(self) -> Tensor:
        """From each edge's source to its target [2, E]: edges that were kept, or all pairs where each has a weight."""
        return self._edges[0]

    @property
    def edge_weight(self) -> Tensor:
        """The weight of each edge [E], 1 where the layer gives none; learned ones may be negative."""
        return self._edges[1]

    @cached_property
    def _edges(self) -> tuple[Tensor, Tensor]:
        return list_edges(self.graphs().neighbors, like=self.x)


class GraphPooling(torch.nn.Module):
    """A layer written as one method, ``pool(x, graphs)``, alone or as a stack (see :mod:`sopool.nn.layers`)."""

    capturable = True
    """Whether all shapes follow from shapes, so that a step can be captured into a CUDA graph."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels={channels}: it must be the number of node features, at least 1.")
        self.channels = channels

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """The formula: node features [N, channels] of a batch of graphs -> smaller graphs."""
        raise NotImplementedError(f"{type(self).__name__} must define pool(x, graphs).")

    @property
    def out_channels(self) -> int:
        """The width of the new nodes' features."""
        return self.channels

    @property
    def nodes(self) -> int | None:
        """How many nodes each new graph has; None where that depends on the old one."""
        return None

    def reset_parameters(self) -> None:
        """Draw all learnable parameters anew."""

    def _check(self, x: Tensor, edge_index: Tensor) -> None:
        """Raise unless these are nodes and edges as PyG has them."""
        if x.dim() != 2 or x.shape[1] != self.channels:
            raise ValueError(f"x has shape {list(x.shape)}: {self!r} expects [nodes, {self.channels}].")
        if not x.is_floating_point():
            raise TypeError(f"x has dtype {x.dtype}: pass floating-point features, for example x.float().")
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
            raise ValueError(
                f"edge_index is {edge_index.dtype} of shape {list(edge_index.shape)}: it must be integers [2, edges]."
            )

    def __repr__(self) -> str:
        return repr_of(self)


def find_batch(x: Tensor, edge_index: Tensor, batch: Tensor | None, batch_size: int | None) -> tuple[Tensor, Segments]:
    """The graph of each node [N], one graph if that was left out, and where each graph's nodes lie."""
    if isinstance(batch_size, Tensor):  # the fourth place is that of batch in PyG's layers
        raise TypeError("batch_size is a tensor; it counts graphs. The third place is that of batch: give batch=.")
    if batch is None:
        batch = edge_index.new_zeros(x.shape[0])
        batch_size = 1 if batch_size is None else batch_size
    return batch, find_segments(x.shape[0], x.device, index=batch, dim_size=batch_size)


class EdgePooling(GraphPooling):
    """One that takes graphs as PyG has them, too."""

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, batch_size: int | None = None
    ) -> PoolingOutput:
        """Pool graphs given as in PyG: ``x`` [N, channels], ``edge_index`` [2, E], ``batch`` [N] in order.

        Without spare rows: where a layer chooses nodes, that waits for the device.
        """
        self._check(x, edge_index)
        batch, segments = find_batch(x, edge_index, batch, batch_size)
        if segments.order is not None and not torch.equal(batch, batch[segments.order]):
            raise ValueError("batch is not in order: the nodes of a graph must lie side by side. Sort x and batch.")
        check_edges(edge_index, batch)
        return self.pool_exactly(x, GraphStructure(segments.ptr, neighbors_of(edge_index, x.shape[0])))

    def pool_exactly(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """As ``pool``, without spare rows."""
        return self.pool(x, graphs)


class PooledReadout(torch.nn.Module):
    """A flat network's readout by way of a smaller graph; it needs the graphs, not only their nodes.

    - ``max-mean``: the largest and the mean value over the nodes that are left, side by side (SAGPool).
    - ``concat``: all nodes that are left, one after the other; their number must be fixed.
    """

    needs_graph = True

    def __init__(self, pooling: GraphPooling, vector_from: VectorFrom = "max-mean") -> None:
        super().__init__()
        self.pooling = pooling
        self.vector_from = vector_from
        readout_width(pooling, vector_from)

    @property
    def out_channels(self) -> int:
        """The width of the output."""
        return readout_width(self.pooling, self.vector_from)

    def forward(self, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, Tensor | None]:
        """Graph embeddings [G, out_channels], and what each graph adds to its loss [G]."""
        pooled = self.pooling.pool(x, graphs)
        return read_out(pooled, self.pooling, self.vector_from), pooled.loss


def readout_width(pooling: GraphPooling, vector_from: VectorFrom) -> int:
    """The width of what :func:`read_out` gives."""
    if vector_from == "max-mean":
        return 2 * pooling.out_channels
    if pooling.nodes is None:
        raise ValueError(
            f"{pooling!r} leaves more nodes of larger graphs: they cannot be put side by side to a vector of one "
            "width. Choose max-mean."
        )
    return pooling.nodes * pooling.out_channels


def read_out(pooled: PoolingOutput, pooling: GraphPooling, vector_from: VectorFrom) -> Tensor:
    """One vector of the nodes that ``pooling`` left of each graph [G, width]."""
    x = pooled.x
    ptr = pooled.ptr
    if vector_from == "concat":
        return x.reshape(ptr.numel() - 1, readout_width(pooling, vector_from))
    return torch.cat([segment_max(x, ptr), segment_mean(x, ptr)], dim=1)


def dense_pooled(
    x: Tensor, weights: Callable[[], Tensor], contribution: Tensor, ptr: Tensor, loss: Tensor | None = None
) -> PoolingOutput:
    """Graphs of k nodes each: features [G, k, f], weights [G, k, k], what each old node gives to them [N, k]."""
    graphs, nodes, channels = x.shape
    new = torch.arange(0, (graphs + 1) * nodes, nodes, device=x.device)
    return PoolingOutput(
        x.reshape(-1, channels),
        new,
        lambda: GraphStructure(new, Dense(weights())),
        lambda y: segment_apply(contribution, y.reshape(graphs, nodes, y.shape[1]).transpose(1, 2), ptr),
        loss,
    )
