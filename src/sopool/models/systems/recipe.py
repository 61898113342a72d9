"""How a network is trained: what its paper says of it, rather than the user."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from sopool.errors import SettingError

OptimizerName = Literal["adam", "sgd", "rmsprop", "adagrad"]
WITH_MOMENTUM = ("sgd", "rmsprop")
"""The optimizers that have a momentum."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained."""

    epochs: int = 350
    """The number of epochs; a request with fewer trains fewer."""
    steps: int | None = 50
    """Batches per epoch; None: one pass over the training graphs."""
    batch_size: int = 32
    """Graphs per batch."""
    lr: float = 0.01
    """The initial learning rate."""
    halve_every: int = 0
    """The learning rate is halved every so many epochs; 0 keeps it constant."""
    weight_decay: float = 0.0
    """The L2 penalty."""
    average: float = 0.0
    """The decay of the running mean of the parameters that models are scored with; 0 turns averaging off."""
    patience: int | None = None
    """The number of epochs without improvement on the held-out graphs after which no later epoch is chosen."""
    optimizer: OptimizerName = "adam"
    """The optimizer: ``"adam"``, ``"sgd"``, ``"rmsprop"`` or ``"adagrad"``, with the constants of ``torch.optim``."""
    momentum: float = 0.0
    """The momentum of ``"sgd"`` and ``"rmsprop"``."""
    clip: float = 0.0
    """The largest norm of a network's gradient; a longer one is scaled down. 0 turns clipping off."""

    def __post_init__(self) -> None:
        if self.optimizer not in get_args(OptimizerName):
            expected = ", ".join(get_args(OptimizerName))
            raise SettingError(f"there is no optimizer {self.optimizer!r}, expected one of: {expected}.")
        allowed = self.optimizer in WITH_MOMENTUM
        if not (0 <= self.momentum < 1 if allowed else self.momentum == 0):
            expected = "a number from 0 and below 1" if allowed else f"0: {self.optimizer} has none"
            raise SettingError(f"momentum is {self.momentum!r}, expected {expected}.")
        if not 0 <= self.clip < math.inf:
            raise SettingError(f"clip is {self.clip!r}, expected a norm, or 0 to turn clipping off.")
