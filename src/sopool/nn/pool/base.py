"""The base classes of pooling layers, and readouts of the smaller graphs that they return."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from sopool.nn.aggr.base import GraphReadout, repr_of
from sopool.nn.pool.inputs import resembles_batch, sorted_graphs
from sopool.nn.pool.output import PoolingOutput, SoftAssignment
from sopool.ops import segment_mean
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.largest import segment_max

VectorFrom = Literal["max-mean", "concat"]
"""How the nodes of a pooled graph become a vector, see :class:`PooledReadout`."""


class GraphPooling(torch.nn.Module):
    """Base class of pooling layers that are defined by one method, ``pool(x, graphs)``.

    A layer works for one model or for a stack of models (see :mod:`sopool.nn.layers`).

    Args:
        channels: Number of node features ``F``.

    Examples:
        >>> from sopool.nn import POOLINGS, make_pooling
        >>> all(isinstance(make_pooling(name, channels=8), GraphPooling) for name in POOLINGS)
        True
    """

    capturable = True
    """Whether all shapes are determined by input shapes, so that a step can be captured into a CUDA graph."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels={channels}: it must be the number of node features, at least 1.")
        self.channels = channels

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Pool a batch of graphs with node features ``[N, F]``."""
        raise NotImplementedError(f"{type(self).__name__} must define pool(x, graphs).")

    @property
    def out_channels(self) -> int:
        """The number of features of the new nodes."""
        return self.channels

    @property
    def nodes(self) -> int | None:
        """The number of nodes of each pooled graph; ``None`` if it depends on the input."""
        return None

    def reset_parameters(self) -> None:
        """Reinitialize all learnable parameters."""

    def __repr__(self) -> str:
        return repr_of(self)


class EdgePooling(GraphPooling):
    """Base class of pooling layers that can also be called with PyG's ``x``, ``edge_index`` and ``batch``.

    Args:
        channels: Number of node features ``F``.
    """

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> PoolingOutput:
        """Pool a batch of graphs in PyG's format.

        Args:
            x: Node features ``[N, F]``.
            edge_index: Directed edges ``[2, E]``; a repeated edge counts repeatedly.
            edge_weight: The weight of each edge ``[E]``. Default: ``None``, which means 1.
            batch: The graph of each node ``[N]``, in any order. Default: ``None``, for a single graph.
            batch_size: The number of graphs. Default: ``None``, which means ``batch.max() + 1``.
        """
        if batch is None and edge_weight is not None and resembles_batch(edge_weight, x):
            raise TypeError(
                "edge_weight has integers, one for each node, and there is no batch: as in PyG, batch is the fourth "
                "argument. Pass batch=..., or edge_weight.float() if these are weights."
            )
        x, graphs, order = sorted_graphs(self, x, Edges(edge_index, edge_weight), batch, batch_size)
        pooled = self.pool(x, graphs)
        return pooled if order is None else pooled.reordered(order)


class PooledReadout(GraphReadout):
    """A readout of flat models that first pools each graph; it needs the edges, not only the nodes.

    Args:
        pooling: The pooling layer.
        vector_from: ``"max-mean"`` concatenates the maximum and the mean over the pooled nodes, as in SAGPool.
            ``"concat"`` concatenates all pooled nodes, whose number must be fixed. Default: ``"max-mean"``.

    Examples:
        >>> from sopool.nn import DiffPooling, TopKPooling
        >>> PooledReadout(TopKPooling(8)).out_channels
        16
        >>> PooledReadout(DiffPooling(8, clusters=4), vector_from="concat").out_channels
        32
    """

    capturable = True

    def __init__(self, pooling: GraphPooling, vector_from: VectorFrom = "max-mean") -> None:
        super().__init__()
        self.pooling = pooling
        self.vector_from = vector_from
        readout_width(pooling, vector_from)

    @property
    def out_channels(self) -> int:
        """The width of the output."""
        return readout_width(self.pooling, self.vector_from)

    def read(self, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, Tensor | None]:
        """Return graph embeddings ``[G, out_channels]`` and the additional loss of each graph ``[G]``, or ``None``."""
        pooled = self.pooling.pool(x, graphs)
        return read_out(pooled, self.pooling, self.vector_from), pooled.total_loss

    def forward(self, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, Tensor | None]:
        """Return what :meth:`read` does."""
        return self.read(x, graphs)


def readout_width(pooling: GraphPooling, vector_from: VectorFrom) -> int:
    """Return the width of the vectors that :func:`read_out` returns."""
    if vector_from == "max-mean":
        return 2 * pooling.out_channels
    if pooling.nodes is None:
        raise ValueError(
            f"{pooling!r} keeps more nodes of larger graphs, so they cannot be concatenated to a vector of fixed "
            "width. Choose max-mean."
        )
    return pooling.nodes * pooling.out_channels


def read_out(pooled: PoolingOutput, pooling: GraphPooling, vector_from: VectorFrom) -> Tensor:
    """Return one vector for each pooled graph ``[G, width]``."""
    x = pooled.x
    ptr = pooled.ptr
    if vector_from == "concat":
        return x.reshape(ptr.numel() - 1, readout_width(pooling, vector_from))
    return torch.cat([segment_max(x, ptr), segment_mean(x, ptr)], dim=1)


def dense_pooled(
    x: Tensor,
    weights: Callable[[], Tensor],
    contribution: Tensor,
    ptr: Tensor,
    loss: dict[str, Tensor] | None = None,
) -> PoolingOutput:
    """Return graphs of K nodes each, given their features, their edge weights and the contributions of the input nodes.

    Args:
        x: Node features ``[G, K, F]``.
        weights: A function that returns the edge weights ``[G, K, K]``.
        contribution: The contribution of each input node to each new node ``[N, K]``.
        ptr: The first input node of each graph ``[G + 1]``.
        loss: The additional losses of each graph, ``[G]`` each. Default: ``None``.
    """
    graphs, nodes, channels = x.shape
    new = torch.arange(0, (graphs + 1) * nodes, nodes, device=x.device)
    return PoolingOutput(
        x.reshape(-1, channels),
        new,
        lambda: GraphStructure(new, Dense(weights())),
        SoftAssignment(contribution, ptr),
        loss or {},
    )
