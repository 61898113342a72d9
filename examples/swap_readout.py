"""Swap a readout in a PyTorch Geometric model: one line, trained on MUTAG with a sum and with second-order pooling."""

import torch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, SumAggregation

from sopool.data import load, to_pyg
from sopool.nn import AttentionalSecondOrderAggregation, BilinearSecondOrderAggregation


class Network(torch.nn.Module):
    """Two GIN layers, a readout, linear scores."""

    def __init__(self, features: int, readout: torch.nn.Module, width: int, hidden: int = 32) -> None:
        super().__init__()
        self.convs = torch.nn.ModuleList(GINConv(MLP([size, hidden, hidden])) for size in (features, hidden))
        self.readout = readout  # the only line that differs
        self.head = torch.nn.Linear(width, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        """Scores [graphs, 2]."""
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.head(self.readout(x, batch))


graphs = to_pyg(load("MUTAG"))
symbols = 1 + max(int(graph.node_label.max()) for graph in graphs)
for graph in graphs:
    graph.x = torch.nn.functional.one_hot(graph.node_label, symbols).float()
shuffled = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0)).tolist()
train, test = ([graphs[i] for i in part] for part in (shuffled[:150], shuffled[150:]))

readouts = [
    (SumAggregation(), 32),
    (AttentionalSecondOrderAggregation(32, normalize="size"), 32),
    (BilinearSecondOrderAggregation(32, rank=8, normalize="sqrt"), 8 * 8),
]
for readout, width in readouts:
    torch.manual_seed(0)
    model = Network(symbols, readout, width)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(15):
        for batch in DataLoader(train, batch_size=32, shuffle=True):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimiser.step()
    (batch,) = DataLoader(test, batch_size=len(test))
    right = model(batch.x, batch.edge_index, batch.batch).argmax(1) == batch.y
    print(f"{type(model.readout).__name__:<34} right on {int(right.sum())} of {len(test)} molecules left out")
