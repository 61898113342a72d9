"""The random walk kernel with node labels (Vishwanathan et al., "Graph kernels", JMLR 11, 2010)."""

from typing import Any, Literal

import numpy as np

from sopool.data.analysis.label_walks import MOST_SEQUENCES, label_walks
from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.graphs import PackedGraphs
from sopool.errors import SettingError
from sopool.experiments.systems.fixed.graphlets import STRENGTHS
from sopool.experiments.systems.registry import fixed
from sopool.experiments.systems.views import counts

LENGTH = 4
"""The largest number of steps."""


def with_too_many_labels(store: PackedGraphs) -> str | None:
    """Refuse graphs with more labels than the sequences of which can be numbered."""
    most = int(MOST_SEQUENCES ** (1 / (LENGTH + 1)))
    return f"more than {most:,} node labels" if len(store.node_label_names) > most else None


@fixed(
    "rw",
    sees="the walks of up to 4 steps by the labels of their nodes",
    settings=[{"decay": "rule"}, *({"decay": 10.0**-power, "matching": True} for power in (3, 2, 1))],
    strengths=STRENGTHS,
    normalize="cosine",
    paper="Vishwanathan et al., 2010",
    transductive=True,
    cost="l E labels + G^2",
    refuses=with_too_many_labels,
)
def random_walks(
    store: PackedGraphs, decay: float | Literal["rule"] = "rule", length: int = LENGTH, matching: bool = False
) -> Any:
    r"""Return the numbers of walks with each sequence of labels, weighted by their length.

    The kernel :math:`1^T (I - \lambda A_\times)^{-1} 1` of the direct product of two labelled graphs is a sum of scalar
    products: with :math:`w_l(G)` the number of walks of l steps with each sequence of labels,

    .. math:: k(G, G') = n n' + \sum_{l \geq 1} \lambda^l \langle w_l(G), w_l(G') \rangle.

    The sum ends at ``length``; at the usual small :math:`\lambda` four steps are exact to about 1e-7. As in the code
    of the first comparisons, walks of no step count all pairs of nodes, even with different labels. ``matching=True``
    counts pairs with equal labels only.

    A small :math:`\lambda` halts the walk (Sugiyama and Borgwardt, NeurIPS 2015): at 1e-3, which published comparisons
    used, the kernel sees little but the sizes of graphs. The default is the rule of thumb of the authors' toolbox, the
    largest power of ten below :math:`1 / d_{max}^2`. Without node labels the kernel compares five numbers.

    Args:
        store: The graphs.
        decay: The weight :math:`\lambda` of a step. Default: ``"rule"``, the rule of thumb, which depends on the
            largest degree of all graphs.
        length: The largest number of steps. Default: 4.
        matching: Whether walks of no step count nodes with equal labels only. Default: False.

    Returns:
        Sparse ``[G, F]``.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.random_walks import random_walks
        >>> bond = pack([Graph(2, [(0, 1), (1, 0)], node_labels=["C", "O"])])
        >>> random_walks(bond, decay=0.25, length=1).toarray().tolist()
        [[2.0, 0.5, 0.5]]
    """
    from scipy.sparse import csr_array, hstack

    store = store.to("cpu")
    weight = rule_of_thumb(store) if decay == "rule" else float(decay)
    if not 0 < weight <= 1:
        raise SettingError(f"decay={decay}, expected a weight above 0 and at most 1.")
    none = csr_array(store.sizes.numpy().astype(np.float64)[:, None])
    if matching and store.node_labels is not None:
        none = counts(store, store.node_labels.numpy())
    steps = [weight ** (step / 2) * walks for step, walks in enumerate(label_walks(store, length), start=1)]
    return hstack([none, *steps], format="csr")


def rule_of_thumb(store: PackedGraphs) -> float:
    """Return the largest power of ten below ``1 / d^2``, where d is the largest degree, and at most 0.1.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.experiments.systems.fixed.random_walks import rule_of_thumb
        >>> rule_of_thumb(load("MUTAG"))
        0.01
    """
    largest = max((int(block.degrees.max(initial=0)) for block in simple_graphs(store.to("cpu"))), default=0)
    return 10.0 ** -len(str(max(largest, 1) ** 2))
