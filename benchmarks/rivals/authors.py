"""A reimplementation of the method of the research code behind the GIN and SOPool papers.

Graphs are Python objects. Each step assembles a batch on the CPU (concatenated features and one block-diagonal sparse
COO matrix of all edges and self-loops) and moves it to the device. A loop over graphs pools them, one row of the result
at a time. Two things are faster than in the original: evaluation keeps no autograd graph, and there is no progress bar.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.rivals import BATCH, DROPOUT, HIDDEN, LAYERS, LEARNING_RATE, RANK, STEPS
from sopool.data import NodeFeatures, PackedGraphs

EVALUATION_BATCH = 64


class Graph(NamedTuple):
    """One graph, as the model expects it."""

    edges: Tensor
    """Edges ``[2, E]``, int64, in both directions and without self-loops."""
    features: Tensor
    """Node features ``[N, F]``."""
    label: int


def make_graphs(store: PackedGraphs, rows: Tensor, labels: Tensor) -> list[Graph]:
    """Return one object for each graph of the store; ``rows`` ``[N, F]`` are the features of all nodes."""
    edges = store.edge_index.long().split(store.edge_ptr.diff().tolist(), dim=1)
    parts = rows.split(store.sizes.tolist())
    return [Graph(*one) for one in zip(edges, parts, labels.tolist(), strict=True)]


class Layer(nn.Module):
    """Sum over the neighbors and the node itself, then Linear, BN, ReLU, Linear, BN, ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Linear(channels, HIDDEN)
        self.inner_norm = nn.BatchNorm1d(HIDDEN)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.norm = nn.BatchNorm1d(HIDDEN)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        summed = torch.spmm(adjacency, x)
        return F.relu(self.norm(self.second(F.relu(self.inner_norm(self.first(summed))))))


class Model(nn.Module):
    """GIN-0 with concatenated layers, bilinear second-order pooling and a linear classifier."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(channels if i == 0 else HIDDEN) for i in range(LAYERS))
        self.bimap = nn.Linear(channels + LAYERS * HIDDEN, RANK, bias=False)
        self.head = nn.Linear(RANK * RANK, classes)

    def forward(self, graphs: Sequence[Graph]) -> Tensor:
        device = self.bimap.weight.device
        x = torch.cat([graph.features for graph in graphs]).to(device)
        adjacency = block_diagonal(graphs).to(device)
        states = [x]
        for layer in self.layers:
            states.append(layer(states[-1], adjacency))
        pooled = self.pool(torch.cat(states, 1), [len(graph.features) for graph in graphs])
        return F.dropout(self.head(pooled), DROPOUT, self.training)

    def pool(self, x: Tensor, sizes: list[int]) -> Tensor:
        pooled = x.new_zeros(len(sizes), RANK * RANK)
        for i, part in enumerate(x.split(sizes)):
            z = self.bimap(part)
            pooled[i] = torch.matmul(z.t(), z).flatten()
        return pooled


def block_diagonal(graphs: Sequence[Graph]) -> Tensor:
    """Return a sparse COO matrix with the adjacency matrices, including self-loops, on its diagonal."""
    shifted = []
    nodes = 0
    for graph in graphs:
        shifted.append(graph.edges + nodes)
        nodes += len(graph.features)
    loops = torch.arange(nodes).expand(2, -1)
    index = torch.cat([*shifted, loops], 1)
    values = torch.ones(index.shape[1], dtype=graphs[0].features.dtype)
    return torch.sparse_coo_tensor(index, values, (nodes, nodes), check_invariants=False)


class AuthorsTrainer:
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
    ) -> None:
        torch.manual_seed(seed)
        self.random = np.random.default_rng(seed)
        graphs = make_graphs(store, features.rows(), labels)
        self.train = [graphs[i] for i in train_ids]
        self.test = [graphs[i] for i in test_ids]
        self.model = Model(features.width, int(labels.max()) + 1).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), LEARNING_RATE)
        self.device = device

    def epoch(self) -> tuple[float, float]:
        """Train for an epoch, then return the accuracies on training and test graphs."""
        self.model.train()
        self.loss = 0.0
        for _ in range(STEPS):
            chosen = [self.train[i] for i in self.random.permutation(len(self.train))[:BATCH]]
            loss = F.cross_entropy(self.model(chosen), self.labels(chosen))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.loss += loss.item() / STEPS
        return self.accuracy(self.train), self.accuracy(self.test)

    @torch.no_grad()
    def accuracy(self, graphs: list[Graph]) -> float:
        self.model.eval()
        parts = [graphs[i : i + EVALUATION_BATCH] for i in range(0, len(graphs), EVALUATION_BATCH)]
        logits = torch.cat([self.model(part) for part in parts])
        return (logits.argmax(1) == self.labels(graphs)).sum().item() / len(graphs)

    def labels(self, graphs: Sequence[Graph]) -> Tensor:
        return torch.tensor([graph.label for graph in graphs]).to(self.device)
