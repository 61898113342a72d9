"""The seven message-passing networks of the paper, by name, and two for graphs whose edges have features.

    h_i <- relu(batch_norm(f(aggregate of h_j over the neighbors j of i and i itself)))

Here f is a linear layer or a multi-layer perceptron (linear, norm, ReLU, linear), as in `"How Powerful are Graph Neural
Networks?" <https://arxiv.org/abs/1810.00826>`_. Every node also aggregates itself, so isolated nodes need no special
treatment.

GINE aggregates h_i + sum_j relu(h_j + t_ij + W e_ij), where t_ij is the sum of a learned vector for each category of
the edge from j to i, such as its label, and e_ij are its standardized attributes, which a learned matrix W maps. Either
part may be absent. There is no bias, so an edge whose attributes have their means sends relu(h_j) if it has no
categories. The network is from `"Strategies for Pre-training Graph Neural Networks"
<https://arxiv.org/abs/1905.12265>`_.

In each network, weights w_ij of edges may multiply the messages: h_i + sum_j w_ij h_j for a sum, the same divided by
the number of neighbors and the node itself for a mean, the maximum of h_i and w_ij h_j, and
h_i + sum_j w_ij relu(h_j + t_ij + W e_ij) for GINE.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.errors import check_name
from sopool.nn.layers import NormedLinear, model_rows, project
from sopool.ops import backends
from sopool.ops._columns import side_by_side
from sopool.ops.many_models.model_rows import Rows
from sopool.ops.message_passing.labelled import aggregate_labelled, along_entries
from sopool.ops.message_passing.neighbors import Adjacency, How, Neighbors, aggregate
from sopool.ops.message_passing.shifted import aggregate_shifted
from sopool.ops.segment.first_order import segment_spread


class Variant(NamedTuple):
    """The properties in which the networks differ."""

    how: How
    linears: int
    """The number of linear layers: 2 for a multi-layer perceptron, 1 for a linear layer."""
    learn_eps: bool = False
    """Whether the node itself has a learned weight 1 + eps."""
    labelled: bool = False
    """Whether messages depend on the categories and attributes of edges."""


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


class EdgeSpec(NamedTuple):
    """What edges have that a network uses."""

    categories: tuple[int, ...] = ()
    """The number of known values of each column of categories, such as edge labels."""
    attributes: int = 0
    """The number of attributes."""
    weights: bool = False
    """Whether weights multiply the messages."""


NO_EDGES = EdgeSpec()


class EdgeVectors(torch.nn.Module):
    """A learned vector for each category of edges; unknown values get the mean of the known ones of their column.

    Args:
        categories: The number of known values of each column of categories, L in all.
        channels: The width of the vectors ``F``.
    """

    def __init__(self, categories: Sequence[int], channels: int) -> None:
        super().__init__()
        self.categories = list(categories)
        self.weight = torch.nn.Parameter(torch.empty(sum(categories), channels))
        uniform(channels, self.weight)

    def forward(self, known: Tensor, combinations: Tensor | None = None) -> Tensor:
        """Return the vectors of all categories, after those of a column that of unknown values ``[M, L + C, F]``.

        ``known`` ``[M, L]`` marks the known values. If ``combinations`` of categories ``[K, C]`` are given, return the
        sum of the vectors of each combination ``[M, K, F]``.
        """
        weight = self.weight.view(-1, *self.weight.shape[-2:])
        known = known.view(-1, known.shape[-1], 1)
        columns = zip(weight.split(self.categories, 1), known.split(self.categories, 1), strict=True)
        vectors = torch.cat([vectors for column in columns for vectors in _with_unknown(*column)], dim=1)
        if combinations is None:
            return vectors
        by_category = vectors.transpose(0, 1).flatten(1)  # the gradient of an embedding is the same in every run
        return F.embedding(combinations, by_category).sum(1).view(len(combinations), len(vectors), -1).transpose(0, 1)


def _with_unknown(weight: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Return the vectors of a column, of which unknown ones are the mean of the others, and this mean."""
    mean = (known * weight).sum(1, keepdim=True) / known.sum(1, keepdim=True).clamp(min=1)
    return known * weight + (1 - known) * mean, mean


class EdgeMap(torch.nn.Module):
    """A learned linear map of the attributes of edges: ``[L, D]`` to ``[L, F]``."""

    def __init__(self, attributes: int, channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(attributes, channels))
        uniform(attributes, self.weight)

    def forward(self, attributes: Tensor, ptr: Tensor) -> Tensor:
        """Map the attributes of all list entries; ``ptr`` has the first entry of each model ``[M + 1]``."""
        return project(attributes.to(self.weight.dtype), self.weight, ptr)


class GNN(torch.nn.Module):
    """Message-passing layers of one variant, for one model or a stack of models (see :mod:`sopool.nn.layers`).

    Args:
        variant: The name of the variant, a key of ``VARIANTS``.
        in_channels: Number of input features ``F``.
        hidden: Width of the layers ``H``.
        layers: Number of layers.
        edges: What edges have that the network uses. Only ``gine`` and ``gine-eps`` use categories and attributes.
            Default: nothing.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> gnn = GNN("gin-0", in_channels=3, hidden=8, layers=2)
        >>> layers = gnn(torch.randn(4, 3), neighbors_of(edge_index, 4), ptr=torch.tensor([0, 2, 4]))
        >>> [tuple(h.shape) for h in layers]
        [(4, 3), (4, 8), (4, 8)]
        >>> gnn = GNN("gine", in_channels=3, hidden=8, layers=2, edges=EdgeSpec(attributes=5))
        >>> graph = neighbors_of(edge_index, 4, edge_attr=torch.randn(4, 5))
        >>> gnn(torch.randn(4, 3), graph, ptr=torch.tensor([0, 2, 4]))[-1].shape
        torch.Size([4, 8])
    """

    known: Tensor | None

    def __init__(self, variant: str, in_channels: int, hidden: int, layers: int, edges: EdgeSpec = NO_EDGES) -> None:
        super().__init__()
        check_name("GNN", variant, VARIANTS)
        self.how, linears, learn_eps, labelled = VARIANTS[variant]
        if not labelled:
            edges = EdgeSpec(weights=edges.weights)
        elif not edges.categories and not edges.attributes:
            raise ValueError(
                f"{variant} uses categories or attributes of edges, but there are none: pass edges=EdgeSpec(...), or "
                "use a network without them, such as gin-0."
            )
        self.spec = edges
        self.hidden = hidden
        self.layers = torch.nn.ModuleList()
        self.edges = torch.nn.ModuleList()
        self.maps = torch.nn.ModuleList()
        for layer in range(layers):
            widths = [hidden if layer else in_channels] + [hidden] * linears
            self.layers.append(Blocks(NormedLinear(*pair) for pair in pairwise(widths)))
            if edges.categories:
                self.edges.append(EdgeVectors(edges.categories, widths[0]))
            if edges.attributes:
                self.maps.append(EdgeMap(edges.attributes, widths[0]))
        # A buffer is stacked and saved together with the weights.
        self.register_buffer("known", torch.ones(sum(edges.categories)) if edges.categories else None)
        self.eps = torch.nn.Parameter(torch.zeros(layers)) if learn_eps else None

    @property
    def capturable(self) -> bool:
        """Whether a step can be captured into a CUDA graph: padded batches have no attributes and weights of edges."""
        return not self.spec.attributes and not self.spec.weights

    def forward(self, x: Tensor, neighbors: Adjacency, ptr: Tensor, models: int = 1) -> list[Tensor]:
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

    def _aggregate(self, x: Tensor, neighbors: Adjacency, rows: Rows, layer: int) -> Tensor:
        aggregated = self._messages(x, neighbors, rows, layer)
        if self.eps is None:
            return aggregated
        eps = self.eps.view(len(rows), -1)[:, layer : layer + 1]
        return aggregated + segment_spread(eps, rows.ptr, x.shape[0]) * x

    def _messages(self, x: Tensor, neighbors: Adjacency, rows: Rows, layer: int) -> Tensor:
        """Combine each node and the messages to it, ``[N, F]``."""
        weights = _weights_of(neighbors) if self.spec.weights else None
        if not self.edges and not self.maps:
            return aggregate(x, neighbors, self.how, weights)
        if not isinstance(neighbors, Neighbors):
            raise ValueError(
                "This network uses categories or attributes of edges, which pooled graphs do not have: use a network "
                "without them, such as gin-0."
            )
        parts = []
        if self.edges:
            vectors = self.edges[layer](self.known, combinations_of(neighbors, len(self.spec.categories)))
            if not self.maps and weights is None:
                return aggregate_labelled(x, neighbors, vectors, rows)
            parts.append(along_entries(x, neighbors, vectors, rows))
        if self.maps:
            attributes = _attributes_of(neighbors, self.spec.attributes)
            parts.append(self.maps[layer](attributes, neighbors.ptr[rows.ptr]))
        return aggregate_shifted(x, neighbors, reduce(torch.add, parts), weights)


def combinations_of(neighbors: Neighbors, columns: int) -> Tensor | None:
    """Return the combinations of categories of edges; raise a ``ValueError`` for another number of ``columns``."""
    combinations = None if neighbors.labels is None else neighbors.labels.combinations
    found = 1 if combinations is None else combinations.shape[1]
    if neighbors.labels is not None and found != columns:
        raise ValueError(
            f"This network uses {columns} columns of categories of edges, but the edges have {found}: pass as many as "
            "EdgeLabels.combinations."
        )
    return combinations


def _weights_of(neighbors: Adjacency) -> Tensor | None:
    """Return the weight of each list entry ``[L]``; None for edges of another form, which have their own weights."""
    if not isinstance(neighbors, Neighbors):
        return None
    if neighbors.values is None or neighbors.values.weights is None:
        raise ValueError(
            "This network multiplies messages by the weights of edges, but the edges have none: pass them as "
            "Neighbors.values, or use a network without weights of edges."
        )
    return neighbors.values.weights


def _attributes_of(neighbors: Neighbors, number: int) -> Tensor:
    """Return the D attributes of each list entry ``[L, D]``."""
    attributes = None if neighbors.values is None else neighbors.values.attributes
    if attributes is None or attributes.shape[1] != number:
        found = "none" if attributes is None else attributes.shape[1]
        raise ValueError(
            f"This network uses {number} attributes of edges, but the edges have {found}: pass them as "
            "Neighbors.values, or use a network without attributes of edges, such as gin-0."
        )
    return attributes
