"""A custom GNN in the bank: residual message passing, eight models trained side by side as one.

A layer made of the package's own parts (``aggregate``, layers of ``sopool.nn.layers``) works alone and in a stack of
models: parameters get one more axis, and a batch holds the graphs of model 0, those of model 1, and so on.
The learning rate was set by a look at what comes out: the figures are no estimate.
"""

import torch
from torch.nn.functional import cross_entropy

from sopool.data import default_encoder, load
from sopool.models import FlatClassifier, ModelConfig, stack
from sopool.nn.gnn import GNN
from sopool.nn.layers import model_rows
from sopool.ops.message_passing.neighbors import Neighbors, aggregate
from sopool.training.bank.batching import GraphTables


class ResidualGNN(GNN):
    """Each layer adds to what the one before gave."""

    def forward(self, x: torch.Tensor, neighbors: Neighbors, ptr: torch.Tensor, models: int = 1) -> list[torch.Tensor]:
        """The input and the output of each layer."""
        rows = model_rows(ptr, models)
        out = [x]
        for layer in self.layers:
            message = layer(aggregate(out[-1], neighbors, self.how), rows)
            out.append(message + out[-1] if message.shape == out[-1].shape else message)
        return out


class ResidualClassifier(FlatClassifier):
    """The flat classifier with another GNN; readout and scores are as ever."""

    def __init__(self, config: ModelConfig, in_channels: int, classes: int) -> None:
        super().__init__(config, in_channels, classes)
        self.gnn = ResidualGNN(config.gnn, in_channels, config.hidden, config.layers)


torch.manual_seed(0)
graphs = load("MUTAG")
models = 8
batch_size = 32
tables = GraphTables.build(graphs, default_encoder(graphs).fit(graphs).transform(graphs))
mixed = torch.randperm(len(graphs))
train = mixed[:150]
test = mixed[150:]

config = ModelConfig(hidden=16, pool_options={"rank": 8, "normalize": "sqrt"})
bank = stack([ResidualClassifier(config, tables.features.width, classes=2) for _ in range(models)])
optimiser = torch.optim.Adam(bank.parameters(), lr=0.003)
for _ in range(100):
    drawn = torch.stack([train[torch.randperm(len(train))[:batch_size]] for _ in range(models)])  # each its own graphs
    optimiser.zero_grad()
    losses = cross_entropy(bank(*tables.batch(drawn)), tables.labels[drawn].flatten(), reduction="none")
    losses.view(models, -1).mean(1).sum().backward()
    optimiser.step()

scores = bank.eval()(*tables.batch(test.expand(models, -1))).view(models, len(test), -1)
accuracy = (scores.argmax(2) == tables.labels[test]).float().mean(1)
print(f"{models} models, {sum(p.numel() for p in bank.parameters()) // models:,} parameters each, trained as one")
print("accuracy of each on the graphs left out: " + ", ".join(f"{value:.2f}" for value in accuracy))
