"""Statistics of a graph for trees: sizes, degrees and labels, which see nothing of how nodes are arranged."""

import numpy as np

from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.features.encoders import has_node_labels
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.registry import fixed

DEGREES = 32
"""The number of columns of degrees; the last one has all larger degrees, too."""
SEES = "the numbers of nodes and edges, and how many nodes have each degree and label"


def statistics(store: PackedGraphs) -> np.ndarray:
    """Return the size of each graph, and how many nodes have each degree and each label.

    The columns are nodes, edges, mean degree and density; the numbers of nodes with 0, 1, ..., 30 neighbors and with
    more; and those with each label, if there are several. On PROTEINS, forests on them are no worse than most published
    networks under the same protocol, so a network that gains little has learned little about structure.

    Args:
        store: The graphs.

    Returns:
        Dense ``[G, 36 + labels]``.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.statistics import statistics
        >>> statistics(pack([Graph(3, [(0, 1), (1, 2)])]))[0, :7].round(2).tolist()
        [3.0, 2.0, 1.33, 0.67, 0.0, 2.0, 1.0]
    """
    store = store.to("cpu")
    degrees = np.concatenate([np.zeros(0, np.int64), *(block.degrees for block in simple_graphs(store))])
    nodes = store.sizes.numpy().astype(np.float64)
    ptr = store.node_ptr.numpy()
    ends = np.concatenate([[0], np.cumsum(degrees)])
    double = (ends[ptr[1:]] - ends[ptr[:-1]]).astype(np.float64)
    sizes = [nodes, double / 2, double / np.maximum(nodes, 1), double / np.maximum(nodes * (nodes - 1), 1)]
    columns = [np.stack(sizes, 1), _table(store, np.minimum(degrees, DEGREES - 1), DEGREES)]
    if has_node_labels(store):
        columns.append(_table(store, store.node_labels.numpy(), len(store.node_label_names)))  # type: ignore[union-attr]
    return np.concatenate(columns, 1)


def _table(store: PackedGraphs, codes: np.ndarray, kinds: int) -> np.ndarray:
    """Count the nodes of each graph with each code, dense ``[G, kinds]``."""
    owner = np.repeat(np.arange(len(store)), store.sizes.numpy())
    counted = np.bincount(owner * kinds + codes, minlength=len(store) * kinds)
    return counted.reshape(len(store), kinds).astype(np.float64)


for _learner in ("boosting", "forest"):
    fixed(f"statistics-{_learner}", sees=SEES, learner=_learner, paper="-", cost="E")(statistics)
