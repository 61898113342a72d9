"""Adam for a stack of models, each with its own learning rate."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sopool.ops import backends

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


@dataclass
class Adam:
    """The state of `"Adam: A Method for Stochastic Optimization" <https://arxiv.org/abs/1412.6980>`_ for M models.

    ``torch.optim.Adam`` has one learning rate for each parameter, but a parameter of a bank holds those of all models.
    """

    mean: Tensor
    """The running mean of the gradient ``[M, P]``."""
    square: Tensor
    """The running mean of the squared gradient ``[M, P]``."""

    @classmethod
    def start(cls, values: Tensor) -> "Adam":
        """Return the state before the first step."""
        return cls(torch.zeros_like(values), torch.zeros_like(values))

    def step(self, values: Tensor, gradient: Tensor, pace: Tensor, root: Tensor) -> None:
        """Update ``values`` ``[M, P]`` in place; ``pace`` ``[M, 1]`` and ``root`` are those of :func:`unbias`."""
        if backends.serves(values):
            from sopool.ops.triton.elementwise import adam_step

            adam_step(values, gradient, self.mean, self.square, pace, root, (BETA1, BETA2), EPS)
            return
        self.mean.lerp_(gradient, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        denominator = self.square.sqrt().div_(root).add_(EPS)
        values.sub_((self.mean / denominator).mul_(pace))


def unbias(rates: np.ndarray, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Adam's bias corrections for ``steps`` steps from step number ``first``, counted from 1.

    They are the corrected learning rate, rate / (1 - beta1^t) ``[steps, M, 1]``, and the root of 1 - beta2^t
    ``[steps]``.
    """
    number = np.arange(first, first + steps, dtype=np.float64)
    return rates / (1 - BETA1**number)[:, None, None], np.sqrt(1 - BETA2**number)


def fresh_shares(stays: float, first: int, steps: int) -> np.ndarray:
    """Return the weight of the current parameters in a running mean with decay ``stays``, for steps of :func:`unbias`.

    It is at least 10 / (t + 9), and 1 at the first step, so that the initial weights do not count.
    """
    number = np.arange(first, first + steps, dtype=np.float64)
    return np.maximum(1 - stays, 10 / (number + 9))
