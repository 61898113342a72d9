"""Readouts by the names that the command line and the configs use."""

import difflib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch_geometric.nn.aggr import Aggregation

from sopool.nn.attentional import AttentionalSecondOrderAggregation
from sopool.nn.bilinear import BilinearSecondOrderAggregation
from sopool.nn.covariance import CovarianceAggregation
from sopool.nn.first_order import MaxAggregation, MeanAggregation, SumAggregation
from sopool.nn.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.second_order import SecondOrderAggregation
from sopool.nn.softmax_attention import SoftmaxAttentionAggregation

READOUTS: dict[str, Callable[..., Aggregation]] = {
    "sum": SumAggregation,
    "mean": MeanAggregation,
    "max": MaxAggregation,
    "sopool": SecondOrderAggregation,
    "sopool-bimap": BilinearSecondOrderAggregation,
    "sopool-attn": AttentionalSecondOrderAggregation,
    "sopool-m-attn": partial(MultiHeadSecondOrderAggregation, heads=8),
    "covpool": partial(CovarianceAggregation, rank=32),
    "attnpool": SoftmaxAttentionAggregation,
}


def make_readout(name: str, channels: int, **options: Any) -> Aggregation:
    """The readout called ``name`` for node features of width ``channels``, with its class's own options."""
    if name not in READOUTS:
        close = difflib.get_close_matches(name, READOUTS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no readout {name!r}.{hint} Known: {', '.join(READOUTS)}.")
    make = READOUTS[name]
    if "channels" in inspect.signature(make).parameters:
        return make(channels, **options)
    return make(**options)
