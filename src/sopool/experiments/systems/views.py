"""What a control sees of the graphs, and the scikit-learn model that learns from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sopool.data.edges import out_degrees
from sopool.data.features.encoders import has_node_labels
from sopool.data.graphs import PackedGraphs

Choice = dict[str, Any]
"""What was chosen, by name: ``{"iterations": 3, "normalised": True, "C": 10.0}``."""
LINEAR = (0.01, 0.1, 1.0, 10.0)
"""Values of C, the weight of the errors against that of the penalty, for linear models of scaled features."""


class View(Protocol):
    """One way to see all graphs of a data set."""

    @property
    def setting(self) -> Choice:
        """What tells it from the other views of its control."""

    @property
    def choices(self) -> Sequence[Choice]:
        """What its models may differ in."""

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Learn from some graphs with their ``labels``, score others: [wanted, classes] for each of the ``choices``."""


Views = Iterable[View]
"""To be gone through more than once; each time the views are made anew, if they are too large to be kept."""


@dataclass(frozen=True)
class Prior:
    """Nothing: how frequent each class is among the training graphs."""

    setting: Choice = field(default_factory=dict)
    choices: Sequence[Choice] = ({},)

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Logarithms of the frequencies."""
        from sklearn.dummy import DummyClassifier

        model = DummyClassifier(strategy="prior").fit(train[:, None], labels)
        return [model.predict_log_proba(wanted[:, None]) for _ in choices]


@dataclass(frozen=True)
class Features:
    """Numbers of each graph [G, d], dense or sparse, for a logistic regression."""

    matrix: Any
    setting: Choice = field(default_factory=dict)
    choices: Sequence[Choice] = tuple({"C": c} for c in LINEAR)

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Columns scaled by what the training graphs say; then log-odds."""
        from scipy.sparse import issparse
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler(with_mean=not issparse(self.matrix)).fit(self.matrix[train])
        seen = scaler.transform(self.matrix[train])
        others = scaler.transform(self.matrix[wanted])
        models = (LogisticRegression(**choice, max_iter=10_000).fit(seen, labels) for choice in choices)
        return [by_class(model.decision_function(others)) for model in models]


def by_class(decision: np.ndarray) -> np.ndarray:
    """Scores of each class [n, classes]; scikit-learn gives those of the second class alone [n] where there are two."""
    return np.stack([-decision / 2, decision / 2], axis=1) if decision.ndim == 1 else decision


def no_view(store: PackedGraphs) -> Views:
    """Of the control that sees nothing."""
    return [Prior()]


def sizes_view(store: PackedGraphs) -> Views:
    """Nodes and edges of each graph, and their logarithms [G, 4]."""
    numbers = np.stack([store.node_ptr.diff().numpy(), store.edge_ptr.diff().numpy()], axis=1).astype(np.float64)
    return [Features(np.concatenate([numbers, np.log1p(numbers)], axis=1))]


def histogram_view(store: PackedGraphs) -> Views:
    """How many nodes of each label a graph has, or of each degree where there are no labels that say anything."""
    labels = store.node_labels if has_node_labels(store) else None
    values = out_degrees(store) if labels is None else labels
    return [Features(counts(store, np.unique(values.numpy(), return_inverse=True)[1]))]


def counts(store: PackedGraphs, codes: np.ndarray) -> Any:
    """How many nodes of each graph have each code: [N], numbers from 0 -> sparse [G, codes], float64."""
    from scipy.sparse import csr_array

    owner = np.repeat(np.arange(len(store)), store.sizes.numpy())
    shape = (len(store), int(codes.max(initial=0)) + 1)
    return csr_array((np.ones(len(codes)), (owner, codes)), shape=shape)
