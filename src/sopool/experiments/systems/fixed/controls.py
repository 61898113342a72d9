"""Controls: systems that use little of a graph. A network that is no better has learned no more than they see."""

from typing import Any

import numpy as np

from sopool.data.edges import out_degrees
from sopool.data.features.encoders import has_node_labels
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.registry import fixed
from sopool.experiments.systems.views import counts


@fixed("majority", sees="nothing", learner="prior", paper="-", cost="G", control=True)
def nothing(store: PackedGraphs) -> np.ndarray:
    """Return no features ``[G, 0]``."""
    return np.zeros((len(store), 0))


@fixed("size", sees="the numbers of nodes and edges", learner="logistic", paper="-", cost="G", control=True)
def sizes(store: PackedGraphs) -> np.ndarray:
    """Return the numbers of nodes and edges of each graph and their logarithms ``[G, 4]``."""
    numbers = np.stack([store.node_ptr.diff().numpy(), store.edge_ptr.diff().numpy()], axis=1).astype(np.float64)
    return np.concatenate([numbers, np.log1p(numbers)], axis=1)


@fixed(
    "histogram",
    sees="how many nodes have each label, else each degree",
    learner="logistic",
    paper="-",
    version=2,
    cost="N",
    control=True,
)
def histogram(store: PackedGraphs) -> Any:
    """Return the number of nodes with each label, or with each degree if there are no informative labels."""
    labels = store.node_labels if has_node_labels(store) else None
    values = out_degrees(store) if labels is None else labels
    return counts(store, np.unique(values.numpy(), return_inverse=True)[1])
