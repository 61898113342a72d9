"""Graphs whose numbers are so large that the models' own are no longer finite."""

from torch import Tensor

from sopool.data.errors import DataError
from sopool.data.store import PackedGraphs


def overflows(values: Tensor, store: PackedGraphs) -> dict[int, str]:
    """The graphs for which some model's ``values`` [M, G, w] are not finite, and how large their attributes are."""
    graphs = (~values.isfinite()).any(2).any(0).nonzero().flatten().tolist()
    return {graph: _largest(store[graph]) for graph in graphs}


def reason(values: str) -> str:
    """What to say of such a graph; ``values``: scores, embeddings."""
    return f"its numbers are too large for the model, whose {values} of it are not finite: scale or remove it."


def finite(values: Tensor, store: PackedGraphs, called: str) -> Tensor:
    """The ``values`` [M, G, w] of some graphs; a ``DataError`` that names the first for which they are not finite."""
    for graph, largest in overflows(values, store).items():
        raise DataError(f"graph {graph}: {reason(called)} Found {largest}.")
    return values


def _largest(graph: PackedGraphs) -> str:
    if graph.node_attributes is None:
        return f"{graph.num_nodes:,} nodes without attributes"
    return f"attributes of up to {float(graph.node_attributes.abs().max()):g}"
