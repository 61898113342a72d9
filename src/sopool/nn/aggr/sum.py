from torch import Tensor

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.terms import Sums, Terms, identity
from sopool.nn.registry import GIN, readout
from sopool.ops.segment.first_order import segment_sum


@readout("sum", formula="H^T 1", cost="N f", paper=GIN)
class SumAggregation(SegmentAggregation):
    r"""Sum of the node features of each graph, :math:`\sum_i h_i`.

    The values equal those of PyG's class of the same name. This class uses the package's own operators, so many models
    can be trained at once and steps can be captured into CUDA graphs. An empty graph gives zeros.

    Args:
        channels: Number of node features ``F``. If ``None``, any width is accepted. Default: ``None``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, F]``

    Examples:
        >>> import torch
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 0.0]])
        >>> SumAggregation()(x, torch.tensor([0, 0, 1]))
        tensor([[4., 8.],
                [5., 0.]])
    """

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Compute H^T 1 for each graph."""
        return segment_sum(x, ptr, order)

    def terms(self, x: Tensor) -> Terms | None:
        """Return the terms of one graph: each node adds its features."""
        return Terms(None, Sums(x, identity(x)), lambda s: s, True)
