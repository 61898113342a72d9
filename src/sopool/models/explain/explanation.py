"""Explanations for users: with names of features and nodes, for all models of an ensemble."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sopool.errors import check_name
from sopool.models.explain.shares import NodePairs, PooledGraph, margins

STRONGEST = 12
"""The number of pairs of nodes that are listed and drawn."""


class NamedPair(NamedTuple):
    """The contribution of a pair of features, or of a single feature, to what is explained.

    Examples:
        >>> pair = NamedPair(first="C", second="aromatic", value=0.5, node=3, model=0)
        >>> f"{pair.first} with {pair.second}: {pair.value:+.1f}, most at node {pair.node}"
        'C with aromatic: +0.5, most at node 3'
    """

    first: str
    """The name of the first feature."""
    second: str | None
    """The name of the second feature; ``None`` for a single feature."""
    value: float
    """The contribution to the margin of the class, or to the target."""
    node: int
    """The node that contributes most."""
    model: int
    """The model of the ensemble. Hidden features of different models are unrelated."""


class NodePair(NamedTuple):
    """The contribution of two nodes at a distance to what is explained, for ``sopool-pairs``.

    Each of the two nodes has one half of it as a part of its own contribution.

    Examples:
        >>> pair = NodePair(first=0, second=3, distance=2, value=0.5)
        >>> f"nodes {pair.first} and {pair.second}, {pair.distance} steps apart: {pair.value:+.1f}"
        'nodes 0 and 3, 2 steps apart: +0.5'
    """

    first: int
    """The first node."""
    second: int
    """The second node."""
    distance: int
    """The number of steps between them."""
    value: float
    """The contribution to the margin of the class, or to the target, in both orders together. In a directed graph, the
    orders count separately if their distances differ."""


class Decomposition(NamedTuple):
    """What is explained as a sum: the margin of a class (its score minus the mean score of the others), or a target.

    A target that is a number has its own unit, and the total is the predicted number. For a label, the total is the
    log-odds.

    Examples:
        >>> import numpy as np
        >>> found = Decomposition(2.0, 0.5, nodes=np.array([1.0, 0.25]), spread=None, attributes={"pH": 0.25}, rest=0.0)
        >>> bool(found.total == found.bias + found.nodes.sum() + sum(found.attributes.values()) + found.rest)
        True
    """

    total: float
    """The margin, the log-odds or the predicted number."""
    bias: float
    """The total of a graph without nodes, whose attributes have their means."""
    nodes: np.ndarray
    """The contribution of each node ``[N]``."""
    spread: np.ndarray | None
    """The standard deviation of each contribution over the models ``[N]``; ``None`` for a single model."""
    attributes: dict[str, float]
    """The contribution of each attribute of the graph, by name; empty if the models use none."""
    rest: float
    """The total minus the bias and all contributions; zero up to rounding if the explanation is exact."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a dictionary of lists and numbers."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._asdict().items()
            if name != "attributes" or value
        }


@dataclass(frozen=True, eq=False)
class GraphExplanation(ABC):
    """The explanation of a prediction for one graph with N nodes and W scores.

    For an ensemble of M models, scores and contributions are means over the models.
    """

    scores: np.ndarray
    """The scores ``[W]``."""
    bias: np.ndarray
    """The scores of a graph without nodes, whose attributes have their means ``[W]``."""
    each: np.ndarray
    """The contribution of each node to each score in each model ``[M, N, W]``."""
    exact: bool
    """Whether ``contributions.sum(0) + bias``, plus all ``attributes``, equals the scores; otherwise contributions are
    gradient x input."""
    pairs: list[list[NamedPair]]
    """For each class or target, the pairs of features that contribute most to what is explained; empty if the pooling
    is not a sum over nodes."""
    pooled: list[PooledGraph]
    """The pooled graph of ``sopool-m-attn`` for each model; empty for other poolings."""
    nodes: list[str]
    """The label of each node; empty strings if nodes have no labels."""
    attributes: dict[str, np.ndarray] = field(default_factory=dict, kw_only=True)
    """The contribution of each attribute of the graph to each score ``[W]``, by name; empty if the models use none."""
    node_pairs: NodePairs | None = field(default=None, kw_only=True)
    """The contribution of each pair of nodes to each score, for ``sopool-pairs``; otherwise ``None``."""

    @property
    @abstractmethod
    def names(self) -> Sequence[Any]:
        """The names of the W scores."""

    @property
    @abstractmethod
    def chosen(self) -> int:
        """The position in :attr:`names` of what is explained."""

    @abstractmethod
    def weights(self, number: int) -> np.ndarray:
        """Return the factors ``[W]`` of the scores in the sum that explains number ``number`` of :attr:`names`."""

    @property
    def contributions(self) -> np.ndarray:
        """The contribution of each node to each score ``[N, W]``."""
        return np.asarray(self.each.mean(0))

    def decompose(self, number: int | None = None) -> Decomposition:
        """Return the margin of a class over the others, or a target, as a sum over nodes.

        Args:
            number: The position of the class or target in :attr:`names`. Default: ``None``, for :attr:`chosen`.
        """
        number = self.chosen if number is None else number
        if isinstance(number, bool) or not isinstance(number, Integral) or number not in range(len(self.names)):
            raise ValueError(f"number={number!r}: it must be a position in names, 0 to {len(self.names) - 1}.")
        weights = self.weights(int(number))
        each = self.each @ weights
        total = float(self.scores @ weights)
        bias = float(self.bias @ weights)
        nodes = np.asarray(each.mean(0))
        attributes = {name: float(share @ weights) for name, share in self.attributes.items()}
        rest = total - bias - float(nodes.sum()) - sum(attributes.values())
        return Decomposition(total, bias, nodes, each.std(0) if len(each) > 1 else None, attributes, rest)

    def strongest_pairs(self, number: int | None = None, top: int = STRONGEST) -> list[NodePair]:
        """Return the pairs of nodes that contribute most, the largest first; an empty list without pairs of nodes.

        Args:
            number: The position of the class or target in :attr:`names`. Default: ``None``, for :attr:`chosen`.
            top: The largest number of pairs. Default: ``12``.
        """
        if self.node_pairs is None:
            return []
        ends = self.node_pairs.ends
        values = self.node_pairs.shares.numpy() @ self.weights(self.chosen if number is None else number)
        keys = np.stack([*ends.sort(0).values.numpy(), self.node_pairs.distance.numpy()], axis=1)
        each, place = np.unique(keys, axis=0, return_inverse=True)
        totals = np.bincount(place.ravel(), values, len(each))
        order = np.argsort(-np.abs(totals), kind="stable")[:top]
        found = list[NodePair]()
        for at in order[totals[order] != 0]:
            first, second, distance = each[at].tolist()
            found.append(NodePair(first, second, distance, float(totals[at])))
        return found

    def _shared_json(self) -> dict[str, Any]:
        """Return what all explanations have as dictionaries, lists and numbers."""
        attributes = {name: share.tolist() for name, share in self.attributes.items()}
        return {
            "exact": self.exact,
            "scores": self.scores.tolist(),
            "bias": self.bias.tolist(),
            "contributions": self.contributions.tolist(),
            **({"attributes": attributes} if attributes else {}),
            "nodes": self.nodes,
            "pairs": [[pair._asdict() for pair in some] for some in self.pairs],
            "pooled": [_plain(graph) for graph in self.pooled],
            **({} if self.node_pairs is None else {"node_pairs": self._pairs_json()}),
        }

    def _pairs_json(self) -> list[list[dict[str, Any]]]:
        """Return the strongest pairs of nodes for each class or target."""
        return [[pair._asdict() for pair in self.strongest_pairs(number)] for number in range(len(self.names))]


@dataclass(frozen=True, eq=False)
class Explanation(GraphExplanation):
    """The explanation of a predicted class for one graph with N nodes and C classes.

    Scores are the values before the softmax. For an ensemble of M models, scores and contributions are means over the
    models. :meth:`~GraphExplanation.decompose` explains the margin of a class over the others.

    Examples:
        >>> import numpy as np
        >>> explanation = Explanation(
        ...     classes=["no", "yes"],
        ...     probabilities=np.array([0.25, 0.75]),
        ...     uncertainty=0.1,
        ...     scores=np.array([-1.0, 2.0]),
        ...     bias=np.array([0.0, 0.0]),
        ...     each=np.array([[[-1.0, 0.5], [0.0, 1.5]]]),
        ...     exact=True,
        ...     pairs=[[], []],
        ...     pooled=[],
        ...     nodes=["C", "O"],
        ... )
        >>> explanation.prediction
        'yes'
        >>> explanation.decompose().nodes.tolist()
        [1.5, 1.5]
    """

    classes: list[Any]
    """The classes, in the order of the scores."""
    probabilities: np.ndarray
    """The probability of each class ``[C]``, as ``predict_proba`` returns it."""
    uncertainty: float
    """The uncertainty of the prediction, as ``predict_with_uncertainty`` returns it."""

    @property
    def names(self) -> list[Any]:
        """The classes."""
        return self.classes

    @property
    def chosen(self) -> int:
        """The position of the predicted class in ``classes``."""
        return int(self.probabilities.argmax())

    @property
    def prediction(self) -> Any:
        """The predicted class."""
        return self.classes[self.chosen]

    def weights(self, number: int) -> np.ndarray:
        """Return the factors of the scores in the margin of a class ``[C]``."""
        found: np.ndarray = margins(len(self.classes)).numpy()[number]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as dictionaries, lists and numbers."""
        told = {
            "prediction": self.prediction,
            "classes": self.classes,
            "probabilities": self.probabilities.tolist(),
            "uncertainty": None if np.isnan(self.uncertainty) else self.uncertainty,
            "margin": self.decompose().to_json(),
        }
        return told | self._shared_json()


@dataclass(frozen=True, eq=False)
class TargetExplanation(GraphExplanation):
    """The explanation of predicted numbers or labels for one graph with N nodes and T targets, one of which is shown.

    The scores, the bias and the contributions of a number have its own unit, and the score is the predicted number.
    Those of a label are log-odds. For an ensemble of M models, they are means over the models.

    Examples:
        >>> import numpy as np
        >>> explanation = TargetExplanation(
        ...     targets=["mass", "solubility"],
        ...     predictions=np.array([30.0, -2.5]),
        ...     probabilities=None,
        ...     uncertainty=np.array([1.0, 0.25]),
        ...     scores=np.array([30.0, -2.5]),
        ...     bias=np.array([2.0, -1.0]),
        ...     each=np.array([[[12.0, -1.0], [16.0, -0.5]]]),
        ...     exact=True,
        ...     pairs=[[], []],
        ...     pooled=[],
        ...     nodes=["C", "O"],
        ... )
        >>> explanation.prediction, explanation.of("solubility").prediction
        (30.0, -2.5)
        >>> explanation.of("solubility").decompose().nodes.tolist()
        [-1.0, -0.5]
    """

    targets: list[str]
    """The names of the targets, in the order of the scores."""
    predictions: np.ndarray
    """The predicted numbers, or the predicted labels 0 or 1 ``[T]``."""
    probabilities: np.ndarray | None
    """The probability that each label is 1 ``[T]``; ``None`` for numbers."""
    uncertainty: np.ndarray
    """The uncertainty of each number or probability ``[T]``, as ``predict_with_uncertainty`` returns it."""
    shown: int = 0
    """The position of the target that is explained."""

    @property
    def names(self) -> list[str]:
        """The targets."""
        return self.targets

    @property
    def chosen(self) -> int:
        """The position of the target that is explained."""
        return self.shown

    @property
    def target(self) -> str:
        """The name of the target that is explained."""
        return self.targets[self.shown]

    @property
    def prediction(self) -> float | int:
        """The predicted number, or the predicted label 0 or 1, of the target that is explained."""
        found: float | int = self.predictions[self.shown].item()
        return found

    def of(self, target: str) -> "TargetExplanation":
        """Return the explanation of another target.

        Args:
            target: The name of the target.
        """
        check_name("target", target, self.targets)
        return replace(self, shown=self.targets.index(target))

    def weights(self, number: int) -> np.ndarray:
        """Return the factors of the scores: 1 for the target."""
        found: np.ndarray = np.eye(len(self.targets))[number]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as dictionaries, lists and numbers."""
        shares = {} if self.probabilities is None else {"probabilities": self.probabilities.tolist()}
        told = {
            "target": self.target,
            "prediction": self.prediction,
            "targets": self.targets,
            "predictions": self.predictions.tolist(),
            **shares,
            "uncertainty": None if np.isnan(self.uncertainty).any() else self.uncertainty.tolist(),
            "decomposition": self.decompose().to_json(),
        }
        return told | self._shared_json()


AnyExplanation = Explanation | TargetExplanation


def _plain(graph: PooledGraph) -> dict[str, Any]:
    return {name: None if value is None else value.tolist() for name, value in graph._asdict().items()}
