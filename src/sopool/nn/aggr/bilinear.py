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
    r"""Second-order pooling with a bilinear mapping (SOPool\ :sub:`bimap`).

    .. math::
        \mathrm{SOPool}_{bimap}(H) = W^{\top} H^{\top} H W \in \mathbb{R}^{R \times R},
        \quad W \in \mathbb{R}^{F \times R}

    The matrix of each graph is flattened. From the paper
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.

    The last four arguments are described in :class:`~sopool.nn.aggr.symmetric.SymmetricAggregation`.

    Args:
        channels: Number of node features ``F``.
        rank: Width ``R`` of the mapping. Default: ``32``, as in the authors' code.
        triangle: Whether to keep only the upper triangle. Default: ``False``.
        normalize: How to normalize the matrix. Default: ``None``.
        moments: ``(2,)``, or ``(1, 2)`` to append the first moment. Default: ``(2,)``.
        lr_scale: Learning rate of the mapping relative to the other parameters. Default: ``1.0``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, R * R]``

    Examples:
        >>> import torch
        >>> x = torch.randn(6, 8)  # 6 nodes with 8 features
        >>> batch = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> BilinearSecondOrderAggregation(8, rank=4)(x, batch).shape
        torch.Size([2, 16])
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
