from torch import Tensor

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.terms import Sums, Terms, identity
from sopool.nn.registry import GIN, readout
from sopool.ops.segment.first_order import segment_sum


@readout("sum", formula="H^T 1", cost="N f", paper=GIN)
class SumAggregation(SegmentAggregation):
    r""":math:`\sum_i h_i`: [N, f] -> [G, f].

    The values are those of PyG's class of the same name. This one goes through the package's own operators, so it
    trains in a bank and in captured steps like the others.
    """

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """H^T 1."""
        return segment_sum(x, ptr, order)

    def terms(self, x: Tensor) -> Terms | None:
        """Take one graph apart: each node adds itself."""
        return Terms(None, Sums(x, identity(x)), lambda s: s, True)
