"""Early stopping: record a model's training, choose its best epoch on held-out graphs, and say when to stop."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.objectives import Objective
from sopool.training.run_splits import Split
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.schema import LOOKED_AT, curve_arrays, output_type

BEST = ("best_values", "best_statistics")
"""The names of the best epoch's weights in a checkpoint."""


class Recorder:
    """Record the learning curves and predictions of one model, and keep its weights at the best epoch.

    Args:
        config: The run that is recorded, with its number of epochs and its patience.
        split: The graphs that the model is trained on and those it is scored on.
        objective: What is predicted.
        truth: The true values of every graph of the data set ``[G, ...]``.
        weights: The weight of every graph ``[G]``. Default: None, equal weights.
        score_training: Whether the training graphs are scored at every epoch, too. Default: True.
    """

    def __init__(
        self,
        config: RunConfig,
        split: Split,
        objective: Objective,
        truth: np.ndarray,
        weights: np.ndarray | None = None,
        score_training: bool = True,
    ) -> None:
        self.config = config
        self.split = split
        weighted = objective.weighted(config.class_weights)
        self.objective = weighted.fit(truth[split.train])
        self.truth = truth
        self.weights = weights
        self.looked_at = LOOKED_AT[config.looks]
        # A choice on held-out graphs depends on no other graph; test folds share the unit of the whole data set.
        self._scored_by = weighted if self.looked_at == "test" else self.objective
        self.curves = {name: np.full(config.epochs, np.nan) for name in curve_arrays(config)}
        self.logits = None
        if config.looks == "test":
            kind = output_type(config)
            self.logits = np.full((config.epochs, len(split.test), objective.width), np.nan, dtype=kind)
        self.best: dict[str, Tensor] = {}
        self.chosen_epoch: int | None = None
        self.stopped: int | None = None
        self._parts = {"train": split.train} if score_training else {}
        others = split.test if self.looked_at == "test" else split.validation
        if len(others):
            self._parts[self.looked_at] = others

    @property
    def graphs(self) -> np.ndarray:
        """The graphs to score at every epoch: the training graphs first, if they are scored, then the others."""
        return np.concatenate([*self._parts.values()]) if self._parts else np.zeros(0, np.int64)

    def record(
        self, epoch: int, loss: float, scores: np.ndarray, weights: tuple[Tensor, Tensor], **numbers: float
    ) -> None:
        """Record an epoch, and keep its weights if it is the best so far.

        If the loss or a score is not finite, the model is stopped and the epoch is not recorded.

        Args:
            epoch: The number of the epoch, from 0.
            loss: The mean loss of its training steps.
            scores: The outputs for :attr:`graphs` ``[n, W]``, see :meth:`~sopool.objectives.Objective.outputs`.
            weights: The parameters and statistics that the model was scored with; they are copied.
            numbers: Further values of the epoch, by the names of curves.
        """
        if not (np.isfinite(loss) and np.isfinite(scores).all()):
            self.stopped = epoch
            return
        for name, number in (numbers | {"step_loss": loss} | self._figures(scores)).items():
            self.curves[name][epoch] = number
        if self.logits is not None:
            self.logits[epoch] = scores[len(scores) - len(self.split.test) :]
        if self._is_best(epoch):
            self.chosen_epoch = epoch
            self.best = {name: tensor.clone() for name, tensor in zip(BEST, weights, strict=True)}

    def _figures(self, scores: np.ndarray) -> dict[str, float]:
        """Return the score and the loss on each part; graphs and classes have the same weights as in training."""
        figures = {}
        for part, graphs in self._parts.items():
            some, scores = np.split(scores, [len(graphs)])
            told = (some, self.truth[graphs], None if self.weights is None else self.weights[graphs])
            figures[f"{part}_{self.config.metric}"] = self._scored_by.choosing_score(*told)
            figures[f"{part}_loss"] = self.objective.loss(*told)
        return figures

    def _is_best(self, epoch: int) -> bool:
        """Return whether to choose this epoch; without held-out graphs the last one is always the best."""
        if self.looked_at == "test":
            return False
        if self.chosen_epoch is None or not len(self.split.validation):
            return True
        return not self.is_over(epoch - 1) and self._rank(epoch) < self._rank(self.chosen_epoch)

    def _rank(self, epoch: int) -> tuple[float, float]:
        """Return a key that orders epochs by the score on held-out graphs, then by loss; the best has the smallest."""
        score = self.curves[f"validation_{self.config.metric}"][epoch]
        return -self.objective.chosen_by.sign * score, self.curves["validation_loss"][epoch]

    def is_over(self, epoch: int) -> bool:
        """Return whether the patience is used up after this epoch, so that no later epoch is chosen."""
        if self.config.patience is None or self.chosen_epoch is None or not len(self.split.validation):
            return False
        return epoch - self.chosen_epoch >= self.config.patience

    def finish(self, predictions: dict[str, np.ndarray], environment: dict[str, Any]) -> Run:
        """Return the finished run."""
        if self.logits is not None:
            predictions = {"test_graphs": self.split.test, "test_logits": self.logits}
        return Run(self.config, self.curves, predictions, self.chosen_epoch, self.stopped, environment)

    def arrays(self) -> dict[str, Tensor]:
        """Return the arrays from which :meth:`restore` continues."""
        arrays = {f"curve_{name}": torch.from_numpy(curve) for name, curve in self.curves.items()}
        if self.logits is not None:
            arrays["logits"] = torch.from_numpy(self.logits)
        return arrays | self.best

    def restore(self, arrays: dict[str, Tensor], chosen_epoch: int | None) -> None:
        """Continue from the arrays of a checkpoint."""
        for name in self.curves:
            self.curves[name] = arrays[f"curve_{name}"].numpy().copy()
        if self.logits is not None:
            self.logits = arrays["logits"].numpy().copy()
        self.best = {name: arrays[name] for name in BEST if name in arrays}
        self.chosen_epoch = chosen_epoch


def best_weights(recorders: Sequence[Recorder], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the parameters ``[M, P]`` and statistics ``[M, Q]`` of each model at its best epoch, on a device."""
    values, statistics = (torch.stack([one.best[name].to(device) for one in recorders]) for name in BEST)
    return values, statistics
