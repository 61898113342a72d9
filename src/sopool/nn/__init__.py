"""Readouts and pooling layers for PyTorch Geometric."""

from sopool.nn.attentional import AttentionalSecondOrderAggregation
from sopool.nn.base import SegmentAggregation
from sopool.nn.bilinear import BilinearSecondOrderAggregation
from sopool.nn.covariance import CovarianceAggregation
from sopool.nn.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.multi_head_pooling import MultiHeadSecondOrderPooling, PooledGraphs
from sopool.nn.registry import READOUTS, make_readout
from sopool.nn.second_order import SecondOrderAggregation
from sopool.nn.softmax_attention import SoftmaxAttentionAggregation

__all__ = [
    "READOUTS",
    "AttentionalSecondOrderAggregation",
    "BilinearSecondOrderAggregation",
    "CovarianceAggregation",
    "MultiHeadSecondOrderAggregation",
    "MultiHeadSecondOrderPooling",
    "PooledGraphs",
    "SecondOrderAggregation",
    "SegmentAggregation",
    "SoftmaxAttentionAggregation",
    "make_readout",
]
