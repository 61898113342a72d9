"""Adam for a stack of models, each with its own learning rate and its own number of steps."""

from dataclasses import dataclass

import torch
from torch import Tensor

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

    def step(self, values: Tensor, gradient: Tensor, rates: Tensor, step: int) -> None:
        """Update ``values`` [M, P] in place at the ``rates`` [M, 1]; ``step`` counts from 1."""
        self.mean.lerp_(gradient, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        denominator = self.square.sqrt().div_((1 - BETA2**step) ** 0.5).add_(EPS)
        values.sub_((self.mean / denominator).mul_(rates / (1 - BETA1**step)))
