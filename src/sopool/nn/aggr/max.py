from torch import Tensor

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.registry import GIN, readout
from sopool.ops.segment.largest import segment_max


@readout("max", formula="max_i h_i", cost="N f", paper=GIN)
class MaxAggregation(SegmentAggregation):
    r"""Maximum of the node features of each graph, :math:`\max_i h_i`.

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
        >>> MaxAggregation()(x, torch.tensor([0, 0, 1]))
        tensor([[3., 6.],
                [5., 0.]])
    """

    def pool(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Return the maximum of each feature; among equal nodes, the first receives the gradient."""
        return segment_max(x, ptr)
