"""The interface of objectives."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor

from sopool.objectives.metrics import METRICS, Metric

Task = Literal["classification", "multi-label", "regression"]
TASKS: tuple[Task, ...] = get_args(Task)
LossName = Literal["squared", "absolute", "huber"]
LOSSES: tuple[LossName, ...] = get_args(LossName)
"""The losses of a regression."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""A training loss: scores ``[M, B, W]`` and true values ``[M, B, ...]`` of M models -> the loss of each graph
``[M, B]``."""
Own = TypeVar("Own", bound="Objective")
LEAST_SHARE = 1e-300
"""The smallest probability of which a logarithm is taken."""


class Combined(NamedTuple):
    """The joint prediction of several models for G graphs."""

    predicted: np.ndarray
    """The predicted class ``[G]``, the predicted labels 0 or 1 ``[G, T]``, or the predicted numbers ``[G, T]``."""
    probabilities: np.ndarray | None
    """The probability of each class ``[G, C]`` or of each label ``[G, T]``, averaged over the models; None for numbers.
    """
    uncertainty: np.ndarray
    """The standard deviation over the models, of the predicted class's probability ``[G]``, or of each label's
    probability or each number ``[G, T]``; NaN for a single model."""


@dataclass(frozen=True)
class Objective(ABC):
    """What is predicted of a graph: the one place that knows the difference between classes, labels and numbers.

    Training, protocols, the estimators, explanations and model files ask it for the width of the output, the loss, how
    outputs become predictions, and which score is better.

    Args:
        names: The names of the W outputs: of the classes, or of the targets.
        metric: The name of the metric that chooses epochs and settings and that is reported first.
    """

    names: tuple[Any, ...]
    """The names of the outputs: of the classes, or of the targets."""
    metric: str
    """The name of the metric that chooses epochs and settings and that is reported first."""

    task: ClassVar[Task]
    """The kind of the objective."""

    @property
    def width(self) -> int:
        """The number of outputs of a model."""
        return len(self.names)

    @property
    def targets(self) -> tuple[Any, ...]:
        """The names of the targets, if there are several that are scored one by one; otherwise empty."""
        return ()

    @property
    def chosen_by(self) -> Metric:
        """The metric :attr:`metric`."""
        return METRICS[self.metric]

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that can be computed, the one that chooses first."""
        others = [name for name, metric in METRICS.items() if self.task in metric.tasks and name != self.metric]
        return [self.metric, *others]

    def weighted(self: Own, class_weights: tuple[float, ...] | None) -> Own:
        """Return the objective with weights of its classes; unchanged if there are none."""
        given: Any = {"class_weights": class_weights}
        return self if class_weights is None else replace(self, **given)

    def fit(self: Own, truth: np.ndarray) -> Own:
        """Return the objective with what it takes from the true values of the training graphs ``[n, ...]``.

        Only a regression takes anything: the mean and the standard deviation of each target.
        """
        return self

    @abstractmethod
    def strata(self, truth: np.ndarray) -> np.ndarray | None:
        """Return the classes by which folds are stratified ``[n]``; None for plain random folds."""

    @abstractmethod
    def make_loss(self, members: Sequence["Objective"], device: torch.device, dtype: torch.dtype) -> Loss:
        """Return the training loss of models side by side.

        Args:
            members: The objective of each model, after :meth:`fit`.
            device: The device of the scores.
            dtype: The type of the scores.
        """

    def outputs(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores of a model ``[..., W]`` as they are recorded: unchanged, or in the targets' own units."""
        return scores

    @abstractmethod
    def loss(self, outputs: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Return the mean loss of outputs ``[n, W]`` in double precision; 0 if no true value is known.

        Args:
            outputs: The outputs, see :meth:`outputs`.
            truth: The true values ``[n, ...]``.
            weights: The weight of each graph ``[n]``. Default: None, equal weights.
        """

    @abstractmethod
    def score_targets(
        self,
        outputs: np.ndarray,
        truth: np.ndarray,
        metrics: Sequence[str] | None = None,
        weights: np.ndarray | None = None,
    ) -> dict[str, list[float | None]]:
        """Return the score of each target by each metric; None where it cannot be computed.

        A classification with one label per graph has a single target.
        """

    def score(
        self,
        outputs: np.ndarray,
        truth: np.ndarray,
        metrics: Sequence[str] | None = None,
        weights: np.ndarray | None = None,
    ) -> dict[str, float | None]:
        """Return the score by each metric, averaged over the targets for which it can be computed.

        Errors in the unit of a target (MAE and RMSE) are divided by :attr:`Regression.units` before several targets are
        averaged.

        Args:
            outputs: The outputs ``[n, W]``, see :meth:`outputs`.
            truth: The true values ``[n, ...]``.
            metrics: The names of the metrics. Default: None, all.
            weights: The weight of each graph ``[n]``. Default: None, equal weights.
        """
        each = self.score_targets(outputs, truth, metrics, weights)
        return {name: average(self.comparable(name, values)) for name, values in each.items()}

    def comparable(self, metric: str, values: Sequence[float | None]) -> list[float | None]:
        """Return the scores of the targets by a metric in a unit that they share."""
        return list(values)

    def choosing_score(self, outputs: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Return the score by :attr:`metric` that chooses epochs, or 0 if it cannot be computed for these graphs.

        Then it can be computed at no epoch, so that the loss decides alone.
        """
        return self.score(outputs, truth, [self.metric], weights)[self.metric] or 0.0

    @abstractmethod
    def combine(self, outputs: np.ndarray) -> Combined:
        """Return the joint prediction of M models from their outputs ``[M, G, W]``."""

    @abstractmethod
    def joint(self, combined: Combined) -> np.ndarray:
        """Return the outputs ``[G, W]`` that stand for a joint prediction, for metrics."""

    def tempered(self, outputs: np.ndarray, temperature: float) -> np.ndarray:
        """Return the joint outputs ``[n, W]`` at another temperature; numbers have none.

        Args:
            outputs: The joint outputs.
            temperature: The temperature, see :func:`~sopool.objectives.calibration.fit_temperature`.
        """
        raise NotImplementedError

    def calibrated(self, combined: Combined, temperature: float) -> Combined:
        """Return the joint prediction with calibrated probabilities; what is predicted stays the same."""
        return combined._replace(probabilities=self.shares(self.tempered(self.joint(combined), temperature)))

    def shares(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities that joint outputs ``[n, W]`` stand for; numbers have none."""
        raise NotImplementedError

    @abstractmethod
    def constant(self, truth: np.ndarray) -> np.ndarray:
        """Return the outputs ``[W]`` that are best for all graphs alike, from the true values of the training graphs.

        They predict the shares of the classes, the share of each label or the mean of each target.
        """

    @property
    def scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """What scores are multiplied by, and what is added then, to give the outputs ``[W]``."""
        return np.ones(self.width), np.zeros(self.width)

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a run's configuration says of the objective."""
        return {"task": self.task, "metric": self.metric}


def average(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there is none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def counted(
    outputs: np.ndarray, truth: np.ndarray, weights: np.ndarray | None, known: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return outputs, true values and weights of the graphs that are ``known`` ``[n]`` and have a positive weight.

    Metrics of a class or of a target of which all graphs have weight 0 are not defined.
    """
    kept = np.ones(len(truth), bool) if known is None else known
    if weights is None:
        return outputs[kept], truth[kept], None
    kept = kept & (weights > 0)
    return outputs[kept], truth[kept], weights[kept]


def spread(each: np.ndarray) -> np.ndarray:
    """Return the standard deviation over models ``[M, ...]``; NaN for a single model."""
    found: np.ndarray = each.std(0) if len(each) > 1 else np.full(each.shape[1:], np.nan)
    return found
