"""What objectives with several targets share: true values ``[n, T]``, of which some may be missing."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from sopool.objectives.base import Objective, counted
from sopool.objectives.metrics import METRICS


@dataclass(frozen=True)
class MaskedObjective(Objective):
    """An objective with T targets; a missing true value, NaN, has no influence on training or scores."""

    @property
    def targets(self) -> tuple[Any, ...]:
        """The names of the targets, if there are several; otherwise empty."""
        return self.names if self.width > 1 else ()

    def strata(self, truth: np.ndarray) -> None:
        """Return None: folds are plain random ones."""
        return

    def score_targets(
        self,
        outputs: np.ndarray,
        truth: np.ndarray,
        metrics: Sequence[str] | None = None,
        weights: np.ndarray | None = None,
    ) -> dict[str, list[float | None]]:
        """Return the score of each target by each metric, over the graphs whose true value is known."""
        outputs = np.asarray(outputs, np.float64)
        truth = np.asarray(truth, np.float64)
        if outputs.shape != truth.shape or outputs.ndim != 2 or outputs.shape[1] != self.width:
            shapes = f"outputs {list(outputs.shape)} and true values {list(truth.shape)}"
            raise ValueError(f"{shapes} were given; expected [n, {self.width}] for both.")
        wanted = self.metrics if metrics is None else metrics
        found: dict[str, list[float | None]] = {name: [] for name in wanted}
        for output, true, own in self._known(outputs, truth, weights):
            for name in wanted:
                value = METRICS[name].compute(*self.column(output, true), own) if len(true) else None
                found[name].append(value)
        return found

    def loss(self, outputs: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Return the mean loss over all known true values in double precision; 0 if there are none."""
        each, known = self.errors(np.asarray(outputs, np.float64), np.asarray(truth, np.float64))
        counts = known if weights is None else known * weights[:, None]
        return float((each * counts).sum() / max(counts.sum(), np.finfo(float).tiny))

    @abstractmethod
    def column(self, output: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs and true values of one target ``[n]`` as metrics take them."""

    @abstractmethod
    def errors(self, outputs: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss of each output ``[n, T]``, 0 where the true value is missing, and where it is known."""

    @staticmethod
    def _known(
        outputs: np.ndarray, truth: np.ndarray, weights: np.ndarray | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Yield the outputs, true values and weights of each target, of the graphs that count and are known of it."""
        for output, true in zip(outputs.T, truth.T, strict=True):
            yield counted(output, true, weights, ~np.isnan(true))


def mean_of_known(each: Tensor, known: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the share of each graph in the mean loss over the known values of each model: ``[M, B, T]`` -> ``[M, B]``.

    The mean of the result over the B graphs is the mean of ``each`` over the known values, whatever their number.
    """
    counts = known.to(each.dtype)
    total = counts.sum((1, 2)).clamp_(min=1.0)
    each = each * counts if weights is None else each * counts * weights
    return each.sum(2) * (each.shape[1] / total).unsqueeze(1)


def known_and_filled(truth: Tensor) -> tuple[Tensor, Tensor]:
    """Return where true values are known, and the values with 0 for missing ones, whose gradient is then 0."""
    missing = truth.isnan()
    return ~missing, truth.masked_fill(missing, 0.0)
