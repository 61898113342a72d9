"""The seven message-passing networks of the paper, by name.

    h_i <- relu(batch_norm(f(aggregate of h_j over the neighbours j of i and i itself)))

f is a linear map, or a multi-layer perceptron linear-norm-relu-linear. From `"How Powerful are Graph Neural Networks?"
<https://arxiv.org/abs/1810.00826>`_. Every node hears itself, so isolated nodes need no care.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.nn.stacked import NormedLinear, model_rows
from sopool.ops import backends
from sopool.ops.first_order import segment_spread
from sopool.ops.joined import side_by_side
from sopool.ops.neighbors import How, Neighbors, aggregate
from sopool.ops.rows import Rows


class Variant(NamedTuple):
    """What tells the networks apart."""

    how: How
    linears: int
    """2: a multi-layer perceptron; 1: a linear map."""
    learn_eps: bool = False
    """Whether a node hears itself with a learned weight 1 + eps."""


VARIANTS = {
    "gin-0": Variant("sum", 2),
    "gin-eps": Variant("sum", 2, learn_eps=True),
    "sum-1-layer": Variant("sum", 1),
    "mean-mlp": Variant("mean", 2),
    "gcn": Variant("mean", 1),
    "max-mlp": Variant("max", 2),
    "graphsage": Variant("max", 1),
}


class Blocks(torch.nn.ModuleList):
    """The f of a layer, with the norm and the relu after it."""

    def forward(self, x: Tensor, rows: Rows, out: Tensor | None = None) -> Tensor:
        """[N, in] -> [N, out]; ``rows``: those of each model."""
        for block in self:
            x = block(x, rows, out if block is self[-1] else None)
        return x


class GNN(torch.nn.Module):
    """Message-passing layers of one variant; alone, or as a stack of models (see :mod:`sopool.nn.stacked`)."""

    def __init__(self, variant: str, in_channels: int, hidden: int, layers: int) -> None:
        super().__init__()
        if variant not in VARIANTS:
            raise ValueError(f"There is no GNN {variant!r}. Known: {', '.join(VARIANTS)}.")
        self.how, linears, learn_eps = VARIANTS[variant]
        self.hidden = hidden
        self.layers = torch.nn.ModuleList()
        for layer in range(layers):
            widths = [hidden if layer else in_channels] + [hidden] * linears
            self.layers.append(Blocks(NormedLinear(*pair) for pair in pairwise(widths)))
        self.eps = torch.nn.Parameter(torch.zeros(layers)) if learn_eps else None

    def forward(self, x: Tensor, neighbors: Neighbors, ptr: Tensor, models: int = 1) -> list[Tensor]:
        """The input and the output of each layer [N, ...], ready to be joined."""
        rows, out = model_rows(ptr, models), [x]
        places: Sequence[Tensor | None] = [None] * len(self.layers)
        if backends.serves(x):
            every = side_by_side(x.shape[0], [x.shape[1]] + [self.hidden] * len(self.layers), like=x)
            out, places = [every[0].copy_(x)], every[1:]
        for number, (layer, place) in enumerate(zip(self.layers, places, strict=True)):
            heard = self._hear(out[-1], neighbors, rows, number)
            out.append(layer(heard, rows, place))
        return out

    def _hear(self, x: Tensor, neighbors: Neighbors, rows: Rows, layer: int) -> Tensor:
        heard = aggregate(x, neighbors, self.how)
        if self.eps is None:
            return heard
        eps = self.eps.view(len(rows), -1)[:, layer : layer + 1]
        return heard + segment_spread(eps, rows.ptr, x.shape[0]) * x
