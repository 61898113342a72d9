"""Explanations for users: with names of features and nodes, for all models of an ensemble."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sopool.models.explain.shares import PooledGraph, margins


class NamedPair(NamedTuple):
    """The contribution of a pair of features, or of a single feature, to the margin of a class.

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
    """The contribution to the margin of the class."""
    node: int
    """The node that contributes most."""
    model: int
    """The model of the ensemble. Hidden features of different models are unrelated."""


class Margin(NamedTuple):
    """The margin of a class, which is its score minus the mean score of the other classes, by node.

    Examples:
        >>> import numpy as np
        >>> margin = Margin(total=2.0, bias=0.5, nodes=np.array([1.0, 0.5]), spread=None, rest=0.0)
        >>> bool(margin.total == margin.bias + margin.nodes.sum() + margin.rest)
        True
    """

    total: float
    """The margin."""
    bias: float
    """The margin of a graph without nodes."""
    nodes: np.ndarray
    """The contribution of each node ``[N]``."""
    spread: np.ndarray | None
    """The standard deviation of each contribution over the models ``[N]``; ``None`` for a single model."""
    rest: float
    """The total minus the bias and all contributions; zero up to rounding if the explanation is exact."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """The explanation of a prediction for one graph with N nodes and C classes.

    Scores are the values before the softmax. For an ensemble of M models, scores and contributions are means over the
    models.

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
        >>> explanation.margin().nodes.tolist()
        [1.5, 1.5]
    """

    classes: list[Any]
    """The classes, in the order of the arrays below."""
    probabilities: np.ndarray
    """The probability of each class ``[C]``, as ``predict_proba`` returns it."""
    uncertainty: float
    """The uncertainty of the prediction, as ``predict_with_uncertainty`` returns it."""
    scores: np.ndarray
    """The score of each class ``[C]``."""
    bias: np.ndarray
    """The score of each class for a graph without nodes ``[C]``."""
    each: np.ndarray
    """The contribution of each node to each score in each model ``[M, N, C]``."""
    exact: bool
    """Whether ``contributions.sum(0) + bias`` equals the scores; otherwise contributions are gradient x input."""
    pairs: list[list[NamedPair]]
    """For each class, the pairs of features that change its margin most; empty if the pooling is not a sum over nodes.
    """
    pooled: list[PooledGraph]
    """The pooled graph of ``sopool-m-attn`` for each model; empty for other poolings."""
    nodes: list[str]
    """The label of each node; empty strings if nodes have no labels."""

    @property
    def contributions(self) -> np.ndarray:
        """The contribution of each node to the score of each class ``[N, C]``."""
        return np.asarray(self.each.mean(0))

    @property
    def chosen(self) -> int:
        """The position of the predicted class in ``classes``."""
        return int(self.probabilities.argmax())

    @property
    def prediction(self) -> Any:
        """The predicted class."""
        return self.classes[self.chosen]

    def margin(self, number: int | None = None) -> Margin:
        """Return the margin of a class over the others.

        Args:
            number: The position of the class in ``classes``. Default: ``None``, for the predicted class.
        """
        number = self.chosen if number is None else number
        if isinstance(number, bool) or not isinstance(number, Integral) or number not in range(len(self.classes)):
            raise ValueError(f"number={number!r}: it must be a position in classes, 0 to {len(self.classes) - 1}.")
        weights = margins(len(self.classes)).numpy()[number]
        each = self.each @ weights
        total = float(self.scores @ weights)
        bias = float(self.bias @ weights)
        nodes = np.asarray(each.mean(0))
        return Margin(total, bias, nodes, each.std(0) if len(each) > 1 else None, total - bias - float(nodes.sum()))

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as dictionaries, lists and numbers."""
        margin = self.margin()
        return {
            "prediction": self.prediction,
            "classes": self.classes,
            "probabilities": self.probabilities.tolist(),
            "uncertainty": None if np.isnan(self.uncertainty) else self.uncertainty,
            "exact": self.exact,
            "scores": self.scores.tolist(),
            "bias": self.bias.tolist(),
            "contributions": self.contributions.tolist(),
            "margin": {
                "total": margin.total,
                "bias": margin.bias,
                "nodes": margin.nodes.tolist(),
                "spread": None if margin.spread is None else margin.spread.tolist(),
                "rest": margin.rest,
            },
            "nodes": self.nodes,
            "pairs": [[pair._asdict() for pair in some] for some in self.pairs],
            "pooled": [_plain(graph) for graph in self.pooled],
        }


def _plain(graph: PooledGraph) -> dict[str, Any]:
    return {name: None if value is None else value.tolist() for name, value in graph._asdict().items()}
