"""Readouts and poolings by the names that the command line and the configs use."""

import difflib
import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from torch_geometric.nn.aggr import Aggregation

from sopool.nn.aggr.attentional import AttentionalSecondOrderAggregation
from sopool.nn.aggr.bilinear import BilinearSecondOrderAggregation
from sopool.nn.aggr.covariance import CovarianceAggregation
from sopool.nn.aggr.first_order import MaxAggregation, MeanAggregation, SumAggregation
from sopool.nn.aggr.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.aggr.second_order import SecondOrderAggregation
from sopool.nn.aggr.softmax_attention import SoftmaxAttentionAggregation
from sopool.nn.aggr.sort import SortConvolutionAggregation
from sopool.nn.pool.base import GraphPooling, PooledReadout, Way
from sopool.nn.pool.diff import DiffPooling
from sopool.nn.pool.eigen import EigenPooling
from sopool.nn.pool.multi_head import MultiHeadSecondOrderPooling
from sopool.nn.pool.self_attention import SelfAttentionPooling
from sopool.nn.pool.top_k import TopKPooling

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
    "sortpool": SortConvolutionAggregation,
}
"""They see the nodes of a graph, not its edges: PyG's ``Aggregation`` contract."""

SHIPPED = dict(READOUTS)
"""The package's own; a user may put others into :data:`READOUTS`."""

POOLINGS: dict[str, Callable[..., GraphPooling]] = {
    "sopool-m-attn": partial(MultiHeadSecondOrderPooling, heads=16, normalize="adjacency"),
    "diffpool": partial(DiffPooling, clusters=16),
    "topkpool": TopKPooling,
    "sagpool": SelfAttentionPooling,
    "eigenpool": partial(EigenPooling, size=4),
}
"""Layers that make graphs smaller, for the blocks of a hierarchy."""

NODES_OPTION = {"sopool-m-attn": "heads", "diffpool": "clusters"}
"""The option that fixes the number of nodes left."""

GRAPH_READOUTS: dict[str, tuple[Callable[..., GraphPooling], Way]] = {
    "topkpool": (TopKPooling, "max-mean"),
    "sagpool": (SelfAttentionPooling, "max-mean"),
    "diffpool": (DiffPooling, "concat"),
    "eigenpool": (partial(EigenPooling, vectors=8), "concat"),
}
"""Readouts by way of a smaller graph, and how a vector is made of it."""


def make_readout(name: str, channels: int, **options: Any) -> Aggregation | PooledReadout:
    """The readout called ``name`` for node features of width ``channels``, with its class's own options.

    Those of :data:`GRAPH_READOUTS` have ``needs_graph``: they are called with the graphs, not with ``ptr`` alone.
    """
    check_name("readout", name, (*READOUTS, *GRAPH_READOUTS))
    if name in GRAPH_READOUTS:
        pooling, way = GRAPH_READOUTS[name]
        return PooledReadout(pooling(channels, **options), way)
    make = READOUTS[name]
    if "channels" in inspect.signature(make).parameters:
        return make(channels, **options)
    return make(**options)


def make_pooling(name: str, channels: int, **options: Any) -> GraphPooling:
    """The pooling layer called ``name`` for node features of width ``channels``."""
    check_name("pooling layer", name, POOLINGS)
    return POOLINGS[name](channels, **options)


def default_options(name: str, blocks: bool) -> dict[str, Any]:
    """Return the options of a pooling with the values they have where none are given, by name and without channels.

    These are the defaults of its class, overlaid by what the registry presets. An option that must be given has none.

    Args:
        name: The name of a readout, or of a pooling layer.
        blocks: Whether the pooling layer in the blocks of a hierarchy is meant, not the readout of a flat network.
    """
    make: Callable[..., Any]
    if blocks:
        check_name("pooling layer", name, POOLINGS)
        make = POOLINGS[name]
    else:
        check_name("readout", name, (*READOUTS, *GRAPH_READOUTS))
        make = GRAPH_READOUTS[name][0] if name in GRAPH_READOUTS else READOUTS[name]
    options = inspect.signature(make).parameters.values()
    return {
        option.name: option.default
        for option in options
        if option.name != "channels" and option.default is not option.empty
    }


def make_blocks(name: str, channels: int, blocks: int, options: dict[str, Any]) -> list[GraphPooling]:
    """The poolings of a hierarchy, each after a layer of width ``channels``.

    Where the number of nodes is fixed it is halved from block to block, as the other poolings do by their ratio.
    """
    if not 1 <= blocks <= 3:
        raise ValueError(f"blocks={blocks}: a hierarchy has 1 to 3.")
    first = make_pooling(name, channels, **options)
    option = NODES_OPTION.get(name)
    nodes = first.nodes
    if option is None or nodes is None:
        return [first, *(make_pooling(name, channels, **options) for _ in range(blocks - 1))]
    numbers = [max(2, -(-nodes // 2**block)) for block in range(1, blocks)]
    return [first, *(make_pooling(name, channels, **(options | {option: number})) for number in numbers)]


def check_name(kind: str, name: str, known: Collection[str]) -> None:
    """Raise unless ``name`` is among those ``known``, with a guess at what was meant."""
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no {kind} {name!r}.{hint} Known: {', '.join(known)}.")
