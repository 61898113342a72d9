"""Check the arguments of pooling layers in PyG's format, and sort the nodes by graph."""

import torch
from torch import Tensor

from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.segments import check_edges, find_segments

FOURTH = "batch is the fourth argument, as in PyG."


def sorted_graphs(
    layer: torch.nn.Module, x: Tensor, edges: Edges, batch: Tensor | None, batch_size: int | None
) -> tuple[Tensor, GraphStructure, Tensor | None]:
    """Return features and graphs with the nodes sorted by graph.

    Args:
        layer: The pooling layer, which has a number of ``channels``.
        x: Node features ``[N, F]``.
        edges: The edges.
        batch: The graph of each node ``[N]``; None if all belong to one graph.
        batch_size: The number of graphs, if it is known.

    Returns:
        The features, the graphs, and the permutation ``[N]`` that sorted the nodes; None if they were sorted.
    """
    _check_features(layer, x)
    _check_edges(edges)
    if batch is None:
        batch = edges.edge_index.new_zeros(x.shape[0])
        batch_size = 1 if batch_size is None else batch_size
    _check_batch(x, batch, batch_size)
    segments = find_segments(x.shape[0], x.device, index=batch, dim_size=batch_size)
    check_edges(edges.edge_index, batch)
    if segments.order is not None:
        places = torch.arange(x.shape[0], device=x.device)
        edges = edges.renumbered(torch.empty_like(segments.order).index_copy(0, segments.order, places))
    return segments.sort(x), GraphStructure(segments.ptr, edges), segments.order


def resembles_batch(third: Tensor, x: Tensor) -> bool:
    """Return whether a third argument could be PyG's ``batch``, judged by its shape and type."""
    return third.shape == x.shape[:1] and not third.is_floating_point()


def _check_features(layer: torch.nn.Module, x: Tensor) -> None:
    if x.dim() != 2 or x.shape[1] != layer.channels:
        raise ValueError(f"x has shape {list(x.shape)}: {layer!r} expects [nodes, {layer.channels}].")
    if not x.is_floating_point():
        raise TypeError(f"x has dtype {x.dtype}: pass floating-point features, for example x.float().")


def _check_edges(edges: Edges) -> None:
    """Raise unless the edges have valid shapes and types."""
    edge_index, weight, attr = edges
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
        raise ValueError(
            f"edge_index has dtype {edge_index.dtype} and shape {list(edge_index.shape)}: it must be integers of "
            "shape [2, edges]."
        )
    number = edge_index.shape[1]
    if weight is not None and weight.shape != (number,):
        raise ValueError(
            f"edge_weight has shape {list(weight.shape)} for {number} edges: it must have one number per edge. {FOURTH}"
        )
    if attr is not None and (attr.dim() == 0 or attr.shape[0] != number):
        raise ValueError(
            f"edge_attr has shape {list(attr.shape)} for {number} edges: it must have one row per edge. {FOURTH}"
        )


def _check_batch(x: Tensor, batch: Tensor, batch_size: int | None) -> None:
    """Raise unless ``batch`` has one entry per node and ``batch_size`` is a number."""
    if not isinstance(batch, Tensor):
        raise TypeError(f"batch is a {type(batch).__name__}: pass a tensor, the graph of each node. {FOURTH}")
    if isinstance(batch_size, Tensor):
        raise TypeError(f"batch_size is a tensor: it must be the number of graphs. {FOURTH}")
    if batch.shape != x.shape[:1]:
        shape = list(batch.shape)
        raise ValueError(f"batch has shape {shape} for {x.shape[0]} nodes: it must have one entry per node.")
