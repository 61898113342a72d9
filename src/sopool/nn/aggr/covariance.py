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
    r"""Covariance pooling (CovPool).

    .. math::
        \mathrm{CovPool}(H) = (H - \mathbf{1} \bar{H})^{\top} (H - \mathbf{1} \bar{H}) \in \mathbb{R}^{F \times F}

    The matrix is not divided by :math:`n`, and it is flattened. This readout cannot distinguish graphs that repeat the
    same node embeddings (Figure 2a of the paper). As defined in
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.

    The last three arguments are described in :class:`~sopool.nn.aggr.symmetric.SymmetricAggregation`.

    Args:
        channels: Number of node features ``F``.
        rank: If given, a learned matrix :math:`W` first maps the features to this width ``R``, as in
            :class:`~sopool.nn.BilinearSecondOrderAggregation`. Default: ``None``.
        triangle: Whether to keep only the upper triangle. Default: ``False``.
        normalize: How to normalize the matrix. Default: ``None``.
        moments: ``(2,)``, or ``(1, 2)`` to append the first moment of the uncentered features. Default: ``(2,)``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, F * F]``, or ``[*, G, R * R]`` with ``rank``

    Examples:
        >>> import torch
        >>> x = torch.randn(6, 8)  # 6 nodes with 8 features
        >>> batch = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> CovarianceAggregation(8, rank=4)(x, batch).shape
        torch.Size([2, 16])
    """

    rounding = EPS  # identical rows are not exactly 0 after centering

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
        """Return S of the centered rows, ``[G, width, width]``."""
        return segment_covariance(z, ptr, order=order)

    def terms(self, x: Tensor) -> Terms | None:
        """Return the terms of one graph, whose rows are centered."""
        centered = x - x.mean(0) if len(x) else x
        return self._terms(x, centered) if inherits(self, CovarianceAggregation, "second_moment") else None
