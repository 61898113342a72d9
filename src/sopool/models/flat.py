"""The flat classifier of the paper: message passing, one readout of all layers, and a linear classifier."""

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
    """A classifier that pools once, after the last message-passing layer.

    It is one model or a stack of models (see :func:`sopool.models.stack`).

    Args:
        config: The architecture.
        in_channels: Number of input features ``F``.
        classes: Number of classes ``C``.

    Examples:
        >>> import torch
        >>> from sopool.models import ModelConfig
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> model = FlatClassifier(ModelConfig(hidden=8, layers=2), in_channels=3, classes=2)
        >>> model(torch.randn(4, 3), neighbors_of(edge_index, 4), ptr=torch.tensor([0, 2, 4])).shape
        torch.Size([2, 2])
    """

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

    def embed(
        self, x: Tensor, neighbors: Neighbors, ptr: Tensor, graph_x: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor | None]]:
        """Return one graph embedding, or one for each layer, each with the additional loss of each graph."""
        layers = self.gnn(x, neighbors, ptr, self.models)
        layers = [join(layers)] if self.config.join == "concat" else layers
        graphs = GraphStructure(ptr, neighbors)
        return [read(readout, h, graphs) for readout, h in zip(self.readouts, layers, strict=True)]

    def classify(
        self,
        x: Tensor,
        neighbors: Neighbors,
        ptr: Tensor,
        graph_x: Tensor | None = None,
        dropout: Dropout | None = None,
    ) -> Scored:
        """Return scores and penalties of graphs with features ``[N, F]`` and first nodes ``ptr`` ``[G + 1]``."""
        total: Tensor | None = None
        penalty: Tensor | None = None
        for place, (pooled, extra) in enumerate(self.embed(x, neighbors, ptr, graph_x)):
            total = add(total, self.head(pooled, place, dropout))
            penalty = add(penalty, extra)
        assert total is not None
        return Scored(total, penalty)

    def head(self, pooled: Tensor, place: int, dropout: Dropout | None = None) -> Tensor:
        """Return the scores ``[G, C]`` of one of the graph embeddings of :meth:`embed`, given its position there."""
        if self.norms:
            pooled = self.norms[place](pooled)
        if self.hidden:
            pooled = self.hidden[place](pooled).relu()
        return self.score(pooled, self.heads[place], place, dropout)


def read(readout: torch.nn.Module, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, Tensor | None]:
    """Return the graph embedding of either kind of readout, and the additional loss of each graph or ``None``."""
    if isinstance(readout, PooledReadout):
        pooled: tuple[Tensor, Tensor | None] = readout(x, graphs)
        return pooled
    return readout(x, ptr=graphs.ptr), None


def readout_widths(config: ModelConfig, in_channels: int) -> list[int]:
    """Return the input width of each readout: that of all layers together, or of each layer."""
    layers = [in_channels] + [config.hidden] * config.layers
    return [sum(layers)] if config.join == "concat" else layers


def pooled_width(readout: torch.nn.Module, channels: int) -> int:
    """Return the output width of a readout; a PyG aggregation without ``out_channels`` keeps the width of its input."""
    width = getattr(readout, "out_channels", channels)
    if width is None:
        raise ValueError(
            f"{type(readout).__name__} does not define the width of its output. Pass channels to "
            "SegmentAggregation.__init__, or define out_channels in the class."
        )
    return int(width)
