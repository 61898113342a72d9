"""Readouts and pooling layers for PyTorch Geometric."""

from importlib import import_module
from pkgutil import iter_modules

from sopool.nn import aggr, pool
from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.pair_distances import AddPairs
from sopool.nn.pool.base import GraphPooling, PooledReadout
from sopool.nn.pool.output import PoolingOutput
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS, make_pooling, make_readout, pooling, readout

# isort: off
# Importing a class registers it, so these lines determine the order of READOUTS, of POOLINGS and of `sopool pools`.
from sopool.nn.aggr.sum import SumAggregation
from sopool.nn.aggr.mean import MeanAggregation
from sopool.nn.aggr.max import MaxAggregation
from sopool.nn.aggr.second_order import SecondOrderAggregation
from sopool.nn.aggr.bilinear import BilinearSecondOrderAggregation
from sopool.nn.aggr.attentional import AttentionalSecondOrderAggregation
from sopool.nn.aggr.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.aggr.covariance import CovarianceAggregation
from sopool.nn.aggr.softmax_attention import SoftmaxAttentionAggregation
from sopool.nn.aggr.sort import SortConvolutionAggregation
from sopool.nn.aggr.pairs import PairSecondOrderAggregation
from sopool.nn.pool.multi_head import MultiHeadSecondOrderPooling
from sopool.nn.pool.top_k import TopKPooling
from sopool.nn.pool.self_attention import SelfAttentionPooling
from sopool.nn.pool.diff import DiffPooling
from sopool.nn.pool.eigen import EigenPooling
# isort: on

# Import the remaining files, which registers their classes after those above.
for package in (aggr, pool):
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
del module, package

__all__ = [
    "GRAPH_READOUTS",
    "POOLINGS",
    "READOUTS",
    "AddPairs",
    "AttentionalSecondOrderAggregation",
    "BilinearSecondOrderAggregation",
    "CovarianceAggregation",
    "DiffPooling",
    "EigenPooling",
    "GraphPooling",
    "MaxAggregation",
    "MeanAggregation",
    "MultiHeadSecondOrderAggregation",
    "MultiHeadSecondOrderPooling",
    "PairSecondOrderAggregation",
    "PooledReadout",
    "PoolingOutput",
    "SecondOrderAggregation",
    "SegmentAggregation",
    "SelfAttentionPooling",
    "SoftmaxAttentionAggregation",
    "SortConvolutionAggregation",
    "SumAggregation",
    "TopKPooling",
    "make_pooling",
    "make_readout",
    "pooling",
    "readout",
]
