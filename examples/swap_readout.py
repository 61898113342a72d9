"""Replace the readout of a PyTorch Geometric network with second-order pooling.

You learn how to pass a readout of ``sopool.nn`` to an ordinary PyG network, how wide its output is, and which options
keep its values small. The script trains the same network on MUTAG (188 molecules, two classes) with three readouts.

The printed accuracies come from one split with 38 test molecules, too few to rank the readouts. See
docs/five_minutes_compare.md for a proper comparison.
"""

import torch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, SumAggregation

from sopool.data import load, to_pyg
from sopool.nn import AttentionalSecondOrderAggregation, BilinearSecondOrderAggregation


class Network(torch.nn.Module):
    """Two GIN layers, a readout and a linear classifier."""

    def __init__(self, features: int, readout: torch.nn.Module, width: int, hidden: int = 32) -> None:
        super().__init__()
        self.convs = torch.nn.ModuleList(GINConv(MLP([size, hidden, hidden])) for size in (features, hidden))
        self.readout = readout  # any PyG or sopool aggregation
        self.head = torch.nn.Linear(width, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        """Return the scores of both classes, ``[G, 2]``."""
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.head(self.readout(x, batch))


# Step 1: load MUTAG as a list of PyG Data, with one-hot atom types as node features.
graphs = to_pyg(load("MUTAG"))
atom_types = 1 + max(int(graph.node_label.max()) for graph in graphs)
for graph in graphs:
    graph.x = torch.nn.functional.one_hot(graph.node_label, atom_types).float()

# Step 2: split at random. MUTAG is sorted by class, so slices of it would contain one class only.
shuffled = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0)).tolist()
train = [graphs[i] for i in shuffled[:150]]
test = [graphs[i] for i in shuffled[150:]]

# Step 3: choose readouts, each with the width of its output. Second-order entries are sums of products over all nodes:
# normalize="size" divides them by the number of nodes, normalize="sqrt" takes signed roots and scales to length 1.
torch.manual_seed(0)
readouts = [
    (SumAggregation(), 32),
    (AttentionalSecondOrderAggregation(32, normalize="size"), 32),
    (BilinearSecondOrderAggregation(32, rank=8, normalize="sqrt"), 8 * 8),
]

# Step 4: train the same network with each readout, and count correct predictions on the test graphs.
for readout, width in readouts:
    torch.manual_seed(0)
    model = Network(atom_types, readout, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(15):
        for batch in DataLoader(train, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()
    (batch,) = DataLoader(test, batch_size=len(test))
    correct = model(batch.x, batch.edge_index, batch.batch).argmax(1) == batch.y
    print(f"{type(model.readout).__name__:<34} {int(correct.sum())} of {len(test)} test molecules correct")
