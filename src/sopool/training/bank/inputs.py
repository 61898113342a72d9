"""How models take the features of graphs: each learns this from its own training graphs."""

from typing import NamedTuple

import torch
from torch import Tensor

from sopool.data.features.numbers import Moments


class ModelInputs(NamedTuple):
    """How each of M models takes the features of graphs.

    Examples:
        >>> import torch
        >>> from sopool.training.bank.inputs import ModelInputs
        >>> ModelInputs(torch.tensor([[0, 1, 2], [0, 2, 2]])).rows([1]).substitutes
        tensor([[0, 2, 2]])
    """

    substitutes: Tensor | None = None
    """The feature column that each model uses for each column ``[M, F]``; None if all use the same ones."""
    nodes: Moments | None = None
    """The moments of the node numbers ``[M, D]``; None for those of the encoder."""
    edges: Moments | None = None
    """The moments of the edge attributes ``[M, D]``."""
    graphs: Moments | None = None
    """The moments of the graph attributes ``[M, D]``."""

    def to(self, device: torch.device | str) -> "ModelInputs":
        """Return the inputs on another device."""
        substitutes = None if self.substitutes is None else self.substitutes.to(device)
        return ModelInputs(substitutes, *(None if each is None else each.to(device) for each in self[1:]))

    def rows(self, models: list[int]) -> "ModelInputs":
        """Return the inputs of some of the models."""
        substitutes = None if self.substitutes is None else self.substitutes[models]
        return ModelInputs(substitutes, *(None if each is None else each.rows(models) for each in self[1:]))


AS_ENCODED = ModelInputs()
"""Features as the encoders make them, equal for all models."""
