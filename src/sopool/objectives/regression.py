"""Regression of one or several numbers, each of which may be missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from sopool.objectives.base import Combined, Loss, LossName, Objective, Task, spread
from sopool.objectives.masked import MaskedObjective, known_and_filled, mean_of_known
from sopool.objectives.metrics import METRICS

METRIC_OF = {"squared": "rmse", "absolute": "mae", "huber": "mae"}
"""The metric that chooses epochs and settings if none is given, by loss."""


@dataclass(frozen=True)
class Regression(MaskedObjective):
    """Predict T numbers.

    Models are trained on standardized targets: :meth:`fit` takes the mean and the standard deviation of each target
    from the known values of a model's own training graphs. Outputs, errors and explanations have the targets' units.

    Args:
        names: The names of the targets.
        metric: The metric that chooses epochs and settings. Default: ``"rmse"``, with the absolute and the Huber loss
            ``"mae"``.
        loss_name: ``"squared"`` (default), ``"absolute"`` or ``"huber"`` (squared up to one standard deviation,
            absolute beyond).
        units: By what errors of the T targets are divided before they are averaged: their standard deviations over the
            data set or, after :meth:`fit`, over the training graphs. A single target is not divided. Default: 1 for
            each.
        shift: The mean of each target over the training graphs. Default: 0 for each.
        scale: The standard deviation of each target over the training graphs. Default: 1 for each.

    Examples:
        >>> import numpy as np
        >>> from sopool.objectives import Regression
        >>> objective = Regression(("solubility",)).fit(np.array([[1.0], [3.0], [np.nan]]))
        >>> objective.outputs(np.array([[0.5]])).tolist()
        [[2.5]]
    """

    metric: str = ""
    loss_name: LossName = "squared"
    units: tuple[float, ...] = ()
    shift: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    task: ClassVar[Task] = "regression"

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", self.metric or METRIC_OF[self.loss_name])
        for name, value in (("units", 1.0), ("shift", 0.0), ("scale", 1.0)):
            object.__setattr__(self, name, getattr(self, name) or (value,) * self.width)

    @classmethod
    def of(cls, truth: np.ndarray, names: Sequence[str], **settings: Any) -> "Regression":
        """Return the objective for a data set with these true values ``[G, T]``, whose spread are the units."""
        return cls(tuple(names), units=moments(truth)[1], **settings)

    def fit(self, truth: np.ndarray) -> "Regression":
        """Return the objective with the mean and the standard deviation of each target ``[n, T]``."""
        shift, scale = moments(truth)
        return replace(self, shift=shift, scale=scale, units=scale)

    def make_loss(self, members: Sequence[Objective], device: torch.device, dtype: torch.dtype) -> Loss:
        """Return the loss of each graph on standardized targets, such that the mean is one over the known values."""
        numbers = [(one.shift, one.scale) for one in members if isinstance(one, Regression)]
        # In double precision, since the mean of a target may be much larger than its spread.
        shift, scale = torch.tensor(numbers, dtype=torch.float64).to(device).unsqueeze(2).unbind(1)

        def loss(scores: Tensor, truth: Tensor) -> Tensor:
            known, filled = known_and_filled((truth - shift) / scale)
            return mean_of_known(self._errors(scores - filled.to(scores.dtype)), known)

        return loss

    def outputs(self, scores: np.ndarray) -> np.ndarray:
        """Return standardized scores ``[..., T]`` in the targets' own units, in double precision."""
        scale, shift = self.scaling
        found: np.ndarray = np.asarray(scores, np.float64) * scale + shift
        return found

    def errors(self, outputs: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss of each standardized output ``[n, T]``, and where the target is known."""
        known = ~np.isnan(truth)
        difference = np.where(known, outputs - truth, 0.0) / np.array(self.scale)
        return self._errors(torch.from_numpy(difference)).numpy(), known

    def column(self, output: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of one target unchanged."""
        return output, truth

    def comparable(self, metric: str, values: Sequence[float | None]) -> list[float | None]:
        """Return the scores by a metric, divided by the spread of each target if several errors are to be averaged."""
        if self.width == 1 or not METRICS[metric].in_unit:
            return list(values)
        return [None if value is None else value / unit for value, unit in zip(values, self.units, strict=True)]

    def combine(self, outputs: np.ndarray) -> Combined:
        """Return the mean of the models."""
        each = np.asarray(outputs, np.float64)
        return Combined(each.mean(0), None, spread(each))

    def joint(self, combined: Combined) -> np.ndarray:
        """Return the mean of the models."""
        return combined.predicted

    def constant(self, truth: np.ndarray) -> np.ndarray:
        """Return the mean of each target."""
        return np.array(moments(truth)[0])

    @property
    def scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """The standard deviation and the mean of each target over the training graphs."""
        return np.array(self.scale), np.array(self.shift)

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a run's configuration says of the objective."""
        return {**super().settings, "loss": self.loss_name}

    def _errors(self, difference: Tensor) -> Tensor:
        if self.loss_name == "absolute":
            return difference.abs()
        if self.loss_name == "squared":
            return difference.square()
        size = difference.abs()
        return torch.where(size < 1, size.square() / 2, size - 0.5)


def moments(truth: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the mean and the standard deviation of the known values of each target ``[n, T]``.

    The standard deviation of a target with one distinct value counts as 1, and the mean of one without values as 0.
    """
    known = ~np.isnan(truth)
    counts = np.maximum(known.sum(0), 1)
    mean = np.where(known, truth, 0.0).sum(0) / counts
    std = np.sqrt(np.square(np.where(known, truth - mean, 0.0)).sum(0) / counts)
    # Not by the spread: rounding of the mean leaves a tiny one where all values are equal.
    highest = np.where(known, truth, -np.inf).max(0, initial=-np.inf)
    flat = (~known | (truth == highest)).all(0) | (std == 0)
    return tuple(mean.tolist()), tuple(np.where(flat, 1.0, std).tolist())
