"""The record of a finished run."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sopool.training.runs.config import RunConfig


@dataclass(frozen=True)
class Run:
    """A finished run with its learning curves and predictions.

    Examples:
        >>> import numpy as np
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.record import Run
        >>> config = RunConfig("toy", fingerprint="0", encoder="", model=ModelConfig(), fold=0, epochs=2)
        >>> run = Run(config, curves={"test_accuracy": np.array([0.5, 0.75])}, predictions={})
        >>> int(run.curves["test_accuracy"].argmax())
        1
    """

    config: RunConfig
    """The configuration of the run."""
    curves: dict[str, np.ndarray]
    """One value for each epoch ``[epochs]``, NaN from the epoch on in which the run was stopped: ``step_loss`` (mean
    over the training steps), ``learning_rate``, ``seconds``, ``train_accuracy``, ``train_loss``, and accuracy and loss
    of ``test`` or ``validation``, whichever the run is scored on."""
    predictions: dict[str, np.ndarray]
    """For each scored part, here ``test`` or ``validation``: ``test_graphs`` ``[n]``, the numbers of the graphs, and
    ``test_logits``, ``[epochs, n, classes]`` if the test fold is scored at every epoch, otherwise ``[n, classes]`` at
    the chosen epoch."""
    chosen_epoch: int | None = None
    """The epoch, from 0, with the best validation score; of equal ones that with the lowest loss, then the earliest.
    """
    stopped: int | None = None
    """The epoch, from 0, in which the loss was no longer finite; None if that did not happen."""
    environment: dict[str, Any] = field(default_factory=dict)
    """Package versions, device, threads and git commit."""
