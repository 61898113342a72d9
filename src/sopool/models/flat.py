"""The flat classifier of the paper: message passing, one readout over all layers, linear scores."""

import torch
from torch import Tensor

from sopool.models.base import Classifier, Scored, add
from sopool.models.config import ModelConfig
from sopool.models.frozen import freeze
from sopool.nn.dropout import Dropout
from sopool.nn.gnn import GNN
from sopool.nn.layers import GraphNorm, Linear
from sopool.nn.pool.base import PooledReadout
from sopool.nn.registry import make_readout
from sopool.ops._columns import join
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.structure import GraphStructure


class FlatClassifier(Classifier):
    """Graphs to scores of classes; one model, or a stack of them (see :func:`sopool.models.stack`)."""

    def __init__(self, config: ModelConfig, in_channels: int, classes: int) -> None:
        super().__init__()
        self.config = config
        self.gnn = GNN(config.gnn, in_channels, config.hidden, config.layers, config.edge_labels)
        widths = readout_widths(config, in_channels)
        self.readouts = torch.nn.ModuleList(
            make_readout(config.pool, width, **config.effective_options) for width in widths
        )
        freeze(self.readouts, every=config.frozen)
        pooled = [pooled_width(readout, width) for readout, width in zip(self.readouts, widths, strict=True)]
        self.norms = torch.nn.ModuleList(GraphNorm(width) for width in pooled if config.pooled_norm)
        self.hidden = torch.nn.ModuleList(Linear(width, config.head_hidden) for width in pooled if config.head_hidden)
        self.heads = torch.nn.ModuleList(Linear(config.head_hidden or width, classes) for width in pooled)

    def embed(self, x: Tensor, neighbors: Neighbors, ptr: Tensor) -> list[tuple[Tensor, Tensor | None]]:
        """One graph embedding [G, ...], or one for each layer, with what each graph adds to its loss [G]."""
        layers = self.gnn(x, neighbors, ptr, self.models)
        layers = [join(layers)] if self.config.join == "concat" else layers
        graphs = GraphStructure(ptr, neighbors)
        return [read(readout, h, graphs) for readout, h in zip(self.readouts, layers, strict=True)]

    def classify(self, x: Tensor, neighbors: Neighbors, ptr: Tensor, dropout: Dropout | None = None) -> Scored:
        """Features [N, in], the neighbors of each node, where each graph starts [G + 1] -> scores [G, classes]."""
        total: Tensor | None = None
        penalty: Tensor | None = None
        for place, (pooled, extra) in enumerate(self.embed(x, neighbors, ptr)):
            total = add(total, self.head(pooled, place, dropout))
            penalty = add(penalty, extra)
        assert total is not None
        return Scored(total, penalty)

    def head(self, pooled: Tensor, place: int, dropout: Dropout | None = None) -> Tensor:
        """What a graph embedding [G, ...], the one at a place in :meth:`embed`, says for each class [G, classes]."""
        if self.norms:
            pooled = self.norms[place](pooled)
        if self.hidden:
            pooled = self.hidden[place](pooled).relu()
        return self.score(pooled, self.heads[place], place, dropout)


def read(readout: torch.nn.Module, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, Tensor | None]:
    """A graph embedding [G, ...] by either kind of readout, with what each graph adds to its loss [G]."""
    if isinstance(readout, PooledReadout):
        pooled: tuple[Tensor, Tensor | None] = readout(x, graphs)
        return pooled
    return readout(x, ptr=graphs.ptr), None


def readout_widths(config: ModelConfig, in_channels: int) -> list[int]:
    """What each readout sees of a node: all layers side by side, or one layer each."""
    layers = [in_channels] + [config.hidden] * config.layers
    return [sum(layers)] if config.join == "concat" else layers


def pooled_width(readout: torch.nn.Module, channels: int) -> int:
    """The width of what a readout makes of ``channels``; those of PyG that are used here keep it."""
    width = getattr(readout, "out_channels", channels)
    if width is None:
        raise ValueError(
            f"{type(readout).__name__} does not say how wide its result is: give SegmentAggregation.__init__ the "
            "channels, or the class an out_channels of its own."
        )
    return int(width)
