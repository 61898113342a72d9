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
    vector="k nodes side by side",
    default="k = 8; blocks 16, 8, 4",
    paper=SOPOOL,
    options={"heads": 8},
)
class MultiHeadSecondOrderAggregation(SegmentAggregation):
    r"""Multi-head attentional second-order pooling (SOPool\ :sub:`m_attn`) from the `"Second-Order Pooling for Graph
    Neural Networks" <https://arxiv.org/abs/2007.10467>`_ paper as a global readout, flattened.

    .. math::
        \mathrm{SOPool}_{m\_attn}(H) = U H^{\top} H \in \mathbb{R}^{k \times f}, \quad U \in \mathbb{R}^{k \times f}

    For the layer that shrinks graphs see :class:`~sopool.nn.MultiHeadSecondOrderPooling`.

    Args:
        channels: Number of node features :math:`f`.
        heads: Number of queries :math:`k`.
        normalize: None (the paper), ``"size"`` (divided by :math:`n`) or ``"sqrt"`` (signed square root of each entry,
            then length 1).

    Shapes:
        - **input:** node features :math:`(*, |\mathcal{V}|, f)`, index :math:`(|\mathcal{V}|)` or ptr
        - **output:** graph embeddings :math:`(*, |\mathcal{G}|, k f)`
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
        """Draw the queries anew, as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.queries)

    @property
    def out_channels(self) -> int:
        """The number of heads times the channels."""
        return self.heads * self.queries.shape[-1]

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """U H^T H = (H^T H U^T)^T."""
        rows = widen_for(self.normalize, x)
        queries = widen_for(self.normalize, self.queries.mT)
        pooled = attend(rows, queries, ptr, order=order).transpose(1, 2)
        return normalize_pooled(pooled.flatten(1), ptr, self.normalize).to(promote(x).dtype)

    def terms(self, x: Tensor) -> Terms | None:
        """Take one graph apart: A = U^T and B = I."""

        def finish(pooled: Tensor) -> Tensor:
            return normalize_alone(pooled.flatten(), len(x), self.normalize)

        return Terms(Products(x, self.queries.T, identity(x)), None, finish, self.normalize in LINEAR)
