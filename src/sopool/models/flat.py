"""The flat classifier of the paper: message passing, one readout over all layers, linear scores."""

import torch
from torch import Tensor

from sopool.models.config import ModelConfig
from sopool.nn.dropout import Dropout
from sopool.nn.gnn import GNN
from sopool.nn.registry import make_readout
from sopool.nn.stacked import Linear
from sopool.ops.joined import join
from sopool.ops.neighbors import Neighbors


class FlatClassifier(torch.nn.Module):
    """Graphs to scores of classes; one model, or a stack of them (see :func:`sopool.models.stack`)."""

    def __init__(self, config: ModelConfig, in_channels: int, classes: int) -> None:
        super().__init__()
        self.config = config
        self.gnn = GNN(config.gnn, in_channels, config.hidden, config.layers)
        widths = [in_channels] + [config.hidden] * config.layers
        widths = [sum(widths)] if config.join == "concat" else widths
        self.readouts = torch.nn.ModuleList(make_readout(config.pool, width, **config.pool_options) for width in widths)
        self.heads = torch.nn.ModuleList(
            Linear(pooled_width(readout, width), classes) for readout, width in zip(self.readouts, widths, strict=True)
        )

    @property
    def models(self) -> int:
        """How many models are stacked in it."""
        weight = next(self.heads.parameters())
        return weight.shape[0] if weight.dim() == 3 else 1

    def embed(self, x: Tensor, neighbors: Neighbors, ptr: Tensor) -> list[Tensor]:
        """Graph embeddings [G, ...]: one, or one for each layer."""
        layers = self.gnn(x, neighbors, ptr, self.models)
        layers = [join(layers)] if self.config.join == "concat" else layers
        return [readout(h, ptr=ptr) for readout, h in zip(self.readouts, layers, strict=True)]

    def forward(self, x: Tensor, neighbors: Neighbors, ptr: Tensor, dropout: Dropout | None = None) -> Tensor:
        """Features [N, in], whom each node hears, where each graph starts [G + 1] -> scores [G, classes]."""
        total: Tensor | None = None
        for place, (pooled, head) in enumerate(zip(self.embed(x, neighbors, ptr), self.heads, strict=True)):
            if dropout is not None and self.config.dropout_on == "embedding":
                pooled = dropout(pooled, place)
            scores = head(pooled)
            if dropout is not None and self.config.dropout_on == "logits":
                scores = dropout(scores, place)
            total = scores if total is None else total + scores
        assert total is not None
        return total


def pooled_width(readout: torch.nn.Module, channels: int) -> int:
    """The width of what a readout makes of ``channels``; those of PyG that are used here keep it."""
    return int(getattr(readout, "out_channels", channels))
