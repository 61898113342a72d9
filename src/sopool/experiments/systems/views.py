"""The parts of a graph that controls use, and the scikit-learn models that learn from them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sopool.data.edges import out_degrees
from sopool.data.features.encoders import has_node_labels
from sopool.data.graphs import PackedGraphs
from sopool.objectives import Objective

Choice = dict[str, Any]
"""The chosen hyperparameters by name, such as ``{"iterations": 3, "normalised": True, "C": 10.0}``."""
LINEAR = (0.01, 0.1, 1.0, 10.0)
"""Values of C, the inverse strength of the penalty, for linear models of scaled features."""


class View(Protocol):
    """One representation of all graphs of a data set."""

    @property
    def setting(self) -> Choice:
        """What distinguishes it from other views of its control."""

    @property
    def choices(self) -> Sequence[Choice]:
        """The hyperparameters that its models may have."""

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Train on some graphs with their ``labels``; return scores ``[wanted, classes]`` of others for each choice."""

    def numbers(
        self, train: np.ndarray, values: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Train on some graphs with their ``values`` ``[train, T]``; predict others ``[wanted, T]`` for each choice."""


Views = Iterable[View]
"""A collection that is iterated more than once; views that are too large to keep are made again each time."""


@dataclass(frozen=True)
class Prior:
    """No representation: only the frequency of each class, or the mean of each number, is used."""

    setting: Choice = field(default_factory=dict)
    choices: Sequence[Choice] = ({},)

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return the logarithms of the class frequencies."""
        from sklearn.dummy import DummyClassifier

        model = DummyClassifier(strategy="prior").fit(train[:, None], labels)
        return [model.predict_log_proba(wanted[:, None]) for _ in choices]

    def numbers(
        self, train: np.ndarray, values: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return the mean of each target."""
        from sklearn.dummy import DummyRegressor

        model = DummyRegressor().fit(train[:, None], values)
        return [model.predict(wanted[:, None]).reshape(len(wanted), -1) for _ in choices]


@dataclass(frozen=True)
class Features:
    """The features of each graph ``[G, F]``, dense or sparse, for a logistic or a ridge regression."""

    matrix: Any
    setting: Choice = field(default_factory=dict)
    choices: Sequence[Choice] = tuple({"C": c} for c in LINEAR)

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return the log-odds; features are scaled by the statistics of the training graphs."""
        from sklearn.linear_model import LogisticRegression

        seen, others = self._scaled(train, wanted)
        models = (LogisticRegression(**choice, max_iter=10_000).fit(seen, labels) for choice in choices)
        return [by_class(model.decision_function(others)) for model in models]

    def numbers(
        self, train: np.ndarray, values: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return the predictions of a ridge regression, whose penalty is 1 / C."""
        from sklearn.linear_model import Ridge

        seen, others = self._scaled(train, wanted)
        models = (Ridge(alpha=1 / choice["C"]).fit(seen, values) for choice in choices)
        return [model.predict(others) for model in models]

    def _scaled(self, train: np.ndarray, wanted: np.ndarray) -> tuple[Any, Any]:
        from scipy.sparse import issparse
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler(with_mean=not issparse(self.matrix)).fit(self.matrix[train])
        return scaler.transform(self.matrix[train]), scaler.transform(self.matrix[wanted])


def outputs_of(
    view: View,
    objective: Objective,
    train: np.ndarray,
    truth: np.ndarray,
    wanted: np.ndarray,
    choices: Sequence[Choice],
) -> list[np.ndarray]:
    """Train on some graphs with their true values; return the outputs ``[wanted, W]`` of others for each choice.

    Each label has a model of its own. Graphs without a target's true value are left out of its training.
    """
    if objective.task == "classification":
        return view.scores(train, truth, wanted, choices)
    outputs = [np.zeros((len(wanted), objective.width)) for _ in choices]
    known = ~np.isnan(truth)
    alike: dict[bytes, list[int]] = defaultdict(list)
    for target in range(objective.width):
        alike[known[:, target].tobytes()].append(target)
    for targets in alike.values():
        rows = known[:, targets[0]]
        if rows.any():
            learn = _numbers if objective.task == "regression" else _labels
            each = learn(view, train[rows], truth[np.ix_(rows, targets)], wanted, choices)
            for output, found in zip(outputs, each, strict=True):
                output[:, targets] = found
    return outputs


def _numbers(
    view: View, train: np.ndarray, values: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
) -> list[np.ndarray]:
    return [found.reshape(len(wanted), -1) for found in view.numbers(train, values, wanted, choices)]


def _labels(
    view: View, train: np.ndarray, values: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
) -> list[np.ndarray]:
    """Return the log-odds of each label; of one that all training graphs have or lack, by the rule of succession."""
    columns = []
    for labels in values.T:
        ones = labels.sum()
        if 0 < ones < len(labels):
            scores = view.scores(train, labels.astype(np.int64), wanted, choices)
            columns.append([logits[:, 1] - logits[:, 0] for logits in scores])
        else:
            odds = np.log((ones + 1) / (len(labels) - ones + 1))
            columns.append([np.full(len(wanted), odds) for _ in choices])
    return [np.stack(found, axis=1) for found in zip(*columns, strict=True)]


def by_class(decision: np.ndarray) -> np.ndarray:
    """Return scores of each class ``[n, classes]``; for two classes scikit-learn gives those of the second ``[n]``."""
    return np.stack([-decision / 2, decision / 2], axis=1) if decision.ndim == 1 else decision


def no_view(store: PackedGraphs) -> Views:
    """Return the view of the control that uses nothing of a graph."""
    return [Prior()]


def sizes_view(store: PackedGraphs) -> Views:
    """Return the numbers of nodes and edges of each graph and their logarithms ``[G, 4]``."""
    numbers = np.stack([store.node_ptr.diff().numpy(), store.edge_ptr.diff().numpy()], axis=1).astype(np.float64)
    return [Features(np.concatenate([numbers, np.log1p(numbers)], axis=1))]


def histogram_view(store: PackedGraphs) -> Views:
    """Return the number of nodes with each label, or with each degree if there are no informative labels."""
    labels = store.node_labels if has_node_labels(store) else None
    values = out_degrees(store) if labels is None else labels
    return [Features(counts(store, np.unique(values.numpy(), return_inverse=True)[1]))]


def counts(store: PackedGraphs, codes: np.ndarray) -> Any:
    """Count the nodes of each graph with each code: ``[N]``, numbered from 0 -> sparse ``[G, codes]``, float64."""
    from scipy.sparse import csr_array

    owner = np.repeat(np.arange(len(store)), store.sizes.numpy())
    shape = (len(store), int(codes.max(initial=0)) + 1)
    return csr_array((np.ones(len(codes)), (owner, codes)), shape=shape)
