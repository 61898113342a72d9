"""Segment operators that poolings are built from, and the choice of their backend.

The functions work on tensors only. N is the number of rows (nodes), G the number of segments (graphs) and F the number
of features; segment g has the rows ``ptr[g]:ptr[g + 1]``.
"""

from sopool.ops.backends import backend
from sopool.ops.message_passing.pairs import Pairs, find_pairs
from sopool.ops.segment.attend import segment_attend
from sopool.ops.segment.bilinear import segment_bilinear
from sopool.ops.segment.covariance import segment_covariance
from sopool.ops.segment.first_order import segment_mean, segment_softmax, segment_spread, segment_sum
from sopool.ops.segment.gram import segment_apply, segment_gram
from sopool.ops.segment.pairs import count_pairs, segment_pairs, segment_walks, share_pairs

__all__ = [
    "Pairs",
    "backend",
    "count_pairs",
    "find_pairs",
    "segment_apply",
    "segment_attend",
    "segment_bilinear",
    "segment_covariance",
    "segment_gram",
    "segment_mean",
    "segment_pairs",
    "segment_softmax",
    "segment_spread",
    "segment_sum",
    "segment_walks",
    "share_pairs",
]
