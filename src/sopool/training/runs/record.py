"""What a finished run leaves."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sopool.training.runs.config import RunConfig


@dataclass(frozen=True)
class Run:
    """A run with its curves and predictions.

    ``curves``, one value for each epoch [epochs], NaN from the epoch on at which the run was stopped: ``step_loss``
    (mean over the training steps), ``learning_rate``, ``seconds``, and ``train_accuracy``, ``train_loss`` and the same
    for ``test`` or ``validation``, whichever the run may look at.

    ``predictions``: for each split that it reports, ``test_graphs`` [n] (numbers of graphs) and ``test_logits``:
    [epochs, n, classes] where the test fold is looked at at every epoch; [n, classes], at the chosen epoch, otherwise.
    Likewise ``validation_graphs`` and ``validation_logits`` [n, classes].
    """

    config: RunConfig
    curves: dict[str, np.ndarray]
    predictions: dict[str, np.ndarray]
    chosen_epoch: int | None = None
    """From 0; the epoch with the best validation accuracy, the lower loss and then the earlier one among equals."""
    stopped: int | None = None
    """The epoch, from 0, at which the loss was no longer finite; None if all went well."""
    environment: dict[str, Any] = field(default_factory=dict)
    """Versions, device, threads, git commit."""
