"""The usual PyTorch Geometric training loop: ``Data`` objects, ``DataLoader``, ``GINConv``, ``to_dense_batch``.

It trains one model at a time.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv
from torch_geometric.utils import to_dense_batch

from benchmarks.rivals import BATCH, DROPOUT, HIDDEN, LAYERS, LEARNING_RATE, RANK, STEPS
from sopool.data import NodeFeatures, PackedGraphs

EVALUATION_BATCH = 256


def make_graphs(store: PackedGraphs, rows: Tensor, labels: Tensor) -> list[Data]:
    """Return one ``Data`` for each graph of the store; ``rows`` ``[N, F]`` are the features of all nodes."""
    edges = store.edge_index.long().split(store.edge_ptr.diff().tolist(), dim=1)
    parts = rows.split(store.sizes.tolist())
    # Copies, not views: with views, PyG would copy the storage of the whole data set.
    return [
        Data(x=x.clone(), edge_index=edge_index.clone(), y=y)
        for x, edge_index, y in zip(parts, edges, labels.split(1), strict=True)
    ]


class RandomBatches:
    """Batches of graph numbers, each drawn without replacement."""

    def __init__(self, graphs: int, seed: int, batch: int, steps: int) -> None:
        self.graphs = graphs
        self.batch = batch
        self.steps = steps
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.steps):
            yield torch.randperm(self.graphs, generator=self.generator)[: self.batch].tolist()


def gin(channels: int, hidden: int) -> nn.Module:
    """Return one GIN layer."""
    conv: nn.Module = GINConv(
        nn.Sequential(
            nn.Linear(channels, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
        )
    )
    return conv


class Model(nn.Module):
    """GIN-0 with concatenated layers, bilinear second-order pooling and a linear classifier."""

    def __init__(self, channels: int, classes: int, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.layers = nn.ModuleList(gin(channels if i == 0 else hidden, hidden) for i in range(LAYERS))
        self.bimap = nn.Linear(channels + LAYERS * hidden, RANK, bias=False)
        self.head = nn.Linear(RANK * RANK, classes)

    def forward(self, data: Data) -> Tensor:
        """Return the scores ``[G, classes]``."""
        states = [data.x]
        for layer in self.layers:
            states.append(layer(states[-1], data.edge_index))
        z, _ = to_dense_batch(self.bimap(torch.cat(states, 1)), data.batch, batch_size=data.num_graphs)
        pooled = torch.bmm(z.transpose(1, 2), z).flatten(1)
        return F.dropout(self.head(pooled), DROPOUT, self.training)


class PygTrainer:
    """A trainer of one model on one fold."""

    def __init__(
        self,
        store: PackedGraphs,
        features: NodeFeatures,
        labels: Tensor,
        train_ids: Sequence[int] | np.ndarray,
        test_ids: Sequence[int] | np.ndarray,
        seed: int,
        device: str = "cpu",
        hidden: int = HIDDEN,
        batch: int = BATCH,
        steps: int = STEPS,
    ) -> None:
        torch.manual_seed(seed)
        graphs = make_graphs(store, features.rows(), labels)
        train = [graphs[i] for i in train_ids]
        self.loader = DataLoader(train, batch_sampler=RandomBatches(len(train), seed, batch, steps))
        self.train_loader = DataLoader(train, EVALUATION_BATCH)
        self.test_loader = DataLoader([graphs[i] for i in test_ids], EVALUATION_BATCH)
        self.model = Model(features.width, int(labels.max()) + 1, hidden).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), LEARNING_RATE)
        self.device = device

    def epoch(self) -> tuple[float, float]:
        """Train for an epoch, then return the accuracies on training and test graphs."""
        self.train()
        return self.score()

    def train(self) -> None:
        """Train for one epoch."""
        self.model.train()
        total = torch.zeros((), device=self.device)
        for data in self.loader:
            data = data.to(self.device)
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(data), data.y)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        self.loss = total.item() / len(self.loader)

    def score(self) -> tuple[float, float]:
        """Return the accuracies on training and test graphs."""
        return self.accuracy(self.train_loader), self.accuracy(self.test_loader)

    @torch.no_grad()
    def accuracy(self, loader: DataLoader) -> float:
        """Return the accuracy on the graphs of a loader."""
        self.model.eval()
        right = torch.zeros((), dtype=torch.long, device=self.device)
        for data in loader:
            data = data.to(self.device)
            right += (self.model(data).argmax(1) == data.y).sum()
        return right.item() / len(loader.dataset)
