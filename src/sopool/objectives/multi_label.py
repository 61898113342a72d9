"""Classification with several labels per graph, each of which may be missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.objectives.base import LEAST_SHARE, Combined, Loss, Objective, Task, spread
from sopool.objectives.masked import MaskedObjective, known_and_filled, mean_of_known


@dataclass(frozen=True)
class MultiLabel(MaskedObjective):
    """Predict T labels that are 0 or 1, by binary cross-entropy over the known ones.

    Args:
        names: The names of the labels.
        metric: The metric that chooses epochs and settings. Default: ``"roc_auc"``.
        class_weights: The weights of the values 0 and 1 of each label in the loss, one label after the other,
            ``[2 T]``. Default: None, equal weights.

    Examples:
        >>> import numpy as np
        >>> from sopool.objectives import MultiLabel
        >>> objective = MultiLabel(("toxic", "soluble"))
        >>> truth = np.array([[0, np.nan], [1, 1]])
        >>> objective.score(np.array([[-1.0, 2.0], [3.0, 2.0]]), truth, ["accuracy", "roc_auc"])
        {'accuracy': 1.0, 'roc_auc': 1.0}
    """

    metric: str = "roc_auc"
    class_weights: tuple[float, ...] | None = None

    task: ClassVar[Task] = "multi-label"

    def make_loss(self, members: Sequence[Objective], device: torch.device, dtype: torch.dtype) -> Loss:
        """Return the binary cross-entropy of each graph, such that the mean is one over the known labels."""
        given = None if self._pairs is None else torch.from_numpy(self._pairs).to(device, dtype)

        def loss(scores: Tensor, truth: Tensor) -> Tensor:
            known, filled = known_and_filled(truth)
            true = filled.to(scores.dtype)
            each = F.binary_cross_entropy_with_logits(scores, true, reduction="none")
            weights = None if given is None else torch.where(filled > 0, given[:, 1], given[:, 0])
            return mean_of_known(each, known, weights)

        return loss

    def errors(self, outputs: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the binary cross-entropy of each output ``[n, T]``, and where the label is known."""
        known = ~np.isnan(truth)
        true = np.where(known, truth, 0.0)
        each = np.logaddexp(0.0, outputs) - outputs * true
        if self._pairs is not None:
            each = each * np.where(true > 0, self._pairs[:, 1], self._pairs[:, 0])
        return np.where(known, each, 0.0), known

    def column(self, output: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return one label as two classes: logits ``[n, 2]`` and class numbers ``[n]``."""
        return np.stack([-output / 2, output / 2], axis=1), truth.astype(np.int64)

    def combine(self, outputs: np.ndarray) -> Combined:
        """Return the labels whose mean probability is more than one half."""
        each = torch.from_numpy(np.asarray(outputs, np.float64)).sigmoid().numpy()
        mean = each.mean(0)
        return Combined((mean > 0.5).astype(np.int64), mean, spread(each))

    def joint(self, combined: Combined) -> np.ndarray:
        """Return the log-odds of the mean probabilities."""
        assert combined.probabilities is not None
        return _log_odds(combined.probabilities)

    def tempered(self, outputs: np.ndarray, temperature: float) -> np.ndarray:
        """Return the log-odds of the labels at another temperature."""
        return outputs / temperature

    def shares(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probability that each label is 1."""
        found: np.ndarray = np.exp(-np.logaddexp(0.0, -outputs))
        return found

    def constant(self, truth: np.ndarray) -> np.ndarray:
        """Return the log-odds of the share of each label, 0 for one that is never known."""
        known = ~np.isnan(truth)
        shares = np.where(known, truth, 0.0).sum(0) / np.maximum(known.sum(0), 1)
        return _log_odds(np.where(known.any(0), shares, 0.5))

    @property
    def _pairs(self) -> np.ndarray | None:
        """The weights of the values 0 and 1 of each label ``[T, 2]``."""
        return None if self.class_weights is None else np.array(self.class_weights, np.float64).reshape(-1, 2)


def _log_odds(shares: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.log(np.maximum(shares, LEAST_SHARE)) - np.log(np.maximum(1 - shares, LEAST_SHARE))
    return found
