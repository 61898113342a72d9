import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.normalize import FOR_VECTORS, check_normalize, normalize_pooled, widen_for
from sopool.nn.aggr.terms import LINEAR, Products, Sums, Terms, identity, normalize_alone
from sopool.nn.layers import attend
from sopool.nn.registry import SOPOOL, readout
from sopool.ops.segment.attend_small import attend_by_index
from sopool.ops.segment.gram import promote


@readout("sopool-attn", formula="H^T H mu", cost="N f", default="no bias", paper=SOPOOL)
class AttentionalSecondOrderAggregation(SegmentAggregation):
    r"""Attentional second-order pooling (SOPool\ :sub:`attn`).

    .. math::
        \mathrm{SOPool}_{attn}(H) = H^{\top} H \mu \in \mathbb{R}^{F}, \quad \mu \in \mathbb{R}^{F}

    The matrix :math:`H^{\top} H` is never formed. From the paper
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.

    Args:
        channels: Number of node features ``F``.
        bias: Whether to add a learned scalar :math:`b` to each node's score, :math:`H^{\top} (H \mu + b)`. The authors'
            code does this; the paper does not. Default: ``False``.
        normalize: ``None`` (the paper's formula), ``"size"`` (divide by the number of nodes) or ``"sqrt"`` (signed
            square root of each entry, then scale to unit length). Default: ``None``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, F]``

    Examples:
        >>> import torch
        >>> x = torch.randn(6, 8)  # 6 nodes with 8 features
        >>> batch = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> AttentionalSecondOrderAggregation(8)(x, batch).shape
        torch.Size([2, 8])
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
        """Reinitialize the query and the bias as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.query)
        uniform(self.channels, self.query_bias)

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Compute H^T (H mu + b) for each graph."""
        bias = None if self.query_bias is None else widen_for(self.normalize, self.query_bias)
        pooled = attend(widen_for(self.normalize, x), widen_for(self.normalize, self.query), ptr, bias, order)
        return normalize_pooled(pooled.squeeze(2), ptr, self.normalize).to(promote(x).dtype)

    def pool_by_index(self, x: Tensor, index: Tensor, dim_size: int | None) -> Tensor | None:
        """Compute H^T (H mu + b) for each graph of a small batch."""
        query = self.query
        if self.normalize is not None or query.dim() != 2:
            return None
        return attend_by_index(x, query, index, dim_size, self.query_bias)

    def terms(self, x: Tensor) -> Terms | None:
        """Return the terms of one graph: A = I and B = mu; with a bias b, each node also adds b times its features."""

        def finish(pooled: Tensor, first: Tensor | None = None) -> Tensor:
            vector = pooled.squeeze(1) if first is None else pooled.squeeze(1) + first
            return normalize_alone(vector, len(x), self.normalize)

        first = None if self.query_bias is None else Sums(x, identity(x) * self.query_bias)
        return Terms(Products(x, identity(x), self.query), first, finish, self.normalize in LINEAR)
