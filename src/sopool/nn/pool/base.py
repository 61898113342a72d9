"""The base classes of pooling layers, and readouts of the smaller graphs that they return."""

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
from sopool.ops.segment.standard import exporting

VectorFrom = Literal["max-mean", "concat"]
"""How the nodes of a pooled graph become a vector, see :class:`PooledReadout`."""


@dataclass(frozen=True, eq=False)
class PoolingOutput:
    """A batch of G pooled graphs, which other layers of PyG accept.

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
    """

    x: Tensor
    """Node features ``[N', out_channels]`` of the N' nodes of all pooled graphs."""
    ptr: Tensor
    """The first node of each graph ``[G + 1]``."""
    graphs: Callable[[], GraphStructure]
    """A function that returns the structure of the pooled graphs, which is computed only on demand."""
    lift: Callable[[Tensor], Tensor]
    """A function that maps values of the pooled nodes back to the input nodes, ``[N', F]`` -> ``[N, F]``."""
    loss: Tensor | None = None
    """An additional loss of each graph for training ``[G]``, or ``None``."""

    @cached_property
    def batch(self) -> Tensor:
        """The graph of each node ``[N']``; G for an unused row."""
        return owners(self.ptr, self.x.shape[0])

    @property
    def edge_index(self) -> Tensor:
        """The edges ``[2, E]`` from source to target: the edges that were kept, or all pairs for dense layers."""
        return self._edges[0]

    @property
    def edge_weight(self) -> Tensor:
        """The weight of each edge ``[E]``: 1 for edges that were kept. Learned weights may be negative."""
        return self._edges[1]

    @cached_property
    def _edges(self) -> tuple[Tensor, Tensor]:
        return list_edges(self.graphs().neighbors, like=self.x)


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

    def _check(self, x: Tensor, edge_index: Tensor) -> None:
        """Raise unless ``x`` and ``edge_index`` have valid shapes and types."""
        if x.dim() != 2 or x.shape[1] != self.channels:
            raise ValueError(f"x has shape {list(x.shape)}: {self!r} expects [nodes, {self.channels}].")
        if not x.is_floating_point():
            raise TypeError(f"x has dtype {x.dtype}: pass floating-point features, for example x.float().")
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
            raise ValueError(
                f"edge_index has dtype {edge_index.dtype} and shape {list(edge_index.shape)}: it must be integers of "
                "shape [2, edges]."
            )

    def __repr__(self) -> str:
        return repr_of(self)


def find_batch(x: Tensor, edge_index: Tensor, batch: Tensor | None, batch_size: int | None) -> tuple[Tensor, Segments]:
    """Return the graph of each node ``[N]`` and the segments; without ``batch``, all nodes belong to one graph."""
    if isinstance(batch_size, Tensor):  # PyG's pooling layers have batch as their fourth argument
        raise TypeError(
            "batch_size is a tensor: it must be the number of graphs. Unlike in PyG, batch is the third argument; "
            "pass it as batch=."
        )
    if batch is None:
        batch = edge_index.new_zeros(x.shape[0])
        batch_size = 1 if batch_size is None else batch_size
    return batch, find_segments(x.shape[0], x.device, index=batch, dim_size=batch_size)


class EdgePooling(GraphPooling):
    """Base class of pooling layers that can also be called with PyG's ``x``, ``edge_index`` and ``batch``.

    Args:
        channels: Number of node features ``F``.
    """

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, batch_size: int | None = None
    ) -> PoolingOutput:
        """Pool a batch of graphs in PyG's format.

        Layers that select nodes synchronize with the device, since the number of selected nodes must be known.

        Args:
            x: Node features ``[N, F]``.
            edge_index: Edges ``[2, E]``.
            batch: The graph of each node ``[N]``, sorted. Default: ``None``, for a single graph.
            batch_size: The number of graphs. Default: ``None``, which means ``batch.max() + 1``.
        """
        self._check(x, edge_index)
        batch, segments = find_batch(x, edge_index, batch, batch_size)
        if segments.order is not None and not exporting() and not torch.equal(batch, batch[segments.order]):
            raise ValueError("batch is not in order: the nodes of each graph must be consecutive. Sort x and batch.")
        check_edges(edge_index, batch)
        return self.pool_exactly(x, GraphStructure(segments.ptr, neighbors_of(edge_index, x.shape[0])))

    def pool_exactly(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Pool as ``pool`` does, but without unused rows in the output."""
        return self.pool(x, graphs)


class PooledReadout(torch.nn.Module):
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
        """Return graph embeddings ``[G, out_channels]`` and the additional loss of each graph ``[G]``, or ``None``."""
        pooled = self.pooling.pool(x, graphs)
        return read_out(pooled, self.pooling, self.vector_from), pooled.loss


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
    x: Tensor, weights: Callable[[], Tensor], contribution: Tensor, ptr: Tensor, loss: Tensor | None = None
) -> PoolingOutput:
    """Return graphs of K nodes each, given their features, their edge weights and the contributions of the input nodes.

    Args:
        x: Node features ``[G, K, F]``.
        weights: A function that returns the edge weights ``[G, K, K]``.
        contribution: The contribution of each input node to each new node ``[N, K]``.
        ptr: The first input node of each graph ``[G + 1]``.
        loss: The additional loss of each graph ``[G]``. Default: ``None``.
    """
    graphs, nodes, channels = x.shape
    new = torch.arange(0, (graphs + 1) * nodes, nodes, device=x.device)
    return PoolingOutput(
        x.reshape(-1, channels),
        new,
        lambda: GraphStructure(new, Dense(weights())),
        lambda y: segment_apply(contribution, y.reshape(graphs, nodes, y.shape[1]).transpose(1, 2), ptr),
        loss,
    )
