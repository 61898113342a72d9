"""The seven message-passing networks of the paper, by name, and two for graphs with edge labels.

    h_i <- relu(batch_norm(f(aggregate of h_j over the neighbors j of i and i itself)))

Here f is a linear layer or a multi-layer perceptron (linear, norm, ReLU, linear), as in `"How Powerful are Graph Neural
Networks?" <https://arxiv.org/abs/1810.00826>`_. Every node also aggregates itself, so isolated nodes need no special
treatment.

GINE aggregates h_i + sum_j relu(h_j + t_ij), where t_ij is a learned vector for the label of the edge from j to i. It
is from `"Strategies for Pre-training Graph Neural Networks" <https://arxiv.org/abs/1905.12265>`_.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.errors import check_name
from sopool.nn.layers import NormedLinear, model_rows
from sopool.ops import backends
from sopool.ops._columns import side_by_side
from sopool.ops.many_models.model_rows import Rows
from sopool.ops.message_passing.labelled import aggregate_labelled
from sopool.ops.message_passing.neighbors import How, Neighbors, aggregate
from sopool.ops.segment.first_order import segment_spread


class Variant(NamedTuple):
    """The properties in which the networks differ."""

    how: How
    linears: int
    """The number of linear layers: 2 for a multi-layer perceptron, 1 for a linear layer."""
    learn_eps: bool = False
    """Whether the node itself has a learned weight 1 + eps."""
    labelled: bool = False
    """Whether messages depend on edge labels."""


VARIANTS = {
    "gin-0": Variant("sum", 2),
    "gin-eps": Variant("sum", 2, learn_eps=True),
    "sum-1-layer": Variant("sum", 1),
    "mean-mlp": Variant("mean", 2),
    "gcn": Variant("mean", 1),
    "max-mlp": Variant("max", 2),
    "graphsage": Variant("max", 1),
    "gine": Variant("sum", 2, labelled=True),
    "gine-eps": Variant("sum", 2, learn_eps=True, labelled=True),
}


class Blocks(torch.nn.ModuleList):
    """The function f of a message-passing layer, including batch normalization and ReLU."""

    def forward(self, x: Tensor, rows: Rows, out: Tensor | None = None) -> Tensor:
        """Map ``[N, F]`` to ``[N, H]``, given the rows of each model."""
        for block in self:
            x = block(x, rows, out if block is self[-1] else None)
        return x


class EdgeVectors(torch.nn.Module):
    """A learned vector for each edge label; unknown labels get the mean of the known ones."""

    def __init__(self, labels: int, channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(labels, channels))
        uniform(channels, self.weight)

    def forward(self, known: Tensor) -> Tensor:
        """Return the vectors of all L labels, then that of unknown ones ``[M, L + 1, F]``; ``known`` is ``[M, L]``."""
        weight = self.weight.view(-1, *self.weight.shape[-2:])
        known = known.view(-1, known.shape[-1], 1)
        mean = (known * weight).sum(1, keepdim=True) / known.sum(1, keepdim=True).clamp(min=1)
        return torch.cat([known * weight + (1 - known) * mean, mean], dim=1)


class GNN(torch.nn.Module):
    """Message-passing layers of one variant, for one model or a stack of models (see :mod:`sopool.nn.layers`).

    Args:
        variant: The name of the variant, a key of ``VARIANTS``.
        in_channels: Number of input features ``F``.
        hidden: Width of the layers ``H``.
        layers: Number of layers.
        edge_labels: Number of edge labels, for a variant that uses them. Default: ``0``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> gnn = GNN("gin-0", in_channels=3, hidden=8, layers=2)
        >>> layers = gnn(torch.randn(4, 3), neighbors_of(edge_index, 4), ptr=torch.tensor([0, 2, 4]))
        >>> [tuple(h.shape) for h in layers]
        [(4, 3), (4, 8), (4, 8)]
    """

    known: Tensor | None

    def __init__(self, variant: str, in_channels: int, hidden: int, layers: int, edge_labels: int = 0) -> None:
        super().__init__()
        check_name("GNN", variant, VARIANTS)
        self.how, linears, learn_eps, labelled = VARIANTS[variant]
        if labelled and not edge_labels:
            raise ValueError(f"{variant} uses edge labels: edge_labels must be at least 1, not {edge_labels}.")
        self.hidden = hidden
        self.layers = torch.nn.ModuleList()
        self.edges = torch.nn.ModuleList()
        for layer in range(layers):
            widths = [hidden if layer else in_channels] + [hidden] * linears
            self.layers.append(Blocks(NormedLinear(*pair) for pair in pairwise(widths)))
            if labelled:
                self.edges.append(EdgeVectors(edge_labels, widths[0]))
        # A buffer is stacked and saved together with the weights.
        self.register_buffer("known", torch.ones(edge_labels) if labelled else None)
        self.eps = torch.nn.Parameter(torch.zeros(layers)) if learn_eps else None

    def forward(self, x: Tensor, neighbors: Neighbors, ptr: Tensor, models: int = 1) -> list[Tensor]:
        """Return the input and the output of each layer, ``[N, F]`` each."""
        rows = model_rows(ptr, models)
        out = [x]
        places: Sequence[Tensor | None] = [None] * len(self.layers)
        if backends.serves(x):
            every = side_by_side(x.shape[0], [x.shape[1]] + [self.hidden] * len(self.layers), like=x)
            out = [every[0].copy_(x)]
            places = every[1:]
        for number, (layer, place) in enumerate(zip(self.layers, places, strict=True)):
            aggregated = self._aggregate(out[-1], neighbors, rows, number)
            out.append(layer(aggregated, rows, place))
        return out

    def _aggregate(self, x: Tensor, neighbors: Neighbors, rows: Rows, layer: int) -> Tensor:
        if self.known is None:
            aggregated = aggregate(x, neighbors, self.how)
        else:
            aggregated = aggregate_labelled(x, neighbors, self.edges[layer](self.known), rows)
        if self.eps is None:
            return aggregated
        eps = self.eps.view(len(rows), -1)[:, layer : layer + 1]
        return aggregated + segment_spread(eps, rows.ptr, x.shape[0]) * x
