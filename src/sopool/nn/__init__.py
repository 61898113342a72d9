"""Readouts and pooling layers for PyTorch Geometric."""

from sopool.nn.attentional import AttentionalSecondOrderAggregation
from sopool.nn.base import SegmentAggregation
from sopool.nn.bilinear import BilinearSecondOrderAggregation
from sopool.nn.covariance import CovarianceAggregation
from sopool.nn.diff import DiffPooling
from sopool.nn.eigen import EigenPooling
from sopool.nn.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.multi_head_pooling import MultiHeadSecondOrderPooling, PooledGraphs
from sopool.nn.pooling import GraphPooling, Pooled, PooledReadout
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS, make_pooling, make_readout
from sopool.nn.second_order import SecondOrderAggregation
from sopool.nn.self_attention import SelfAttentionPooling
from sopool.nn.softmax_attention import SoftmaxAttentionAggregation
from sopool.nn.sort_pool import SortConvolutionAggregation
from sopool.nn.top_k import TopKPooling

__all__ = [
    "GRAPH_READOUTS",
    "POOLINGS",
    "READOUTS",
    "AttentionalSecondOrderAggregation",
    "BilinearSecondOrderAggregation",
    "CovarianceAggregation",
    "DiffPooling",
    "EigenPooling",
    "GraphPooling",
    "MultiHeadSecondOrderAggregation",
    "MultiHeadSecondOrderPooling",
    "Pooled",
    "PooledGraphs",
    "PooledReadout",
    "SecondOrderAggregation",
    "SegmentAggregation",
    "SelfAttentionPooling",
    "SoftmaxAttentionAggregation",
    "SortConvolutionAggregation",
    "TopKPooling",
    "make_pooling",
    "make_readout",
]
