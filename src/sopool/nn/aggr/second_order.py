from collections.abc import Sequence

from sopool.nn.aggr.symmetric import SymmetricAggregation
from sopool.nn.registry import SOPOOL, readout


@readout("sopool", formula="H^T H", cost="N f^2", vector="flattened, f^2", default="-", paper=SOPOOL)
class SecondOrderAggregation(SymmetricAggregation):
    r"""Second-order pooling (SOPool).

    .. math::
        \mathrm{SOPool}(H) = \sum_{i=1}^{n} h_i h_i^{\top} = H^{\top} H \in \mathbb{R}^{F \times F}

    The matrix of each graph is flattened. From the paper
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.

    The last three arguments are described in :class:`~sopool.nn.aggr.symmetric.SymmetricAggregation`.

    Args:
        channels: Number of node features ``F``. If ``None``, any width is accepted and ``out_channels`` is ``None``.
            Default: ``None``.
        triangle: Whether to keep only the upper triangle. Default: ``False``.
        normalize: How to normalize the matrix. Default: ``None``.
        moments: ``(2,)``, or ``(1, 2)`` to append the first moment. Default: ``(2,)``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, F * F]``

    Examples:
        >>> import torch
        >>> x = torch.randn(6, 8)  # 6 nodes with 8 features
        >>> batch = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> SecondOrderAggregation(8)(x, batch).shape
        torch.Size([2, 64])
        >>> SecondOrderAggregation(8, triangle=True)(x, batch).shape
        torch.Size([2, 36])
    """

    def __init__(
        self,
        channels: int | None = None,
        triangle: bool = False,
        normalize: str | None = None,
        moments: Sequence[int] = (2,),
    ) -> None:
        super().__init__(channels, None, triangle, normalize, moments)
