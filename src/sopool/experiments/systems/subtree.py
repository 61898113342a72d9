r"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., JMLR 12, 2011), for an SVM or a ridge regression.

With :math:`c_i(G)` the number of nodes of each color that graph G has after i rounds of color refinement,

.. math:: k_h(G, G') = \sum_{i=0}^{h} \langle c_i(G), c_i(G') \rangle,

or, normalized, :math:`k_h(G, G') / \sqrt{k_h(G, G) k_h(G', G')}`. Colors that only one graph has do not contribute to
the kernel of two graphs, so refining all graphs together makes no difference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sopool.data.analysis.refinement import refine
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.views import Choice, View, Views, by_class, counts

ITERATIONS = 5
"""The largest number of rounds of refinement."""
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
"""Values of C for a kernel whose mean diagonal entry over the training graphs is 1."""
ROWS = 512
"""The number of rows of the matrix that are computed at once, which bounds the memory."""


@dataclass(frozen=True)
class Kernel:
    """The kernel of all pairs of graphs."""

    matrix: np.ndarray
    """The kernel matrix ``[G, G]``."""
    setting: Choice
    choices: Sequence[Choice] = tuple({"C": c} for c in STRENGTHS)

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return the decision values of each class."""
        from sklearn.svm import SVC

        seen = self._between(train, train)
        others = self._between(wanted, train)
        unit = seen.trace() / len(train) or 1.0
        found = []
        for choice in choices:
            # The random state does not change the result; without one, scikit-learn uses NumPy's global generator.
            model = SVC(C=choice["C"] / unit, kernel="precomputed", random_state=0).fit(seen, labels)
            found.append(by_class(model.decision_function(others)))
        return found

    def numbers(
        self, train: np.ndarray, values: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return the predictions of a kernel ridge regression, whose penalty is 1 / C."""
        from sklearn.kernel_ridge import KernelRidge

        seen = self._between(train, train)
        others = self._between(wanted, train)
        unit = seen.trace() / len(train) or 1.0
        mean = values.mean(0)
        models = (KernelRidge(alpha=unit / choice["C"], kernel="precomputed") for choice in choices)
        return [model.fit(seen, values - mean).predict(others) + mean for model in models]

    def _between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        part: np.ndarray = self.matrix[np.ix_(rows, columns)]
        if self.setting["normalised"]:
            own = np.sqrt(self.matrix.diagonal())
            own = np.where(own > 0, own, 1.0)  # a graph without nodes has kernel 0 with every graph, itself included
            part /= own[rows, None]
            part /= own[columns]
        return part


class Kernels:
    """The kernels of 0 to ``iterations`` rounds, normalized and not; only one matrix is in memory at a time."""

    def __init__(self, store: PackedGraphs, iterations: int = ITERATIONS) -> None:
        colours = refine(store, iterations, use_labels=False, initial=store.node_labels)
        self.counts = [counts(store, some) for some in colours]

    def __iter__(self) -> Iterator[View]:
        matrix = np.zeros((self.counts[0].shape[0],) * 2)
        for iterations, some in enumerate(self.counts):
            other = some.T.tocsr()
            for first in range(0, len(matrix), ROWS):
                rows = slice(first, first + ROWS)
                matrix[rows] += (some[rows] @ other).toarray()
            for normalised in (True, False):
                yield Kernel(matrix, {"iterations": iterations, "normalised": normalised})


def subtree_views(store: PackedGraphs) -> Views:
    """Return the kernels; node labels are the initial colors, and without labels one round gives the degrees."""
    return Kernels(store)
