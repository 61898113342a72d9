"""PATCHY-SAN: a sequence of nodes of each graph and the nearest nodes of each, read by 1-D convolutions."""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool._files.bounds import first_outside
from sopool.data.analysis.receptive_fields import receptive_fields
from sopool.data.extras import Extra, kept_arrays
from sopool.data.graphs import PackedGraphs, expand_segments
from sopool.models.systems import Recipe, trained

MOST_FIELD = 10
"""The number of nodes in the fields that are computed; a network may use fewer."""
MOST_NODES = 2**14
"""The largest graph whose shortest paths are searched."""
WIDTH = 10
"""The number of nodes of the sequence that the second convolution reads at a time."""
FIRST, SECOND = 16, 8
"""The channels of the two convolutions."""
WIDE = 64
"""The number of features from which on they are multiplied before they are read."""
DENSE = 128
"""The width of the dense layer."""


@dataclass(frozen=True)
class Fields(Extra):
    """The receptive field of each node of a graph's sequence ``[N, size]``, see :func:`receptive_fields`.

    Args:
        size: The number of nodes in a field.
    """

    slow = True
    size: int

    @property
    def key(self) -> str:
        """The size, and the version of the method."""
        return f"{self.size}-1"

    def build(self, store: PackedGraphs, cached: bool = True) -> "FieldTables":
        """Return the fields of all graphs."""

        def find() -> dict[str, Tensor]:
            return {"nodes": torch.from_numpy(receptive_fields(store, self.size))}

        check = partial(_check, store=store, size=self.size)
        arrays = kept_arrays(store, self.key, "fields", find, check) if cached else find()
        return FieldTables(arrays["nodes"])


def _check(arrays: dict[str, Tensor], store: PackedGraphs, size: int) -> None:
    """Raise a ``ValueError`` or ``KeyError`` if these cannot be fields of the graphs."""
    nodes = arrays["nodes"]
    if nodes.dtype != torch.int32 or nodes.shape != (store.num_nodes, size):
        raise ValueError("nodes has a wrong type or shape.")
    if first_outside(nodes.T + 1, store.node_ptr, store.sizes + 1) is not None:
        raise ValueError("nodes must be in their graphs, or -1.")


@dataclass(frozen=True, eq=False)
class FieldTables:
    """The fields of the nodes of all graphs, numbered from 0 within each graph, -1 for none, ``[N, size]``, int32."""

    nodes: Tensor

    def to(self, device: torch.device | str) -> "FieldTables":
        """Return the tables on another device."""
        return FieldTables(self.nodes.to(device))

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> Tensor:
        """Return the fields of a batch ``[N, size]``, with nodes numbered within the batch, -1 for none."""
        fields = self.nodes.index_select(0, nodes).long()
        first = expand_segments(ptr[:-1], ptr).unsqueeze(1)
        return torch.where(fields < 0, -1, fields + first)


def mean_size(train: PackedGraphs) -> int:
    """Return the mean number of nodes, rounded, at least the width of the second convolution."""
    return max(WIDTH, round(float(train.sizes.double().mean()))) if len(train) else WIDTH


def too_large(store: PackedGraphs) -> str | None:
    """Say if a graph is too large for a search of all shortest paths."""
    largest = int(store.sizes.max()) if len(store) else 0
    if largest <= MOST_NODES:
        return None
    return f"searches all shortest paths, for graphs of up to {MOST_NODES:,} nodes; here one has {largest:,}"


@trained(
    "patchy-san",
    sees="features of the nodes in the order of betweenness, and of the nearest 5 or 10 of each",
    paper="Niepert et al., 2016",
    cost="w k, once N E",
    recipe=Recipe(epochs=150, steps=None, batch_size=32, lr=0.001, optimizer="rmsprop"),
    grid={"k": (10, 5), "batch_size": (32, 64)},
    fitted={"nodes": mean_size},
    extras={"fields": Fields(MOST_FIELD)},
    refuses=too_large,
)
class PatchySan(torch.nn.Module):
    r"""The convolutional neural network PATCHY-SAN (PSCN).

    The first w nodes of each graph are read with their fields of k nodes, see :func:`receptive_fields`; where a graph
    has fewer, and where a node reaches fewer, there are zeros. One convolution reads the field of each node, a second
    one 10 nodes of the sequence at a time:

    .. math:: Y_r = \mathrm{relu}(W \, [x_{r, 1}; \ldots; x_{r, k}] + b) \in \mathbb{R}^{16}, \quad
        Z_r = \mathrm{relu}(V \, [Y_r; \ldots; Y_{r + 9}] + c) \in \mathbb{R}^{8}

    Then follow a dense layer of 128 with dropout 0.5, and the scores.

    Args:
        in_channels: Number of input features ``F``.
        out_channels: Number of scores ``C``.
        hidden: Not used: the widths are those of the paper.
        k: Number of nodes in a field, at most 10. Default: ``10``.
        nodes: Length w of the sequence, at least 10. Default: ``10``. Evaluations use the mean number of nodes of the
            training graphs.
    """

    draws = False

    def __init__(self, in_channels: int, out_channels: int, hidden: int, k: int = 10, nodes: int = WIDTH) -> None:
        super().__init__()
        if not 1 <= k <= MOST_FIELD:
            raise ValueError(f"k={k}: it must be from 1 to {MOST_FIELD}.")
        if nodes < WIDTH:
            raise ValueError(f"nodes={nodes}: it must be at least {WIDTH}.")
        self.k = k
        self.nodes = nodes
        self.first = torch.nn.Linear(k * in_channels, FIRST)
        self.second = torch.nn.Conv1d(FIRST, SECOND, WIDTH)
        self.dense = torch.nn.Linear(SECOND * (nodes - WIDTH + 1), DENSE)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(DENSE, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, fields: Tensor) -> Tensor:
        """Return scores ``[G, C]`` of graphs with features ``[N, F]`` and fields ``[N, 10]``."""
        sizes = batch.bincount()
        place = torch.arange(self.nodes, device=x.device)
        at = (sizes.cumsum(0) - sizes).unsqueeze(1) + place
        at = torch.where(place < sizes.unsqueeze(1), at, -1)  # [G, w]
        read = F.pad(fields[:, : self.k], (0, 0, 0, 1), value=-1)[at].flatten(0, 1)  # [G w, k]
        seen = (self._read(x, read) + self.first.bias).relu().view(len(sizes), self.nodes, FIRST)
        found = self.second(seen.transpose(1, 2)).relu()
        scores: Tensor = self.head(self.drop(self.dense(found.flatten(1)).relu()))
        return scores

    def _read(self, x: Tensor, read: Tensor) -> Tensor:
        """Return the products of the first convolution for nodes ``[R, k]``, -1 for none: ``[N, F]`` to ``[R, 16]``.

        Many features are multiplied by the weights of all positions once for each node, and few where they are read,
        which costs more products but has no backward pass.
        """
        if x.shape[1] < WIDE:
            return F.pad(x, (0, 0, 0, 1))[read].flatten(1) @ self.first.weight.t()
        weight = self.first.weight.view(FIRST, self.k, x.shape[1]).permute(2, 1, 0).flatten(1)
        every = F.pad(x @ weight, (0, 0, 0, 1)).view(-1, FIRST)  # [(N + 1) k, 16]; the last node has zeros
        at = torch.where(read < 0, x.shape[0], read) * self.k + torch.arange(self.k, device=x.device)
        return F.embedding_bag(at, every, mode="sum")
