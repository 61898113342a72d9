from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.normalize import EPS, widen_for
from sopool.nn.layers import project
from sopool.nn.pool.base import GraphPooling, PoolingOutput, dense_pooled, find_batch
from sopool.nn.pool.edge_list import all_pairs
from sopool.nn.registry import pooling
from sopool.ops import segment_gram, segment_spread
from sopool.ops.message_passing.structure import GraphStructure, propagate
from sopool.ops.segment.first_order import segment_sizes
from sopool.ops.segment.gram import promote
from sopool.ops.segment.segments import check_edges
from sopool.ops.segment.standard import total


class DensePoolingOutput(NamedTuple):
    """A batch of G pooled graphs of K nodes each.

    Node k of graph g is row ``g * K + k``. All K * K pairs of a graph are edges, row by row, including those of weight
    zero.

    Examples:
        >>> import torch
        >>> from sopool.nn import MultiHeadSecondOrderPooling
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> pooled = MultiHeadSecondOrderPooling(8, heads=3)(torch.randn(2, 8), edge_index)
        >>> pooled.edge_index.shape, pooled.adj.shape
        (torch.Size([2, 9]), torch.Size([1, 3, 3]))
    """

    x: Tensor
    """Node features ``[G * K, F]``."""
    edge_index: Tensor
    """Edges ``[2, G * K * K]``."""
    edge_weight: Tensor
    """The entries of ``adj`` in the order of ``edge_index``, ``[G * K * K]``."""
    batch: Tensor
    """The graph of each node ``[G * K]``."""
    adj: Tensor
    """The matrices A' ``[G, K, K]``; ``adj[g, i, j]`` is the weight of the edge i -> j."""
    contribution: Tensor
    """C transposed ``[N, K]``: the contribution of each input node to each new node of its graph."""


@pooling("sopool-m-attn", options={"heads": 16, "normalize": "adjacency"}, nodes_option="heads")
class MultiHeadSecondOrderPooling(GraphPooling):
    r"""Multi-head attentional second-order pooling (SOPool\ :sub:`m_attn`) as a pooling layer.

    .. math::
        C = U H^{\top}, \quad H' = C H \in \mathbb{R}^{K \times F}, \quad A' = C A C^{\top} \in \mathbb{R}^{K \times K}

    Here :math:`A_{ij}` is the summed weight of the edges :math:`i \to j` (``edge_index[0] = i``, ``edge_index[1] =
    j``). Time and memory are linear in nodes and edges. From the paper
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.

    Args:
        channels: Number of node features ``F``.
        heads: Number of queries ``K``, the nodes of each pooled graph.
        normalize: ``"adjacency"`` divides each entry of :math:`A'` by the square roots of the sums of absolute values
            of its row and its column; :math:`A'` may be negative. ``"degree"`` also divides :math:`C` by the number of
            nodes. ``None`` is the paper's formula, whose values grow from block to block. Default: ``"degree"``.

    Shapes:
        - **input:** node features ``[N, F]``, ``edge_index`` ``[2, E]``, ``batch`` ``[N]``, ``edge_weight`` ``[E]``
        - **output:** a :class:`~sopool.nn.DensePoolingOutput` with node features ``[G * K, F]``

    Examples:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> batch = torch.tensor([0, 0, 0, 1, 1])
        >>> pooled = MultiHeadSecondOrderPooling(8, heads=4)(torch.randn(5, 8), edge_index, batch)
        >>> pooled.x.shape, pooled.adj.shape
        (torch.Size([8, 8]), torch.Size([2, 4, 4]))
    """

    def __init__(self, channels: int, heads: int, normalize: str | None = "degree") -> None:
        super().__init__(channels)
        if heads < 1:
            raise ValueError(f"heads={heads}: it must be at least 1.")
        if normalize not in ("degree", "adjacency", None):
            raise ValueError(f"normalize={normalize!r}: choose 'degree', 'adjacency', or None for the paper's formula.")
        self.heads = heads
        self.normalize = normalize
        self.queries = torch.nn.Parameter(torch.empty(heads, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the queries as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.queries)

    @property
    def nodes(self) -> int:
        """The number of nodes of each pooled graph, ``heads``."""
        return self.heads

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Compute C H and C A C^T as a batch of graphs for the next block."""
        dtype = promote(x).dtype
        rows = widen_for(self.normalize, x)
        contribution = project(rows, widen_for(self.normalize, self.queries.mT), graphs.ptr)
        if self.normalize == "degree":
            share = 1 / segment_sizes(graphs.ptr, like=contribution)
            contribution = contribution * segment_spread(share, graphs.ptr, x.shape[0])
        aggregated = propagate(contribution, graphs.neighbors) - contribution
        both = segment_gram(contribution, torch.cat([rows, aggregated], 1), graphs.ptr)
        pooled, adj = both.split([self.channels, self.heads], dim=2)
        by_degree = normalize_by_degree if self.normalize else lambda weights: weights
        return dense_pooled(pooled.to(dtype), lambda: by_degree(adj).to(dtype), contribution.to(dtype), graphs.ptr)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> DensePoolingOutput:
        """Pool a batch of graphs in PyG's format.

        Args:
            x: Node features ``[N, F]``.
            edge_index: Directed edges ``[2, E]``; a repeated edge counts repeatedly.
            batch: The graph of each node ``[N]``, in any order. Default: ``None``, for a single graph.
            batch_size: The number of graphs. Default: ``None``, which means ``batch.max() + 1``.
            edge_weight: The weight of each edge ``[E]``, of any type. Default: ``None``, which means 1.
        """
        self._check(x, edge_index)
        if edge_weight is not None and edge_weight.shape != (edge_index.shape[1],):
            raise ValueError(
                f"edge_weight has shape {list(edge_weight.shape)} for {edge_index.shape[1]} edges: "
                "it must have one number per edge."
            )
        batch, segments = find_batch(x, edge_index, batch, batch_size)
        check_edges(edge_index, batch)
        dtype = promote(x).dtype
        rows = widen_for(self.normalize, x)
        contribution = project(rows, widen_for(self.normalize, self.queries.t()), segments.ptr)
        if self.normalize == "degree":
            contribution = contribution / segment_sizes(segments.ptr, like=contribution).index_select(0, batch)
        neighbors = _propagate(contribution, edge_index, edge_weight)
        both = segment_gram(segments.sort(contribution), segments.sort(torch.cat([rows, neighbors], 1)), segments.ptr)
        pooled, adj = both.split([self.channels, self.heads], dim=2)
        if self.normalize:
            adj = normalize_by_degree(adj)
        return _as_batch(pooled.to(dtype), adj.to(dtype), contribution.to(dtype))


def normalize_by_degree(adj: Tensor) -> Tensor:
    r"""Divide signed adjacency matrices ``[G, K, K]`` by absolute degrees.

    .. math:: A_{ij} / \sqrt{\sum_l |A_{il}| \sum_l |A_{lj}|}

    The entries are first divided by the largest one, so that the ``EPS`` added to the degrees is relative to it.
    """
    largest = adj.abs().amax((1, 2), keepdim=True)
    adj = adj / torch.where(largest > 0, largest, 1.0)
    size = adj.abs()
    out_degree = size.sum(2, keepdim=True)
    in_degree = size.sum(1, keepdim=True)
    return adj * (out_degree + EPS).rsqrt() * (in_degree + EPS).rsqrt()


def _propagate(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    """Compute A x: each node sums over the targets of its edges."""
    targets = x.index_select(0, edge_index[1])
    if edge_weight is not None:
        targets = targets * edge_weight.unsqueeze(1).to(x.dtype)
    return total(targets, edge_index[0], x.shape[0])


def _as_batch(pooled: Tensor, adj: Tensor, contribution: Tensor) -> DensePoolingOutput:
    """Concatenate graphs of K nodes with all K * K edges; shapes do not depend on values."""
    graphs, k, channels = pooled.shape
    return DensePoolingOutput(
        x=pooled.reshape(graphs * k, channels),
        edge_index=all_pairs(graphs, k, pooled.device),
        edge_weight=adj.reshape(-1),
        batch=torch.arange(graphs, device=pooled.device).repeat_interleave(k, output_size=graphs * k),
        adj=adj,
        contribution=contribution,
    )
