from collections.abc import Sequence

from torch import Tensor

from sopool.nn.aggr.base import inherits
from sopool.nn.aggr.normalize import EPS
from sopool.nn.aggr.symmetric import SymmetricAggregation
from sopool.nn.aggr.terms import Terms
from sopool.nn.registry import SOPOOL, readout
from sopool.ops import segment_covariance


@readout(
    "covpool",
    formula="W^T (H - mean)^T (H - mean) W",
    cost="N f r + N r^2",
    vector="flattened, r^2",
    default="r = 32",
    paper=SOPOOL,
    options={"rank": 32},
)
class CovarianceAggregation(SymmetricAggregation):
    r"""Covariance pooling (CovPool) as defined in the `"Second-Order Pooling for Graph Neural Networks"
    <https://arxiv.org/abs/2007.10467>`_ paper: centred, and not divided by :math:`n`. Flattened.

    .. math::
        \mathrm{CovPool}(H) = (H - \mathbf{1} \bar{H})^{\top} (H - \mathbf{1} \bar{H}) \in \mathbb{R}^{f \times f}

    It cannot tell graphs apart that repeat the same node embeddings (the paper's Figure 2a).

    Args:
        channels: Number of node features :math:`f`.
        rank: If given, the features are first mapped to this width by a learned :math:`W`, as in
            :class:`BilinearSecondOrderAggregation`.
        triangle, normalize, moments: see :class:`~sopool.nn.aggr.symmetric.SymmetricAggregation`. The first moment is
            that of the features before they are centred.

    Shapes:
        - **input:** node features :math:`(*, |\mathcal{V}|, f)`, index :math:`(|\mathcal{V}|)` or ptr
        - **output:** graph embeddings :math:`(*, |\mathcal{G}|, f^2)`, or ``rank`` squared
    """

    rounding = EPS  # rows that are all the same are not quite 0 once they are centred

    def __init__(
        self,
        channels: int,
        rank: int | None = None,
        triangle: bool = False,
        normalize: str | None = None,
        moments: Sequence[int] = (2,),
    ) -> None:
        super().__init__(channels, rank, triangle, normalize, moments)

    def second_moment(self, z: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """S [G, width, width] of the centred rows."""
        return segment_covariance(z, ptr, order=order)

    def terms(self, x: Tensor) -> Terms | None:
        """Take one graph apart: its rows are centred."""
        centred = x - x.mean(0) if len(x) else x
        return self._terms(x, centred) if inherits(self, CovarianceAggregation, "second_moment") else None
