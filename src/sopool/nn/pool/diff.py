from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.layers import project
from sopool.nn.pool.base import EdgePooling, dense_pooled
from sopool.nn.pool.output import PoolingOutput
from sopool.nn.registry import pooling, readout
from sopool.ops import segment_gram, segment_mean, segment_sum
from sopool.ops.message_passing.dense import normalize_by_degree
from sopool.ops.message_passing.structure import GraphStructure, propagate, propagate_normalized, squared_weights
from sopool.ops.segment.first_order import segment_sizes
from sopool.ops.segment.gram import promote
from sopool.ops.segment.torch_backend import widen

EPS = 1e-12


class Assigned(NamedTuple):
    """Graphs of K clusters each, and what their assignment costs."""

    x: Tensor
    """The features of the clusters S^T H, ``[G, K, F]``."""
    weights: Tensor
    """The weights of edges between them S^T A S, ``[G, K, K]``."""
    share: Tensor
    """The share of each cluster in each node S, ``[N, K]``."""
    link: Tensor
    """||A - S S^T|| / n of each graph ``[G]``."""
    entropy: Tensor
    """The mean entropy of the rows of S of each graph ``[G]``."""


def assign(x: Tensor, logits: Tensor, graphs: GraphStructure) -> Assigned:
    """Return the graphs of soft clusters, to which nodes belong by the softmax of ``logits`` ``[N, K]``.

    Args:
        x: Node features ``[N, F]``.
        logits: The scores of each cluster for each node ``[N, K]``.
        graphs: A batch of G graphs.
    """
    share = logits.softmax(1)
    aggregated = propagate(share, graphs.neighbors) - share
    pooled, weights = segment_gram(share, torch.cat([x, aggregated], 1), graphs.ptr).split(
        [x.shape[1], share.shape[1]], dim=2
    )
    entropy = segment_mean(_entropy(logits, share), graphs.ptr).squeeze(1)
    return Assigned(pooled, weights, share, _link(share, aggregated, graphs), entropy)


@pooling("diffpool", options={"clusters": 16}, nodes_option="clusters")
@readout(
    "diffpool",
    formula="S = softmax(D^-1/2 (A + I) D^-1/2 H W), H' = S^T H, A' = S^T A S",
    cost="N f k + N k^2 + E k",
    vector="k nodes concatenated",
    default="k = 8; blocks 16, 8, 4",
    paper="Ying et al. 2018, arXiv 1806.08804",
    vector_from="concat",
)
class DiffPooling(EdgePooling):
    r"""Differentiable pooling (DiffPool), in which a graph convolution assigns nodes to soft clusters.

    .. math:: S = \mathrm{softmax}(D^{-1/2} (A + I) D^{-1/2} H W), \quad H' = S^{\top} H, \quad A' = S^{\top} A S

    Each graph has two additional losses: ``loss["link"]`` is :math:`\|A - S S^{\top}\|_F / n`, and ``loss["entropy"]``
    the mean entropy of the rows of :math:`S`. Unlike in PyG's layer, which pads graphs to the largest one, they do not
    depend on the other graphs of the batch. :math:`S S^{\top}` is never formed:

    .. math:: \|A - S S^{\top}\|^2 = \sum_{ij} A_{ij}^2 - 2 \sum_{ij} A_{ij} \, s_i \cdot s_j + \|S^{\top} S\|^2

    Edge weights count in all of this, with their absolute values in the degrees :math:`D`; repeated edges are added.
    The new edge weights are divided by the square roots of the degrees of both nodes. From the paper
    `"Hierarchical Graph Representation Learning with Differentiable Pooling" <https://arxiv.org/abs/1806.08804>`_.

    Args:
        channels: Number of node features ``F``.
        clusters: Number of clusters ``K``, the nodes of each pooled graph. Default: ``8``.
        link: Weight of the link loss. Default: ``1.0``.
        entropy: Weight of the entropy loss. Default: ``1.0``.

    Shapes:
        - **input:** node features ``[N, F]``, ``edge_index`` ``[2, E]``, ``edge_weight`` ``[E]``, ``batch`` ``[N]``
        - **output:** a :class:`~sopool.nn.PoolingOutput` with node features ``[G * K, F]``

    Examples:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> batch = torch.tensor([0, 0, 0, 1, 1])
        >>> pooled = DiffPooling(8, clusters=4)(torch.randn(5, 8), edge_index, batch=batch)
        >>> pooled.x.shape, pooled.loss["link"].shape
        (torch.Size([8, 8]), torch.Size([2]))
    """

    def __init__(self, channels: int, clusters: int = 8, link: float = 1.0, entropy: float = 1.0) -> None:
        super().__init__(channels)
        if clusters < 2:
            raise ValueError(
                f"clusters={clusters}: it must be at least 2. A single cluster would be a sum; use sum instead."
            )
        self.clusters = clusters
        self.link = link
        self.entropy = entropy
        self.weight = torch.nn.Parameter(torch.empty(channels, clusters))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize W as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.weight)

    @property
    def nodes(self) -> int:
        """The number of nodes of each pooled graph, ``clusters``."""
        return self.clusters

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Compute S^T H, S^T A S and the losses."""
        dtype = promote(x).dtype
        rows = widen(x)
        logits = propagate_normalized(project(rows, widen(self.weight), graphs.ptr), graphs.neighbors)
        found = assign(rows, logits, graphs)
        loss = {"link": (self.link * found.link).to(dtype), "entropy": (self.entropy * found.entropy).to(dtype)}

        def weights() -> Tensor:
            return normalize_by_degree(found.weights).to(dtype)

        return dense_pooled(found.x.to(dtype), weights, found.share.to(dtype), graphs.ptr, loss)


def _link(share: Tensor, aggregated: Tensor, graphs: GraphStructure) -> Tensor:
    """Return the link loss of each graph ``[G]``, given A S."""
    agreed = segment_sum((share * aggregated).sum(1, keepdim=True), graphs.ptr).squeeze(1)
    within = segment_gram(share, share, graphs.ptr).square().sum((1, 2))
    missed = squared_weights(graphs, like=share) - 2 * agreed + within
    return (missed.clamp(min=0) + EPS).sqrt() / segment_sizes(graphs.ptr, like=share).squeeze(1)


def _entropy(logits: Tensor, share: Tensor) -> Tensor:
    """Return the entropy of each node ``[N, 1]``, from the logits so that zeros in S need no special treatment."""
    return -(share * logits.log_softmax(1)).sum(1, keepdim=True)
