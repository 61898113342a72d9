"""Readouts and pooling layers for PyTorch Geometric."""

from sopool.nn.aggr.attentional import AttentionalSecondOrderAggregation
from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.bilinear import BilinearSecondOrderAggregation
from sopool.nn.aggr.covariance import CovarianceAggregation
from sopool.nn.aggr.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.aggr.second_order import SecondOrderAggregation
from sopool.nn.aggr.softmax_attention import SoftmaxAttentionAggregation
from sopool.nn.aggr.sort import SortConvolutionAggregation
from sopool.nn.pool.base import GraphPooling, Pooled, PooledReadout
from sopool.nn.pool.diff import DiffPooling
from sopool.nn.pool.eigen import EigenPooling
from sopool.nn.pool.multi_head import MultiHeadSecondOrderPooling, PooledGraphs
from sopool.nn.pool.self_attention import SelfAttentionPooling
from sopool.nn.pool.top_k import TopKPooling
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS, make_pooling, make_readout

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
