from collections.abc import Sequence

from sopool.nn.aggr.symmetric import SymmetricAggregation
from sopool.nn.registry import SOPOOL, readout


@readout("sopool", formula="H^T H", cost="N f^2", vector="flattened, f^2", default="-", paper=SOPOOL)
class SecondOrderAggregation(SymmetricAggregation):
    r"""Second-order pooling from the `"Second-Order Pooling for Graph Neural Networks"
    <https://arxiv.org/abs/2007.10467>`_ paper, flattened.

    .. math::
        \mathrm{SOPool}(H) = \sum_{i=1}^{n} h_i h_i^{\top} = H^{\top} H \in \mathbb{R}^{f \times f}

    Args:
        channels: Number of node features :math:`f`. May be left out; then ``out_channels`` is not known ahead.
        triangle, normalize, moments: see :class:`~sopool.nn.aggr.symmetric.SymmetricAggregation`.

    Shapes:
        - **input:** node features :math:`(*, |\mathcal{V}|, f)`, index :math:`(|\mathcal{V}|)` or ptr
        - **output:** graph embeddings :math:`(*, |\mathcal{G}|, f^2)`
    """

    def __init__(
        self,
        channels: int | None = None,
        triangle: bool = False,
        normalize: str | None = None,
        moments: Sequence[int] = (2,),
    ) -> None:
        super().__init__(channels, None, triangle, normalize, moments)
