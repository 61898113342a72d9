"""The flat classifier of the paper: message passing, one readout of all layers, and a linear classifier.

The attributes of graphs, if a model uses them, are appended to the graph embedding. If each layer has its own readout
and classifier, so have they, since they belong to no layer; the scores of all classifiers are added up.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest

import torch
from torch import Tensor

from sopool.models.base import Classifier, Scored, add
from sopool.models.config import ModelConfig
from sopool.models.frozen import freeze
from sopool.nn.aggr.base import GraphReadout
from sopool.nn.aggr.pairs import PairSecondOrderAggregation
from sopool.nn.dropout import Dropout
from sopool.nn.gnn import GNN
from sopool.nn.layers import GraphNorm, Linear
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
        self.gnn = GNN(config.gnn, in_channels, config.hidden, config.layers, config.edges)
        widths = readout_widths(config, in_channels)
        of_layers = layer_widths(config, in_channels)
        self.readouts = torch.nn.ModuleList(
            make_readout(config.pool, each, **config.effective_options)
            for each in ([of_layers] if config.join == "concat" else of_layers)
        )
        freeze(self.readouts, every=config.frozen)
        pooled = [pooled_width(readout, width) for readout, width in zip(self.readouts, widths, strict=True)]
        embedded = embedding_widths(config, pooled)
        self.norms = torch.nn.ModuleList(GraphNorm(width) for width in embedded if config.pooled_norm)
        self.hidden = torch.nn.ModuleList(Linear(width, config.head_hidden) for width in embedded if config.head_hidden)
        self.heads = torch.nn.ModuleList(Linear(config.head_hidden or width, classes) for width in embedded)

    def embed(
        self, x: Tensor, neighbors: Neighbors, ptr: Tensor, graph_x: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor | None]]:
        """Return one graph embedding, or one for each layer, each with the additional loss of each graph.

        The attributes of graphs are at the end of a single embedding, or are another one after those of the layers.
        """
        layers = self.gnn(x, neighbors, ptr, self.models)
        layers = [join(layers)] if self.config.join == "concat" else layers
        graphs = GraphStructure(ptr, neighbors)
        pooled = [read(readout, h, graphs) for readout, h in zip(self.readouts, layers, strict=True)]
        penalties = [penalty for _, penalty in pooled]
        every = self.with_attributes([embedding for embedding, _ in pooled], graph_x)
        return list(zip_longest(every, penalties))

    def with_attributes(self, pooled: list[Tensor], graph_x: Tensor | None) -> list[Tensor]:
        """Return the graph embeddings: those of the readouts, with the attributes of graphs if the model uses them."""
        if self.config.join == "concat":
            return [self.append(pooled[0], graph_x)]
        return [*pooled, self.attributes(graph_x)] if self.config.graph_attributes else pooled

    def decays(self) -> list[Tensor] | None:
        """Return the decoupled weight decay of each parameter, which only pairs of nodes have."""
        pairs = [readout for readout in self.readouts if isinstance(readout, PairSecondOrderAggregation)]
        if not any(readout.decay for readout in pairs):
            return None
        decays = {id(parameter): torch.zeros_like(parameter) for parameter in self.parameters()}
        for readout, after in zip(pairs, self.hidden or self.heads, strict=False):  # attributes may have another head
            decays[id(after.weight)][..., : readout.pair_width] = readout.decay
            if id(readout.weight) in decays:
                decays[id(readout.weight)].fill_(readout.decay)
        return list(decays.values())

    def classify(
        self,
        x: Tensor,
        neighbors: Neighbors,
        ptr: Tensor,
        graph_x: Tensor | None = None,
        dropout: Dropout | None = None,
    ) -> Scored:
        """Return scores and penalties of graphs with features ``[N, F]`` and first nodes ``ptr`` ``[G + 1]``."""
        embedded = self.embed(x, neighbors, ptr, graph_x)
        penalty = reduce(add, (extra for _, extra in embedded))
        return Scored(self.scores([embedding for embedding, _ in embedded], dropout), penalty)

    def scores(self, embeddings: Sequence[Tensor], dropout: Dropout | None = None) -> Tensor:
        """Return the scores ``[G, C]``, given the graph embeddings of :meth:`embed`."""
        each = (self.head(embedding, place, dropout) for place, embedding in enumerate(embeddings))
        return reduce(torch.add, each)

    def head(self, pooled: Tensor, place: int, dropout: Dropout | None = None) -> Tensor:
        """Return the scores ``[G, C]`` of one of the graph embeddings of :meth:`embed`, given its position there."""
        if self.norms:
            pooled = self.norms[place](pooled)
        if self.hidden:
            pooled = self.hidden[place](pooled).relu()
        return self.score(pooled, self.heads[place], place, dropout)


def read(readout: torch.nn.Module, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, Tensor | None]:
    """Return the graph embedding of either kind of readout, and the additional loss of each graph or ``None``."""
    if isinstance(readout, GraphReadout):
        return readout.read(x, graphs)
    return readout(x, ptr=graphs.ptr), None


def readout_widths(config: ModelConfig, in_channels: int) -> list[int]:
    """Return the input width of each readout: that of all layers together, or of each layer."""
    layers = layer_widths(config, in_channels)
    return [sum(layers)] if config.join == "concat" else layers


def layer_widths(config: ModelConfig, in_channels: int) -> list[int]:
    """Return the widths of the input features and of the layers."""
    return [in_channels] + [config.hidden] * config.layers


def embedding_widths(config: ModelConfig, pooled: list[int]) -> list[int]:
    """Return the widths of the graph embeddings, given those of the readouts."""
    if config.join == "concat":
        return [pooled[0] + config.graph_attributes]
    return [*pooled, config.graph_attributes] if config.graph_attributes else pooled


def pooled_width(readout: torch.nn.Module, channels: int) -> int:
    """Return the output width of a readout; a PyG aggregation without ``out_channels`` keeps the width of its input."""
    width = getattr(readout, "out_channels", channels)
    if width is None:
        raise ValueError(
            f"{type(readout).__name__} does not define the width of its output. Pass channels to "
            "SegmentAggregation.__init__, or define out_channels in the class."
        )
    return int(width)
