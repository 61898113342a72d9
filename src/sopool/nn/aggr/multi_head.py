import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.normalize import FOR_VECTORS, check_normalize, normalize_pooled, widen_for
from sopool.nn.aggr.terms import LINEAR, Products, Terms, identity, normalize_alone
from sopool.nn.layers import attend
from sopool.nn.registry import SOPOOL, readout
from sopool.ops.segment.gram import promote


@readout(
    "sopool-m-attn",
    formula="C = U H^T, H' = C H, A' = C A C^T",
    cost="N f k + E k",
    vector="k nodes concatenated",
    default="k = 8; blocks 16, 8, 4",
    paper=SOPOOL,
    options={"heads": 8},
)
class MultiHeadSecondOrderAggregation(SegmentAggregation):
    r"""Multi-head attentional second-order pooling (SOPool\ :sub:`m_attn`) as a readout.

    .. math::
        \mathrm{SOPool}_{m\_attn}(H) = U H^{\top} H \in \mathbb{R}^{K \times F}, \quad U \in \mathbb{R}^{K \times F}

    The matrix of each graph is flattened. From the paper
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.
    For the layer that turns each graph into a smaller graph, see :class:`~sopool.nn.MultiHeadSecondOrderPooling`.

    Args:
        channels: Number of node features ``F``.
        heads: Number of queries ``K``.
        normalize: ``None`` (the paper's formula), ``"size"`` (divide by the number of nodes) or ``"sqrt"`` (signed
            square root of each entry, then scale to unit length). Default: ``None``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, K * F]``

    Examples:
        >>> import torch
        >>> x = torch.randn(6, 8)  # 6 nodes with 8 features
        >>> batch = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> MultiHeadSecondOrderAggregation(8, heads=4)(x, batch).shape
        torch.Size([2, 32])
    """

    def __init__(self, channels: int, heads: int, normalize: str | None = None) -> None:
        super().__init__(channels)
        check_normalize(normalize, FOR_VECTORS, self)
        if heads < 1:
            raise ValueError(f"heads={heads}: it must be at least 1.")
        self.heads = heads
        self.normalize = normalize
        self.queries = torch.nn.Parameter(torch.empty(heads, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the queries as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.queries)

    @property
    def out_channels(self) -> int:
        """The width of the output, ``heads * channels``."""
        return self.heads * self.queries.shape[-1]

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Compute U H^T H for each graph, as the transpose of H^T H U^T."""
        rows = widen_for(self.normalize, x)
        queries = widen_for(self.normalize, self.queries.mT)
        pooled = attend(rows, queries, ptr, order=order).transpose(1, 2)
        return normalize_pooled(pooled.flatten(1), ptr, self.normalize).to(promote(x).dtype)

    def terms(self, x: Tensor) -> Terms | None:
        """Return the terms of one graph: A = U^T and B = I."""

        def finish(pooled: Tensor) -> Tensor:
            return normalize_alone(pooled.flatten(), len(x), self.normalize)

        return Terms(Products(x, self.queries.T, identity(x)), None, finish, self.normalize in LINEAR)
