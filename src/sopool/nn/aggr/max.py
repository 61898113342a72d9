from torch import Tensor

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.registry import GIN, readout
from sopool.ops.segment.largest import segment_max


@readout("max", formula="max_i h_i", cost="N f", paper=GIN)
class MaxAggregation(SegmentAggregation):
    r""":math:`\max_i h_i` of each feature, zero for an empty graph: [N, f] -> [G, f].

    The values are those of PyG's class of the same name, see :class:`~sopool.nn.SumAggregation`.
    """

    def pool(self, x: Tensor, ptr: Tensor) -> Tensor:
        """The largest of each column; where nodes share it, the first gets the gradient."""
        return segment_max(x, ptr)
