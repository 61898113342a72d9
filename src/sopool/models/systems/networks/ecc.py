"""ECC: convolutions whose weights depend on the edge, on the graphs and on coarser ones."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import BatchNorm

from sopool.data.analysis.kron import MOST_NODES
from sopool.data.extras import CoarserBatch, EdgeLabels, EdgeNumbers, KronPyramid, edge_kinds, edge_numbers
from sopool.data.graphs import PackedGraphs
from sopool.models.systems import Recipe, trained
from sopool.nn import MeanAggregation
from sopool.ops.message_passing.entries import Places, collect, gather
from sopool.ops.message_passing.neighbors import Neighbors, aggregate
from sopool.ops.segment.standard import positions

CONVOLUTIONS = 3
"""The number of convolutions of each level."""
COEFFICIENTS = 4
"""The width of the hidden layer that turns the numbers of an edge into its weights."""
DENSE = 64
"""The width of the dense layer."""


class LabelledEdges(NamedTuple):
    """The edges of a batch by label, as lists: list ``i * kinds + l`` has the sources of edges to i with label l."""

    lists: Neighbors
    sizes: Tensor
    """The number of edges to each node, from itself included ``[N, 1]``."""

    @classmethod
    def of(cls, edge_index: Tensor, labels: Tensor, nodes: int, kinds: int) -> "LabelledEdges":
        """Return the lists. If there are several kinds, the last one is that of a node's edge to itself.

        Args:
            edge_index: The edges ``[2, E]``.
            labels: The label of each edge ``[E]``. Edges whose label belongs to no kind are left out.
            nodes: The number of nodes N.
            kinds: The number of kinds.
        """
        loops = torch.arange(nodes, device=edge_index.device)
        known = labels < max(1, kinds - 1)
        source, target = torch.cat([edge_index[:, known], loops.expand(2, -1)], 1)
        kind = torch.cat([labels[known], torch.full_like(loops, kinds - 1)])
        place = target * kinds + kind
        sizes = torch.bincount(target, minlength=nodes).unsqueeze(1)
        transposed = (_starts(source, nodes), place[source.argsort()])
        return cls(Neighbors(_starts(place, nodes * kinds), source[place.argsort()], transposed), sizes)

    def means(self, x: Tensor) -> Tensor:
        """Return the sum over the edges of each kind, divided by the number of all edges to the node ``[N, L F]``."""
        return aggregate(x, self.lists, "sum").view(len(x), -1) / self.sizes

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean of each node and its neighbors ``[N, F]``."""
        return self.means(x).view(len(x), -1, x.shape[1]).sum(1)


class NumberedEdges(NamedTuple):
    """The edges of a batch, each with numbers, and an edge of each node to itself with zeros."""

    sources: Places
    targets: Places
    numbers: Tensor
    """The numbers ``[E + N, D]``."""

    @classmethod
    def of(cls, edge_index: Tensor, numbers: Tensor, nodes: int) -> "NumberedEdges":
        """Return the edges ``[2, E]`` with numbers ``[E, D]``."""
        loops = torch.arange(nodes, device=edge_index.device)
        source, target = torch.cat([edge_index, loops.expand(2, -1)], 1)
        every = torch.cat([numbers, numbers.new_zeros(nodes, numbers.shape[1])])
        sources, targets = (Places(ends, _starts(ends, nodes), ends.argsort()) for ends in (source, target))
        return cls(sources, targets, every)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean of each node and its neighbors ``[N, F]``."""
        return self.mean_of(gather(x, self.sources))

    def mean_of(self, messages: Tensor) -> Tensor:
        """Return the mean of the messages ``[E + N, F]`` to each node ``[N, F]``."""
        return collect(messages, self.targets) / self.targets.ptr.diff().unsqueeze(1)


def _starts(numbers: Tensor, count: int) -> Tensor:
    """Return where each number from 0 to ``count - 1`` starts once they are sorted ``[count + 1]``."""
    return positions(torch.bincount(numbers, minlength=count))


class LabelConvolution(torch.nn.Module):
    r"""An edge-conditioned convolution with one matrix for each label of an edge.

    .. math:: h'_i = b + \frac{1}{|N(i)|} \sum_{j \in N(i)} \Theta_{L(j, i)} h_j, \quad i \in N(i)

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of output features ``H``.
        kinds: Number of matrices ``L``.
    """

    def __init__(self, in_channels: int, out_channels: int, kinds: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(kinds * in_channels, out_channels))
        for matrix in self.weight.split(in_channels):
            torch.nn.init.xavier_uniform_(matrix)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, edges: LabelledEdges) -> Tensor:
        """Return node features ``[N, H]``."""
        return edges.means(x) @ self.weight + self.bias


class NumberConvolution(torch.nn.Module):
    r"""An edge-conditioned convolution whose matrices a small network makes of the numbers of an edge.

    .. math:: \Theta(e) = \Theta_0 + \sum_r \mathrm{ReLU}(V e + c)_r \, \Theta_r

    Its last layer is linear, so messages are added up before they are multiplied by the R + 1 matrices.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of output features ``H``.
        numbers: Number of numbers of an edge ``D``.
    """

    def __init__(self, in_channels: int, out_channels: int, numbers: int) -> None:
        super().__init__()
        self.filter = torch.nn.Linear(numbers, COEFFICIENTS)
        self.weight = torch.nn.Parameter(torch.empty((COEFFICIENTS + 1) * in_channels, out_channels))
        for matrix in self.weight.split(in_channels):
            torch.nn.init.xavier_uniform_(matrix)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, edges: NumberedEdges) -> Tensor:
        """Return node features ``[N, H]``."""
        coefficients = torch.nn.functional.pad(self.filter(edges.numbers).relu(), (1, 0), value=1)
        messages = coefficients.unsqueeze(2) * gather(x, edges.sources).unsqueeze(1)
        return edges.mean_of(messages.flatten(1)) @ self.weight + self.bias


class Level(torch.nn.Module):
    """Some convolutions on the same graphs, each with batch norm and ReLU."""

    def __init__(self, convolutions: list[torch.nn.Module], channels: int) -> None:
        super().__init__()
        self.convolutions = torch.nn.ModuleList(convolutions)
        self.norms = torch.nn.ModuleList(BatchNorm(channels, allow_single_element=True) for _ in convolutions)

    def forward(self, x: Tensor, edges: LabelledEdges | NumberedEdges) -> Tensor:
        """Return node features ``[N, H]``."""
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = norm(convolution(x, edges)).relu()
        return x


def too_large(store: PackedGraphs) -> str | None:
    """Return why some graphs cannot be coarsened; ``None`` if all can."""
    largest = int(store.sizes.max()) if len(store) else 0
    if largest <= MOST_NODES:
        return None
    return f"coarsening takes n^3 steps: {largest:,} nodes in a graph, of at most {MOST_NODES:,}"


@trained(
    "ecc",
    sees="neighbors in three steps by the label of their edge, if edges have labels or attributes; the same on a "
    "coarser graph",
    paper="Simonovsky and Komodakis, 2017",
    cost="3 L E; once n^3",
    recipe=Recipe(epochs=150, steps=None, lr=0.01, halve_every=25, optimizer="sgd", momentum=0.9),
    grid={"hidden": (32, 64), "lr": (0.01, 0.1)},
    extras={"labels": EdgeLabels(), "numbers": EdgeNumbers(), "coarser": KronPyramid(levels=1)},
    fitted={"kinds": edge_kinds, "width": edge_numbers},
    refuses=too_large,
)
class EdgeConditioned(torch.nn.Module):
    """The edge-conditioned convolutional network, with two levels of three convolutions.

    On the graphs themselves, the weights of a convolution depend on the label of an edge; a node's edge to itself has
    a label of its own. If edges have numbers instead, a small network makes the weights of them. If they have neither,
    or all the same label, this is a convolution by the mean of the neighbors. A node of the coarser graph starts with
    the mean of itself and its neighbors, and there the weights depend on the weight of an edge
    (:mod:`sopool.data.analysis.kron`). The mean of its nodes goes through a dense layer of 64 with dropout.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Width of the convolutions.
        rate: Dropout of the dense layer. Default: ``0.25``.
        kinds: Number of labels of edges. Edges with further labels are left out. Default: ``1``.
        width: Number of numbers of an edge ``D``, which are used instead of labels; 0 for none. Default: ``0``.
    """

    draws = False

    def __init__(
        self, in_channels: int, out_channels: int, hidden: int, rate: float = 0.25, kinds: int = 1, width: int = 0
    ) -> None:
        super().__init__()
        self.kinds = kinds + 1 if kinds > 1 else 1
        widths = [in_channels, *[hidden] * CONVOLUTIONS]
        self.scale = BatchNorm(width, affine=False, allow_single_element=True) if width else None
        fine: list[torch.nn.Module] = [
            NumberConvolution(before, hidden, width) if width else LabelConvolution(before, hidden, self.kinds)
            for before in widths[:-1]
        ]
        self.fine = Level(fine, hidden)
        self.coarse = Level([NumberConvolution(hidden, hidden, 1) for _ in range(CONVOLUTIONS)], hidden)
        self.readout = MeanAggregation()
        self.dense = torch.nn.Linear(hidden, DENSE)
        self.drop = torch.nn.Dropout(rate)
        self.head = torch.nn.Linear(DENSE, out_channels)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, *, labels: Tensor, numbers: Tensor, coarser: CoarserBatch
    ) -> Tensor:
        """Return scores ``[G, C]`` of graphs with features ``[N, F]``."""
        edges: LabelledEdges | NumberedEdges
        if self.scale is None:
            edges = LabelledEdges.of(edge_index, labels, len(x), self.kinds)
        else:
            edges = NumberedEdges.of(edge_index, self.scale(numbers.to(x.dtype)), len(x))
        x = edges.mean(self.fine(x, edges)).index_select(0, coarser.kept)
        weights = coarser.weights.to(x.dtype).unsqueeze(1)
        x = self.coarse(x, NumberedEdges.of(coarser.edge_index, weights, len(x)))
        pooled = self.readout(x, coarser.batch)
        scores: Tensor = self.head(self.drop(self.dense(pooled).relu()))
        return scores
