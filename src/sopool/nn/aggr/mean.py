from torch import Tensor

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.terms import Sums, Terms, identity
from sopool.nn.registry import GIN, readout
from sopool.ops.segment.first_order import segment_mean


@readout("mean", formula="H^T 1 / n", cost="N f", paper=GIN)
class MeanAggregation(SegmentAggregation):
    r""":math:`\frac{1}{n} \sum_i h_i`, zero for an empty graph: [N, f] -> [G, f].

    The values are those of PyG's class of the same name, see :class:`~sopool.nn.SumAggregation`.
    """

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """H^T 1 / n."""
        return segment_mean(x, ptr, order)

    def terms(self, x: Tensor) -> Terms | None:
        """Take one graph apart: each node adds its share of the mean."""
        return Terms(None, Sums(x, identity(x)), lambda s: s / max(1, len(x)), True)
