"""The readouts that second-order pooling is compared with: the sum, the mean and the largest value of each feature.

The values are those of PyG's classes of the same names; these go through the package's own operators, so they train in
a bank and in captured steps like the others.
"""

from torch import Tensor

from sopool.nn.aggr.base import SegmentAggregation
from sopool.ops.segment.first_order import segment_mean, segment_sum
from sopool.ops.segment.largest import segment_max


class SumAggregation(SegmentAggregation):
    r""":math:`\sum_i h_i`: [N, f] -> [G, f]."""

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """H^T 1."""
        return segment_sum(x, ptr, order)


class MeanAggregation(SegmentAggregation):
    r""":math:`\frac{1}{n} \sum_i h_i`, zero for an empty graph: [N, f] -> [G, f]."""

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """H^T 1 / n."""
        return segment_mean(x, ptr, order)


class MaxAggregation(SegmentAggregation):
    r""":math:`\max_i h_i` of each feature, zero for an empty graph: [N, f] -> [G, f]."""

    def pool(self, x: Tensor, ptr: Tensor) -> Tensor:
        """The largest of each column; where nodes share it, the first gets the gradient."""
        return segment_max(x, ptr)
