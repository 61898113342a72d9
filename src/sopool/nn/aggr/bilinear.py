from collections.abc import Sequence

from sopool.nn.aggr.symmetric import SymmetricAggregation
from sopool.nn.registry import SOPOOL, readout


@readout(
    "sopool-bimap",
    formula="W^T H^T H W",
    cost="N f r + N r^2",
    vector="flattened, r^2",
    default="r = 32",
    paper=SOPOOL,
)
class BilinearSecondOrderAggregation(SymmetricAggregation):
    r"""Bilinear mapping second-order pooling (SOPool\ :sub:`bimap`) from the `"Second-Order Pooling for Graph Neural
    Networks" <https://arxiv.org/abs/2007.10467>`_ paper, flattened.

    .. math::
        \mathrm{SOPool}_{bimap}(H) = W^{\top} H^{\top} H W \in \mathbb{R}^{f' \times f'},
        \quad W \in \mathbb{R}^{f \times f'}

    Args:
        channels: Number of node features :math:`f`.
        rank: Width :math:`f'` of the mapping (32 in the authors' code).
        triangle, normalize, moments, lr_scale: see :class:`~sopool.nn.aggr.symmetric.SymmetricAggregation`.

    Shapes:
        - **input:** node features :math:`(*, |\mathcal{V}|, f)`, index :math:`(|\mathcal{V}|)` or ptr
        - **output:** graph embeddings :math:`(*, |\mathcal{G}|, f'^2)`
    """

    def __init__(
        self,
        channels: int,
        rank: int = 32,
        triangle: bool = False,
        normalize: str | None = None,
        moments: Sequence[int] = (2,),
        lr_scale: float = 1.0,
    ) -> None:
        super().__init__(channels, rank, triangle, normalize, moments, lr_scale)
