"""Optimizers for a stack of models, each with its own learning rate.

Those of ``torch.optim`` have one learning rate for each parameter, but a parameter of a bank holds those of all models.
The formulas and their constants are PyTorch's.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sopool.ops import backends

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
ALPHA = 0.99
"""The decay of the running mean of the squared gradient of RMSProp."""
ADAGRAD_EPS = 1e-10
NORM_EPS = 1e-6
"""What is added to a gradient's norm before dividing by it, as ``torch.nn.utils.clip_grad_norm_`` does."""


@dataclass
class Optimizer:
    """The state of an optimizer for M models; each of its kinds defines :meth:`step`."""

    mean: Tensor
    """The running mean of the gradient, or the momentum ``[M, P]``; zero where a kind has none."""
    square: Tensor
    """The running mean of the squared gradient, or its sum ``[M, P]``; zero where a kind has none."""
    momentum: float = 0.0
    """The fraction of the last move that is added to the next one, for ``sgd`` and ``rmsprop``."""

    @classmethod
    def start(cls, values: Tensor, momentum: float = 0.0) -> "Optimizer":
        """Return the state before the first step."""
        return cls(torch.zeros_like(values), torch.zeros_like(values), momentum)

    @staticmethod
    def corrections(rates: np.ndarray, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers that :meth:`step` takes at ``steps`` steps from step number ``first``, counted from 1.

        They are the ``rates`` ``[M, 1]`` at each step ``[steps, M, 1]``, and ones ``[steps]``.
        """
        return np.repeat(rates[None], steps, axis=0), np.ones(steps)

    def step(self, values: Tensor, gradient: Tensor, pace: Tensor, root: Tensor) -> None:
        """Update ``values`` ``[M, P]`` in place; ``pace`` ``[M, 1]`` and ``root`` are those of :meth:`corrections`."""
        raise NotImplementedError(f"{type(self).__name__} must define step(values, gradient, pace, root).")


class Adam(Optimizer):
    """`"Adam: A Method for Stochastic Optimization" <https://arxiv.org/abs/1412.6980>`_."""

    @staticmethod
    def corrections(rates: np.ndarray, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bias corrections.

        They are the corrected learning rate, rate / (1 - beta1^t) ``[steps, M, 1]``, and the root of 1 - beta2^t
        ``[steps]``.
        """
        number = np.arange(first, first + steps, dtype=np.float64)
        return rates / (1 - BETA1**number)[:, None, None], np.sqrt(1 - BETA2**number)

    def step(self, values: Tensor, gradient: Tensor, pace: Tensor, root: Tensor) -> None:
        """Move against the mean gradient over the root of the mean squared gradient."""
        if backends.serves(values):
            from sopool.ops.triton.elementwise import adam_step

            adam_step(values, gradient, self.mean, self.square, pace, root, (BETA1, BETA2), EPS)
            return
        self.mean.lerp_(gradient, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        denominator = self.square.sqrt().div_(root).add_(EPS)
        values.sub_((self.mean / denominator).mul_(pace))


class SGD(Optimizer):
    """Gradient descent with momentum, without dampening."""

    def step(self, values: Tensor, gradient: Tensor, pace: Tensor, root: Tensor) -> None:
        """Move against the gradient and what is left of earlier ones."""
        self.mean.mul_(self.momentum).add_(gradient)
        values.sub_(self.mean * pace)


class RMSProp(Optimizer):
    """Gradient descent in units of the root of the mean squared gradient, with momentum."""

    def step(self, values: Tensor, gradient: Tensor, pace: Tensor, root: Tensor) -> None:
        """Move against the gradient, divided by its size."""
        self.square.mul_(ALPHA).addcmul_(gradient, gradient, value=1 - ALPHA)
        self.mean.mul_(self.momentum).addcdiv_(gradient, self.square.sqrt().add_(EPS))
        values.sub_(self.mean * pace)


class Adagrad(Optimizer):
    """`"Adaptive Subgradient Methods" <https://jmlr.org/papers/v12/duchi11a.html>`_, without a decay of the rate."""

    def step(self, values: Tensor, gradient: Tensor, pace: Tensor, root: Tensor) -> None:
        """Move against the gradient, divided by the root of the sum of all its squares so far."""
        self.square.addcmul_(gradient, gradient)
        values.sub_((gradient / self.square.sqrt().add_(ADAGRAD_EPS)).mul_(pace))


OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": Adam, "sgd": SGD, "rmsprop": RMSProp, "adagrad": Adagrad}
"""The optimizers by name, see :attr:`sopool.training.runs.config.RunConfig.optimizer`."""


def clip_norms(gradient: Tensor, largest: float) -> None:
    """Scale the gradient of each model ``[M, P]`` in place so that its norm is at most ``largest``."""
    norms = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
    gradient.mul_((largest / (norms + NORM_EPS)).clamp(max=1))


def fresh_shares(stays: float, first: int, steps: int) -> np.ndarray:
    """Return the weight of the current parameters in a running mean with decay ``stays``, for steps from ``first``.

    It is at least 10 / (t + 9), and 1 at the first step, so that the initial weights do not count.
    """
    number = np.arange(first, first + steps, dtype=np.float64)
    return np.maximum(1 - stays, 10 / (number + 9))
