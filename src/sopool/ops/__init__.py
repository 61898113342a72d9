"""The primitive every pooling here is made of, and its backends. Knows tensors only."""

from sopool.ops.attend import segment_attend
from sopool.ops.first_order import segment_mean, segment_softmax, segment_spread, segment_sum
from sopool.ops.gram import segment_apply, segment_gram

__all__ = [
    "segment_apply",
    "segment_attend",
    "segment_gram",
    "segment_mean",
    "segment_softmax",
    "segment_spread",
    "segment_sum",
]
