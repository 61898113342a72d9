"""Adam for a stack of models, each with its own learning rate."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sopool.ops import backends

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


@dataclass
class Adam:
    """The state of `"Adam: A Method for Stochastic Optimization" <https://arxiv.org/abs/1412.6980>`_ for [M, P] values.

    ``torch.optim.Adam`` takes one learning rate for a parameter, and the parameters here hold all models.
    """

    mean: Tensor
    square: Tensor

    @classmethod
    def start(cls, values: Tensor) -> "Adam":
        """Before the first step."""
        return cls(torch.zeros_like(values), torch.zeros_like(values))

    def step(self, values: Tensor, gradient: Tensor, pace: Tensor, root: Tensor) -> None:
        """Update ``values`` [M, P] in place; ``pace`` [M, 1] and ``root`` are those of :func:`unbias`."""
        if backends.serves(values):
            from sopool.ops.triton.elementwise import adam_step

            adam_step(values, gradient, self.mean, self.square, pace, root, (BETA1, BETA2), EPS)
            return
        self.mean.lerp_(gradient, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        denominator = self.square.sqrt().div_(root).add_(EPS)
        values.sub_((self.mean / denominator).mul_(pace))


def unbias(rates: np.ndarray, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """What takes the start at zero out of both means, for ``steps`` steps from number ``first`` (of 1) on.

    The pace, rate / (1 - beta1^t) [steps, M, 1], and the root of 1 - beta2^t [steps].
    """
    number = np.arange(first, first + steps, dtype=np.float64)
    return rates / (1 - BETA1**number)[:, None, None], np.sqrt(1 - BETA2**number)


def fresh_shares(stays: float, first: int, steps: int) -> np.ndarray:
    """How much of the parameters goes into a running mean of which ``stays`` stays, for steps as in :func:`unbias`.

    At first more, 10 / (t + 9), and all at the first step: what was drawn does not count.
    """
    number = np.arange(first, first + steps, dtype=np.float64)
    return np.maximum(1 - stays, 10 / (number + 9))
