import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.normalize import FOR_VECTORS, check_normalize, normalize_pooled, widen_for
from sopool.nn.aggr.terms import LINEAR, Products, Sums, Terms, identity, normalize_alone
from sopool.nn.layers import attend
from sopool.nn.registry import SOPOOL, readout
from sopool.ops.segment.gram import promote


@readout("sopool-attn", formula="H^T H mu", cost="N f", default="no bias", paper=SOPOOL)
class AttentionalSecondOrderAggregation(SegmentAggregation):
    r"""Attentional second-order pooling (SOPool\ :sub:`attn`) from the `"Second-Order Pooling for Graph Neural
    Networks" <https://arxiv.org/abs/2007.10467>`_ paper. :math:`H^{\top} H` is never formed.

    .. math::
        \mathrm{SOPool}_{attn}(H) = H^{\top} H \mu \in \mathbb{R}^{f}, \quad \mu \in \mathbb{R}^{f}

    Args:
        channels: Number of node features :math:`f`.
        bias: Add a learned number :math:`b` to each node's score, :math:`H^{\top} (H \mu + b)`, as the authors' code
            does and the paper does not.
        normalize: None (the paper), ``"size"`` (divided by :math:`n`) or ``"sqrt"`` (signed square root of each entry,
            then length 1).

    Shapes:
        - **input:** node features :math:`(*, |\mathcal{V}|, f)`, index :math:`(|\mathcal{V}|)` or ptr
        - **output:** graph embeddings :math:`(*, |\mathcal{G}|, f)`
    """

    def __init__(self, channels: int, bias: bool = False, normalize: str | None = None) -> None:
        super().__init__(channels)
        check_normalize(normalize, FOR_VECTORS, self)
        self.normalize = normalize
        self.query = torch.nn.Parameter(torch.empty(channels, 1))
        self.bias = bias
        self.query_bias = torch.nn.Parameter(torch.empty(1)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the query (and the bias) anew, as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.query)
        uniform(self.channels, self.query_bias)

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """H^T (H mu + b)."""
        bias = None if self.query_bias is None else widen_for(self.normalize, self.query_bias)
        pooled = attend(widen_for(self.normalize, x), widen_for(self.normalize, self.query), ptr, bias, order)
        return normalize_pooled(pooled.squeeze(2), ptr, self.normalize).to(promote(x).dtype)

    def terms(self, x: Tensor) -> Terms | None:
        """Take one graph apart: A = I and B = mu, and with a bias b each node adds b times itself."""

        def finish(pooled: Tensor, first: Tensor | None = None) -> Tensor:
            vector = pooled.squeeze(1) if first is None else pooled.squeeze(1) + first
            return normalize_alone(vector, len(x), self.normalize)

        first = None if self.query_bias is None else Sums(x, identity(x) * self.query_bias)
        return Terms(Products(x, identity(x), self.query), first, finish, self.normalize in LINEAR)
