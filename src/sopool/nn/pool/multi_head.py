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


class DensePoolingOutput(NamedTuple):
    """A batch of G smaller graphs of k nodes each.

    Graph g's node h is row g k + h. All k x k edges are there, row by row, those of weight zero too.
    """

    x: Tensor
    """Node features [G k, channels]."""
    edge_index: Tensor
    """[2, G k k]."""
    edge_weight: Tensor
    """The entries of ``adj`` in the order of ``edge_index`` [G k k]."""
    batch: Tensor
    """The graph of each node [G k]."""
    adj: Tensor
    """A', adj[g, i, j] is the weight of the edge i -> j [G, k, k]."""
    contribution: Tensor
    """C^T: what each node of the input gives to each of its graph's new nodes [N, k]."""


@pooling("sopool-m-attn", options={"heads": 16, "normalize": "adjacency"}, nodes_option="heads")
class MultiHeadSecondOrderPooling(GraphPooling):
    r"""Multi-head attentional second-order pooling (SOPool\ :sub:`m_attn`) from the `"Second-Order Pooling for Graph
    Neural Networks" <https://arxiv.org/abs/2007.10467>`_ paper as a layer that shrinks each graph to :math:`k` nodes.

    .. math::
        C = U H^{\top}, \quad H' = C H \in \mathbb{R}^{k \times f}, \quad A' = C A C^{\top} \in \mathbb{R}^{k \times k}

    with :math:`A_{ij}` the summed weight of the edges :math:`i \to j`, ``edge_index[0] = i`` and ``edge_index[1] = j``.
    Computed edge by edge; time and memory are linear in nodes and edges.

    Args:
        channels: Number of node features :math:`f`.
        heads: Number of nodes :math:`k` of each pooled graph.
        normalize: ``"degree"`` divides :math:`C` by the number of nodes, so that :math:`H'` is an average, and each
            entry of :math:`A'` by the square roots of its row's and its column's sum of absolute values. (:math:`A'`
            is signed: plain degrees may be negative.) ``"adjacency"`` does the latter only: :math:`H'` is the paper's
            sum. None is the paper's formula, whose values explode: :math:`H'` grows with n, :math:`A'` with the number
            of edges, block after block.
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
        """Draw the queries anew, as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.queries)

    @property
    def nodes(self) -> int:
        """The number of heads."""
        return self.heads

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """C H and C A C^T, as a batch of graphs for the next block."""
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
        """Pool a batch of graphs.

        Args:
            x: Node features [N, channels].
            edge_index: Edges [2, E], directed; an edge given twice counts twice.
            batch: The graph of each node [N], in any order; one graph if left out.
            batch_size: The number of graphs, ``batch.max() + 1`` if left out.
            edge_weight: The weights of edges [E], of any type, 1 if left out.
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
        neighbours = _propagate(contribution, edge_index, edge_weight)
        both = segment_gram(segments.sort(contribution), segments.sort(torch.cat([rows, neighbours], 1)), segments.ptr)
        pooled, adj = both.split([self.channels, self.heads], dim=2)
        if self.normalize:
            adj = normalize_by_degree(adj)
        return _as_batch(pooled.to(dtype), adj.to(dtype), contribution.to(dtype))


def normalize_by_degree(adj: Tensor) -> Tensor:
    r"""Signed adjacencies [G, k, k] by absolute degree: :math:`A_{ij} / \sqrt{\sum_l |A_{il}| \sum_l |A_{lj}|}`.

    Of each graph's largest entry a part of ``EPS`` counts as nothing, whatever the size of the graph or the features.
    """
    largest = adj.abs().amax((1, 2), keepdim=True)
    adj = adj / torch.where(largest > 0, largest, 1.0)
    size = adj.abs()
    out_degree = size.sum(2, keepdim=True)
    in_degree = size.sum(1, keepdim=True)
    return adj * (out_degree + EPS).rsqrt() * (in_degree + EPS).rsqrt()


def _propagate(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    """A x: each node sums over the targets of its edges."""
    targets = x.index_select(0, edge_index[1])
    if edge_weight is not None:
        targets = targets * edge_weight.unsqueeze(1).to(x.dtype)
    return torch.zeros_like(x).index_add(0, edge_index[0], targets)


def _as_batch(pooled: Tensor, adj: Tensor, contribution: Tensor) -> DensePoolingOutput:
    """Lay k nodes per graph end to end, with all k x k edges: shapes known without looking at values."""
    graphs, k, channels = pooled.shape
    return DensePoolingOutput(
        x=pooled.reshape(graphs * k, channels),
        edge_index=all_pairs(graphs, k, pooled.device),
        edge_weight=adj.reshape(-1),
        batch=torch.arange(graphs, device=pooled.device).repeat_interleave(k, output_size=graphs * k),
        adj=adj,
        contribution=contribution,
    )
