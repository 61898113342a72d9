"""Views: one representation of all graphs, normalized or not, with the learner that learns from it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.learners import LEARNERS, Inputs, Learner
from sopool.objectives import Objective

Choice = dict[str, Any]
"""The chosen hyperparameters by name, such as ``{"iterations": 3, "normalised": True, "C": 10.0}``."""
ROWS = 512
"""The number of rows of a kernel matrix that are computed at once, which bounds the memory beside the matrix."""


@dataclass(frozen=True)
class Gram:
    """A representation of graphs by their kernel, a symmetric and positive semidefinite matrix.

    Examples:
        >>> import numpy as np
        >>> from sopool.experiments.systems import Gram
        >>> Gram(np.eye(3)).matrix.shape
        (3, 3)
    """

    matrix: np.ndarray
    """The kernel of all pairs of graphs ``[G, G]``."""


@dataclass(frozen=True, eq=False)
class Represented:
    """All graphs of a data set in one representation."""

    found: Any
    """Features ``[G, F]``, dense or sparse, or a :class:`Gram`."""

    @cached_property
    def matrix(self) -> np.ndarray:
        """The kernel matrix ``[G, G]``: the inner products, if there are features."""
        return self.found.matrix if isinstance(self.found, Gram) else inner_products(self.found)

    def inputs(self, learner: Learner, normalised: bool, train: np.ndarray, wanted: np.ndarray) -> Inputs:
        """Return what a learner gets; ``normalised`` divides features by their norms, and kernels accordingly."""
        if learner.takes == "nothing":
            return Inputs(train[:, None], wanted[:, None])
        if learner.takes == "kernel":
            own = self.matrix.diagonal()[wanted]
            own = (own > 0).astype(np.float64) if normalised else own
            return Inputs(self._between(train, train, normalised), self._between(wanted, train, normalised), own)
        if isinstance(self.found, Gram):
            raise ValueError(f"the learner {learner.name!r} needs features, but the representation is a Gram matrix.")
        features = self.unit_rows if normalised else self.found
        return Inputs(features[train], features[wanted])

    @cached_property
    def unit_rows(self) -> Any:
        """The features, divided by their norms."""
        from sklearn.preprocessing import normalize

        return normalize(self.found)

    def _between(self, rows: np.ndarray, columns: np.ndarray, normalised: bool) -> np.ndarray:
        part: np.ndarray = self.matrix[np.ix_(rows, columns)]
        if normalised:
            own = np.sqrt(self.matrix.diagonal())
            own = np.where(own > 0, own, 1.0)  # a graph without nodes has kernel 0 with every graph, itself included
            part /= own[rows, None]
            part /= own[columns]
        return part


def inner_products(features: Any) -> np.ndarray:
    """Return the inner products of all pairs of rows: features ``[G, F]``, dense or sparse -> ``[G, G]``."""
    from scipy.sparse import issparse

    if not issparse(features):
        dense = np.asarray(features, np.float64)
        found: np.ndarray = dense @ dense.T
        return found
    features = features.tocsr().astype(np.float64)
    other = features.T.tocsr()
    matrix = np.zeros((features.shape[0],) * 2)
    for first in range(0, len(matrix), ROWS):
        rows = slice(first, first + ROWS)
        matrix[rows] = (features[rows] @ other).toarray()
    return matrix


class View(Protocol):
    """One representation of all graphs of a data set, and a learner with several strengths."""

    @property
    def setting(self) -> Choice:
        """What distinguishes it from other views of its system."""

    @property
    def choices(self) -> Sequence[Choice]:
        """The strengths that its models may have, by the name of the strength."""

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


@dataclass(frozen=True, eq=False)
class FixedView:
    """A representation at one setting of a fixed system."""

    graphs: Represented
    learner: Learner
    strengths: tuple[float, ...]
    setting: Choice = field(default_factory=dict)
    normalised: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the learner."""
    seed: int = 0

    def prepare(self) -> None:
        """Compute what all folds share."""
        if self.learner.takes == "kernel":
            _ = self.graphs.matrix
        elif self.learner.takes == "features" and self.normalised:
            _ = self.graphs.unit_rows

    @property
    def choices(self) -> Sequence[Choice]:
        """The strengths by name; a single empty choice if the learner has none."""
        return [{self.learner.strength: value} if self.learner.strength else {} for value in self.strengths]

    def scores(
        self, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return scores of each class."""
        return list(self._learn(self.learner.classify, train, labels, wanted, choices))

    def numbers(
        self, train: np.ndarray, values: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> list[np.ndarray]:
        """Return predictions of each target."""
        return list(self._learn(self.learner.regress, train, values, wanted, choices))

    def _learn(
        self, fit: Any, train: np.ndarray, truth: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
    ) -> Any:
        inputs = self.graphs.inputs(self.learner, self.normalised, train, wanted)
        strengths = [choice.get(self.learner.strength, 1.0) for choice in choices]
        return fit(inputs, truth, strengths, self.seed, **self.options)


def view_of(graphs: Represented, learner: str, strengths: Sequence[float] | None = None, **given: Any) -> FixedView:
    """Return the view of a representation by a learner, at its default strengths unless others are given.

    ``given`` are further fields of :class:`FixedView`.
    """
    model = LEARNERS[learner]
    return FixedView(graphs, model, tuple(strengths or model.strengths), **given)


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
        return _classes(view, objective.width, train, truth, wanted, choices)
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


UNSEEN = 10.0
"""How far the score of a class without a training graph lies below the lowest score of the others."""


def _classes(
    view: View, width: int, train: np.ndarray, labels: np.ndarray, wanted: np.ndarray, choices: Sequence[Choice]
) -> list[np.ndarray]:
    """Return scores of every class, also of those that no training graph has: a given split may lack some."""
    there, codes = np.unique(labels, return_inverse=True)
    if len(there) == width:
        return view.scores(train, labels, wanted, choices)
    one = len(there) == 1
    found = [np.zeros((len(wanted), 1)) for _ in choices] if one else view.scores(train, codes, wanted, choices)
    outputs = []
    for scores in found:
        whole = np.repeat(scores.min(1, keepdims=True) - UNSEEN, width, axis=1)
        whole[:, there] = scores
        outputs.append(whole)
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


def counts(store: PackedGraphs, codes: np.ndarray) -> Any:
    """Count the nodes of each graph with each code: ``[N]``, numbered from 0 -> sparse ``[G, codes]``, float64."""
    from scipy.sparse import csr_array

    owner = np.repeat(np.arange(len(store)), store.sizes.numpy())
    shape = (len(store), int(codes.max(initial=0)) + 1)
    return csr_array((np.ones(len(codes)), (owner, codes)), shape=shape)
