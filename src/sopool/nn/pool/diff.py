import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.layers import project
from sopool.nn.pool.base import EdgePooling, PoolingOutput, dense_pooled
from sopool.nn.pool.multi_head import normalize_by_degree
from sopool.nn.registry import pooling, readout
from sopool.ops import segment_gram, segment_mean, segment_sum
from sopool.ops.message_passing.structure import GraphStructure, propagate, propagate_normalized, squared_weights
from sopool.ops.segment.first_order import segment_sizes
from sopool.ops.segment.gram import promote
from sopool.ops.segment.torch_backend import widen

EPS = 1e-12


@pooling("diffpool", options={"clusters": 16}, nodes_option="clusters")
@readout(
    "diffpool",
    formula="S = softmax(D^-1/2 (A + I) D^-1/2 H W), H' = S^T H, A' = S^T A S",
    cost="N f k + N k^2 + E k",
    vector="k nodes side by side",
    default="k = 8; blocks 16, 8, 4",
    paper="Ying et al. 2018, arXiv 1806.08804",
    vector_from="concat",
)
class DiffPooling(EdgePooling):
    r"""Differentiable pooling (DiffPool) from the `"Hierarchical Graph Representation Learning with Differentiable
    Pooling" <https://arxiv.org/abs/1806.08804>`_ paper: a graph convolution shares each node out among k clusters.

    .. math:: S = \mathrm{softmax}(D^{-1/2} (A + I) D^{-1/2} H W), \quad H' = S^{\top} H, \quad A' = S^{\top} A S

    In training each graph's loss grows by :math:`\|A - S S^{\top}\|_F / n`, the root mean square of what the clusters
    miss of its edges, and by the mean entropy of its nodes' shares. Of each graph by itself: where graphs are padded
    to the largest, as in PyG's layer, both depend on its company. :math:`S S^{\top}` is never formed:

    .. math:: \|A - S S^{\top}\|^2 = \sum_{ij} A_{ij}^2 - 2 \sum_{ij} A_{ij} \, s_i \cdot s_j + \|S^{\top} S\|^2

    The new weights are divided by the square roots of both nodes' degrees, for the layers that follow.

    Args:
        channels: Number of node features :math:`f`.
        clusters: Number of nodes :math:`k` of each pooled graph.
        link, entropy: Factors of the two losses.
    """

    def __init__(self, channels: int, clusters: int = 8, link: float = 1.0, entropy: float = 1.0) -> None:
        super().__init__(channels)
        if clusters < 2:
            raise ValueError(f"clusters={clusters}: with fewer than 2 there is nothing to share out; take a sum.")
        self.clusters = clusters
        self.link = link
        self.entropy = entropy
        self.weight = torch.nn.Parameter(torch.empty(channels, clusters))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W anew, as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.weight)

    @property
    def nodes(self) -> int:
        """The number of clusters."""
        return self.clusters

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """S^T H, S^T A S and the losses."""
        dtype = promote(x).dtype
        rows = widen(x)
        logits = propagate_normalized(project(rows, widen(self.weight), graphs.ptr), graphs.neighbors)
        share = logits.softmax(1)
        aggregated = propagate(share, graphs.neighbors) - share
        pooled, adjacency = segment_gram(share, torch.cat([rows, aggregated], 1), graphs.ptr).split(
            [x.shape[1], self.clusters], dim=2
        )
        loss = self.link * _link(share, aggregated, graphs)
        loss = loss + self.entropy * segment_mean(_entropy(logits, share), graphs.ptr).squeeze(1)

        def weights() -> Tensor:
            return normalize_by_degree(adjacency).to(dtype)

        return dense_pooled(pooled.to(dtype), weights, share.to(dtype), graphs.ptr, loss.to(dtype))


def _link(share: Tensor, aggregated: Tensor, graphs: GraphStructure) -> Tensor:
    """||A - S S^T||_F / n of each graph [G], given A S."""
    agreed = segment_sum((share * aggregated).sum(1, keepdim=True), graphs.ptr).squeeze(1)
    within = segment_gram(share, share, graphs.ptr).square().sum((1, 2))
    missed = squared_weights(graphs, like=share) - 2 * agreed + within
    return (missed.clamp(min=0) + EPS).sqrt() / segment_sizes(graphs.ptr, like=share).squeeze(1)


def _entropy(logits: Tensor, share: Tensor) -> Tensor:
    """-sum_j s_j log s_j of each node [N, 1]; from the logits, so that a share of zero needs no care."""
    return -(share * logits.log_softmax(1)).sum(1, keepdim=True)
