"""Graphs whose numbers are so large that the models' own are no longer finite."""

from torch import Tensor

from sopool.data.errors import DataError
from sopool.data.store import PackedGraphs


def overflows(values: Tensor) -> list[int]:
    """The graphs for which some model's ``values`` [M, G, w] are not finite."""
    graphs: list[int] = (~values.isfinite()).any(2).any(0).nonzero().flatten().tolist()
    return graphs


def reason(values: str) -> str:
    """What to say of such a graph; ``values``: scores, embeddings."""
    return f"its numbers are too large for the model, whose {values} of it are not finite: scale or remove it."


def finite(values: Tensor, store: PackedGraphs, called: str) -> Tensor:
    """The ``values`` [M, G, w] of some graphs; a ``DataError`` that names the first for which they are not finite."""
    graphs = overflows(values)
    if graphs:
        raise DataError(f"graph {graphs[0]}: {reason(called)} Found {largest(store[graphs[0]])}.")
    return values


def largest(graph: PackedGraphs) -> str:
    """How large the numbers of a graph are."""
    if graph.node_attributes is None or not graph.node_attributes.numel():
        return f"{graph.num_nodes:,} nodes without attributes"
    return f"attributes of up to {float(graph.node_attributes.abs().max()):g}"
