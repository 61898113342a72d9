"""The primitive every pooling here is made of, and its backends. Knows tensors only."""

from sopool.ops.attend import segment_attend
from sopool.ops.backends import backend
from sopool.ops.bilinear import segment_bilinear
from sopool.ops.covariance import segment_covariance
from sopool.ops.first_order import segment_mean, segment_softmax, segment_spread, segment_sum
from sopool.ops.gram import segment_apply, segment_gram

__all__ = [
    "backend",
    "segment_apply",
    "segment_attend",
    "segment_bilinear",
    "segment_covariance",
    "segment_gram",
    "segment_mean",
    "segment_softmax",
    "segment_spread",
    "segment_sum",
]
