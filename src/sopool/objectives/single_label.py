"""Classification with one class per graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.objectives.base import LEAST_SHARE, Combined, Loss, Objective, Task, counted, spread
from sopool.objectives.metrics import METRICS, cross_entropy, log_sum_exp, softmax


@dataclass(frozen=True)
class SingleLabel(Objective):
    """Predict one of C classes, by cross-entropy.

    Args:
        names: The names of the classes.
        metric: The metric that chooses epochs and settings. Default: ``"accuracy"``.
        class_weights: The weight of each class in the loss and in the choice of an epoch. Default: None, equal weights.

    Examples:
        >>> import numpy as np
        >>> from sopool.objectives import SingleLabel
        >>> objective = SingleLabel(("no", "yes"))
        >>> objective.score(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([0, 1]), ["accuracy", "roc_auc"])
        {'accuracy': 1.0, 'roc_auc': 1.0}
    """

    metric: str = "accuracy"
    class_weights: tuple[float, ...] | None = None

    task: ClassVar[Task] = "classification"

    def strata(self, truth: np.ndarray) -> np.ndarray:
        """Return the classes, by which folds are stratified ``[n]``."""
        return truth

    def make_loss(self, members: Sequence[Objective], device: torch.device, dtype: torch.dtype) -> Loss:
        """Return the cross-entropy of each graph, times the weight of its class."""
        given = self.class_weights
        weights = None if given is None else torch.tensor(given, dtype=torch.float64).to(device, dtype)

        def loss(scores: Tensor, truth: Tensor) -> Tensor:
            each = F.cross_entropy(scores.flatten(0, 1), truth.flatten(), weights, reduction="none")
            return each.view(truth.shape)

        return loss

    def loss(self, outputs: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Return the mean cross-entropy, 0 if no graph counts; classes have the same weights as in training."""
        given = counted(outputs, truth, self._weights(truth, weights))
        return cross_entropy(*given) if len(given[1]) else 0.0

    def score_targets(
        self,
        outputs: np.ndarray,
        truth: np.ndarray,
        metrics: Sequence[str] | None = None,
        weights: np.ndarray | None = None,
    ) -> dict[str, list[float | None]]:
        """Return the score by each metric, in a list of one."""
        given = counted(*self._checked(outputs, truth), weights)
        wanted = self.metrics if metrics is None else metrics
        return {name: [METRICS[name].compute(*given) if len(given[1]) else None] for name in wanted}

    def choosing_score(self, outputs: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Return the score that chooses epochs; classes have the same weights as in training."""
        return super().choosing_score(outputs, truth, self._weights(truth, weights))

    def combine(self, outputs: np.ndarray) -> Combined:
        """Return the class with the highest mean probability."""
        each = torch.from_numpy(np.asarray(outputs, np.float64)).softmax(2).numpy()
        mean = each.mean(0)
        chosen = mean.argmax(1)
        return Combined(chosen, mean, spread(each[:, np.arange(len(chosen)), chosen]))

    def joint(self, combined: Combined) -> np.ndarray:
        """Return the logarithms of the mean probabilities."""
        assert combined.probabilities is not None
        found: np.ndarray = np.log(np.maximum(combined.probabilities, LEAST_SHARE))
        return found

    def tempered(self, outputs: np.ndarray, temperature: float) -> np.ndarray:
        """Return the logarithms of the probabilities at another temperature."""
        divided = outputs / temperature
        found: np.ndarray = divided - log_sum_exp(divided)[:, None]
        return found

    def shares(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes."""
        return softmax(outputs)

    def constant(self, truth: np.ndarray) -> np.ndarray:
        """Return the logarithms of the shares of the classes."""
        counts = np.bincount(truth, minlength=self.width)
        found: np.ndarray = np.log(np.maximum(counts / max(1, len(truth)), LEAST_SHARE))
        return found

    def _weights(self, truth: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the weight of each graph, including that of its class."""
        if self.class_weights is None:
            return weights
        own: np.ndarray = np.array(self.class_weights)[truth]
        return own if weights is None else own * weights

    def _checked(self, outputs: Any, truth: Any) -> tuple[np.ndarray, np.ndarray]:
        outputs = np.asarray(outputs, np.float64)
        truth = np.asarray(truth)
        if outputs.ndim != 2 or truth.ndim != 1 or len(outputs) != len(truth) or outputs.size == 0:
            shapes = f"logits {list(outputs.shape)} and labels {list(truth.shape)}"
            raise ValueError(f"{shapes} were given; expected [n, classes] and [n] with at least one graph.")
        if truth.min() < 0 or truth.max() >= outputs.shape[1]:
            given = f"from {truth.min()} to {truth.max()}"
            raise ValueError(f"labels {given} were given for {outputs.shape[1]} classes, which are numbered from 0.")
        return outputs, truth
