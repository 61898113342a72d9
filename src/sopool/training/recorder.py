"""What is written down while a run trains, and its best snapshot on the validation graphs."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.training.protocols.metrics import cross_entropy
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.schema import LOOKED_AT, curve_arrays
from sopool.training.splits import Split


class Recorder:
    """The curves and predictions of one run so far."""

    def __init__(self, config: RunConfig, split: Split, labels: np.ndarray, classes: int) -> None:
        self.config = config
        self.split = split
        self.labels = labels
        self.looked_at = LOOKED_AT[config.looks]
        self.curves = {name: np.full(config.epochs, np.nan) for name in curve_arrays(config)}
        self.logits = None
        if config.looks == "test":
            self.logits = np.full((config.epochs, len(split.test), classes), np.nan, dtype=np.float32)
        self.best: dict[str, Tensor] = {}
        self.chosen_epoch: int | None = None
        self.stopped: int | None = None

    @property
    def graphs(self) -> np.ndarray:
        """What it looks at at every epoch: first the training graphs, then the others."""
        return np.concatenate([self.split.train, self._others])

    @property
    def _others(self) -> np.ndarray:
        return self.split.test if self.looked_at == "test" else self.split.validation

    def record(self, epoch: int, scores: np.ndarray, **numbers: float) -> None:
        """Write down one epoch: the scores of :attr:`graphs`, and any numbers by name."""
        parts = {"train": self.split.train, self.looked_at: self._others}
        for (part, graphs), some in zip(parts.items(), np.split(scores, [len(self.split.train)]), strict=True):
            labels = self.labels[graphs]
            numbers |= {f"{part}_accuracy": float((some.argmax(1) == labels).mean())}
            numbers |= {f"{part}_loss": cross_entropy(some, labels)}
        for name, number in numbers.items():
            self.curves[name][epoch] = number
        if self.logits is not None:
            self.logits[epoch] = scores[len(self.split.train) :]

    def is_best(self, epoch: int) -> bool:
        """Whether this epoch is better on the validation graphs than all before: accuracy, then loss."""
        if self.looked_at == "test":
            return False
        if self.chosen_epoch is None:
            return True
        patience = self.config.patience
        waited = patience is not None and epoch - self.chosen_epoch > patience
        return not waited and self._rank(epoch) < self._rank(self.chosen_epoch)

    def _rank(self, epoch: int) -> tuple[float, float]:
        return -self.curves["validation_accuracy"][epoch], self.curves["validation_loss"][epoch]

    def keep(self, epoch: int, values: Tensor, statistics: Tensor) -> None:
        """Remember the model of this epoch as the best one."""
        self.chosen_epoch = epoch
        self.best = {"best_values": values.clone(), "best_statistics": statistics.clone()}

    def stop(self, epoch: int) -> None:
        """The loss is not finite: nothing of this epoch counts."""
        self.stopped = epoch
        for curve in self.curves.values():
            curve[epoch] = np.nan
        if self.logits is not None:
            self.logits[epoch] = np.nan

    def finish(self, predictions: dict[str, np.ndarray], environment: dict[str, Any]) -> Run:
        """The finished run."""
        if self.logits is not None:
            predictions = {"test_graphs": self.split.test, "test_logits": self.logits}
        return Run(self.config, self.curves, predictions, self.chosen_epoch, self.stopped, environment)

    def arrays(self) -> dict[str, Tensor]:
        """All of it, for a checkpoint."""
        arrays = {f"curve_{name}": torch.from_numpy(curve) for name, curve in self.curves.items()}
        if self.logits is not None:
            arrays["logits"] = torch.from_numpy(self.logits)
        return arrays | self.best

    def restore(self, arrays: dict[str, Tensor], chosen_epoch: int | None) -> None:
        """Go on from what :meth:`arrays` gave."""
        for name in self.curves:
            self.curves[name] = arrays[f"curve_{name}"].numpy().copy()
        if self.logits is not None:
            self.logits = arrays["logits"].numpy().copy()
        self.best = {name: arrays[name] for name in ("best_values", "best_statistics") if name in arrays}
        self.chosen_epoch = chosen_epoch
