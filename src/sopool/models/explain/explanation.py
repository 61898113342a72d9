"""An explanation as it is handed to a user: names in place of numbers, all models of an ensemble together."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sopool.models.explain.shares import PooledGraph, margins


class NamedPair(NamedTuple):
    """Two features that say something together, or one that speaks for itself."""

    first: str
    second: str | None
    value: float
    """What it adds to the margin of a class."""
    node: int
    """Where most of it comes from."""
    model: int
    """Whose features these are: hidden units of one model have nothing to do with those of another."""


class Margin(NamedTuple):
    """Why one class rather than the others: its score less the mean of the others', node by node."""

    total: float
    bias: float
    """What it is without any node."""
    nodes: np.ndarray
    """What each node adds [n]."""
    spread: np.ndarray | None
    """The standard deviation of that over the models [n]; None with one model."""
    rest: float
    """What is left when bias and nodes are taken from the total: 0, up to rounding, where the explanation is exact."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a graph gets the class that it gets.

    Scores are what the softmax makes probabilities of. Of an ensemble they are the mean over its models, and so is all
    that adds up to them.
    """

    classes: list[Any]
    probabilities: np.ndarray
    """[classes]: what ``predict_proba`` gives."""
    uncertainty: float
    """As ``predict_with_uncertainty`` has it."""
    scores: np.ndarray
    """[classes]."""
    bias: np.ndarray
    """What the scores are without any node [classes]."""
    each: np.ndarray
    """What each node adds to each score in each model [models, n, classes]."""
    exact: bool
    """Whether ``contributions.sum(0) + bias`` are the scores; else they are gradient x input."""
    pairs: list[list[NamedPair]]
    """For each class, the pairs of features that add most to its margin or take most from it; none for poolings that
    are no sum over nodes."""
    pooled: list[PooledGraph]
    """What m_attn makes of the graph, for each model; empty for other poolings."""
    nodes: list[str]
    """The label of each node; empty texts where there are none."""

    @property
    def contributions(self) -> np.ndarray:
        """What each node adds to the score of each class [n, classes]."""
        return np.asarray(self.each.mean(0))

    @property
    def chosen(self) -> int:
        """The number of the predicted class."""
        return int(self.probabilities.argmax())

    @property
    def prediction(self) -> Any:
        """The predicted class."""
        return self.classes[self.chosen]

    def margin(self, number: int | None = None) -> Margin:
        """Why the class with this place in ``classes``, the predicted one if left out, rather than the others."""
        number = self.chosen if number is None else number
        if isinstance(number, bool) or not isinstance(number, Integral) or number not in range(len(self.classes)):
            raise ValueError(f"number={number!r}: it must be a place in classes, 0 to {len(self.classes) - 1}.")
        weights = margins(len(self.classes)).numpy()[number]
        each = self.each @ weights
        total = float(self.scores @ weights)
        bias = float(self.bias @ weights)
        nodes = np.asarray(each.mean(0))
        return Margin(total, bias, nodes, each.std(0) if len(each) > 1 else None, total - bias - float(nodes.sum()))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain dictionaries, lists and numbers."""
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
