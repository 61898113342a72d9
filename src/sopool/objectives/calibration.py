"""Calibrate probabilities by a temperature, which is fitted on graphs that no model was trained on.

The temperature divides the logarithms of the probabilities of the classes, or the log-odds of all labels: above 1 it
makes predictions less confident, below 1 more. It changes neither the predicted class nor the order of graphs by the
probability of a label.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sopool.objectives.base import Objective
from sopool.objectives.metrics import cross_entropy

COOLEST, HOTTEST = 0.05, 20.0
"""The lowest and the highest temperature."""
PRIOR = 2.0
"""The penalty of the square of log T, in the unit of the total log loss: log T is expected within 0 +- 0.5. With few
graphs the temperature stays near 1; with hundreds the penalty makes no difference."""
MEASURED = ("log_loss", "calibration_error")
"""The metrics of probabilities that are compared before and after."""


@dataclass(frozen=True)
class Calibration:
    """A temperature, and how good probabilities are without and with one on graphs that it was not fitted on.

    Examples:
        >>> from sopool.objectives.calibration import Calibration
        >>> found = Calibration(1.5, {"log_loss": 0.4}, {"log_loss": 0.3})
        >>> found.helps
        True
    """

    temperature: float
    """The temperature that is fitted on all graphs."""
    before: dict[str, float | None]
    """The log loss and the calibration error without a temperature."""
    after: dict[str, float | None]
    """The same with temperatures that were fitted on other graphs."""

    @property
    def helps(self) -> bool:
        """Whether temperatures of other graphs lower the log loss."""
        before, after = self.before["log_loss"], self.after["log_loss"]
        return before is not None and after is not None and after < before

    @property
    def at_limit(self) -> bool:
        """Whether the temperature is the lowest or the highest, up to one percent."""
        return not 1.01 * COOLEST < self.temperature < 0.99 * HOTTEST

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {"temperature": self.temperature, "used": self.helps, "before": self.before, "after": self.after}


def fit_temperature(objective: Objective, outputs: np.ndarray, truth: np.ndarray) -> float:
    """Return the temperature with the lowest log loss, near 1 if there are few graphs.

    Args:
        objective: What is predicted: one class or several labels.
        outputs: The joint outputs of the models for graphs that they were not trained on ``[n, W]``.
        truth: The true values ``[n, ...]``. Unknown labels have no influence.

    Examples:
        >>> import numpy as np
        >>> from sopool.objectives import SingleLabel
        >>> from sopool.objectives.calibration import fit_temperature
        >>> sure = np.array([[9.0, 0.0], [0.0, 9.0]] * 50)
        >>> labels = np.array([0, 1] * 40 + [1, 0] * 10)  # one in five is wrong
        >>> 4 < fit_temperature(SingleLabel(("no", "yes")), sure, labels) < 9
        True
    """
    from scipy.optimize import minimize_scalar

    columns = [one for one in _columns(objective, outputs, truth) if len(one[1])]

    def total(logarithm: float) -> float:
        found = sum(len(labels) * cross_entropy(logits / np.exp(logarithm), labels) for logits, labels in columns)
        return found + PRIOR * logarithm**2

    found = minimize_scalar(total, bounds=(np.log(COOLEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(found.x))


def cross_calibrate(
    objective: Objective, outputs: Sequence[np.ndarray], truth: Sequence[np.ndarray]
) -> tuple[Calibration, list[np.ndarray]]:
    """Measure temperatures on test folds: each fold gets the one that is fitted on all other folds.

    Args:
        objective: What is predicted: one class or several labels.
        outputs: The outputs for the graphs of each test fold.
        truth: The true values of each test fold.

    Returns:
        The calibration, and the calibrated outputs for each fold.
    """
    after = []
    for fold, own in enumerate(outputs):
        others = [place for place in range(len(outputs)) if place != fold]
        temperature = fit_temperature(
            objective, np.concatenate([outputs[i] for i in others]), np.concatenate([truth[i] for i in others])
        )
        after.append(objective.tempered(own, temperature))
    true = np.concatenate(truth)
    every = np.concatenate(outputs)
    scores = [objective.score(each, true, MEASURED) for each in (every, np.concatenate(after))]
    return Calibration(fit_temperature(objective, every, true), *scores), after


def _columns(objective: Objective, outputs: np.ndarray, truth: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the logits and the class numbers of each target."""
    if objective.task == "classification":
        yield outputs, truth
        return
    for output, true in zip(outputs.T, truth.T, strict=True):
        known = ~np.isnan(true)
        yield np.stack([-output[known] / 2, output[known] / 2], axis=1), true[known].astype(np.int64)
