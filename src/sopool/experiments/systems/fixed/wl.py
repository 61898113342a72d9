r"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., JMLR 12, 2011), for an SVM or a ridge regression.

With :math:`c_i(G)` the number of nodes of each color that graph G has after i rounds of color refinement,

.. math:: k_h(G, G') = \sum_{i=0}^{h} \langle c_i(G), c_i(G') \rangle,

or, normalized, :math:`k_h(G, G') / \sqrt{k_h(G, G) k_h(G', G')}`. Colors that only one graph has do not contribute to
the kernel of two graphs, so refining all graphs together makes no difference.
"""

from typing import Any

from sopool.data.analysis.refinement import refine
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.registry import fixed
from sopool.experiments.systems.views import counts

ITERATIONS = 5
"""The largest number of rounds of refinement."""


@fixed(
    "wl",
    sees=f"the colors of up to {ITERATIONS} rounds of refinement (Weisfeiler-Lehman subtree)",
    settings=[{"iterations": iterations} for iterations in range(ITERATIONS + 1)],
    normalize="either",
    paper="Shervashidze et al., 2011",
    cost="h E + G^2",
    control=True,
)
def subtree_counts(store: PackedGraphs, iterations: int) -> Any:
    """Return the number of nodes of each color after each round ``[G, colors]``.

    Node labels are the initial colors, and without labels one round gives the degrees.
    """
    from scipy.sparse import hstack

    colours = refine(store, iterations, use_labels=False, initial=store.node_labels)
    return hstack([counts(store, some) for some in colours], format="csr")
