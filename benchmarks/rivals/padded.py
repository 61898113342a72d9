"""The dense way to train many models at once: graphs are padded to the largest one and adjacency matrices are dense.

Shapes are constant, so on a GPU a step is captured once and replayed. Memory and time grow with the square of the
largest graph.
"""

from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import to_dense_batch

from benchmarks.rivals import DROPOUT, LAYERS, LEARNING_RATE, RANK
from sopool.data import NodeFeatures, PackedGraphs
from sopool.training.bank.capture import capture, run_aside
from sopool.training.bank.sampling import draw_batches

MOMENTUM = 0.1
EPS = 1e-5
TOGETHER = 1 << 24
"""The number of values in one array during scoring."""


class Norm(nn.Module):
    """Batch norm of each model over its real nodes, then ReLU."""

    def __init__(self, models: int, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(models, 1, channels))
        self.bias = nn.Parameter(torch.zeros(models, 1, channels))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(models, 1, channels))
        self.register_buffer("variance", torch.ones(models, 1, channels))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Normalize ``[M, rows, F]``, with a mask ``[M, rows, 1]`` of real nodes."""
        mean = self.mean
        variance = self.variance
        if self.training:
            count = mask.sum(1, keepdim=True)
            mean = (x * mask).sum(1, keepdim=True) / count
            variance = ((x - mean) * mask).square().sum(1, keepdim=True) / count
            with torch.no_grad():
                self.mean.lerp_(mean, MOMENTUM)
                self.variance.lerp_(variance * count / (count - 1), MOMENTUM)
        return F.relu((x - mean) * (variance + EPS).rsqrt() * self.weight + self.bias)


class Model(nn.Module):
    """M copies of the model of :mod:`benchmarks.rivals`, without biases that a batch norm would cancel."""

    def __init__(self, models: int, channels: int, classes: int, hidden: int) -> None:
        super().__init__()
        widths = [channels] + 2 * LAYERS * [hidden]
        self.linears = nn.ParameterList(_weights(models, *pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(Norm(models, width) for width in widths[1:])
        self.bimap = _weights(models, channels + LAYERS * hidden, RANK)
        self.head = _weights(models, RANK * RANK, classes)
        self.head_bias = nn.Parameter(torch.zeros(models, 1, classes))

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor) -> Tensor:
        """Return scores ``[M, B, classes]`` from ``[M, B, n, F]``, ``[M, B, n, n]`` and ``[M, B, n, 1]``."""
        models, batch, nodes, _ = x.shape
        rows = mask.flatten(1, 2)
        states = [x.flatten(1, 2)]
        blocks = list(zip(self.linears, self.norms, strict=True))
        for layer in range(LAYERS):
            summed = torch.bmm(adjacency.flatten(0, 1), states[-1].reshape(models * batch, nodes, -1))
            h = summed.view(models, batch * nodes, -1)
            for weight, norm in blocks[2 * layer : 2 * layer + 2]:
                h = norm(torch.bmm(h, weight), rows)
            states.append(h)
        z = (torch.bmm(torch.cat(states, 2), self.bimap) * rows).view(models * batch, nodes, RANK)
        pooled = torch.bmm(z.transpose(1, 2), z).view(models, batch, RANK * RANK)
        return F.dropout(torch.baddbmm(self.head_bias, pooled, self.head), DROPOUT, self.training)


class PaddedBank:
    """M models, each with its own graphs."""

    def __init__(
        self,
        store: PackedGraphs,
        features: NodeFeatures,
        trains: list[np.ndarray],
        hidden: int,
        batch: int,
        steps: int,
        device: str,
    ) -> None:
        assert store.labels is not None
        torch.manual_seed(0)
        self.x, self.mask, self.adjacency = pad(store, features, device)
        self.labels = store.labels.to(device)
        self.trains = trains
        self.batch = batch
        self.steps = steps
        self.epochs = 0
        self.model = Model(len(trains), features.width, len(store.classes), hidden).to(device)
        captured = torch.device(device).type == "cuda"
        self.optimizer = torch.optim.Adam(self.model.parameters(), LEARNING_RATE, fused=True, capturable=captured)
        self.chosen = torch.from_numpy(np.stack([train[:batch] for train in trains])).to(device)
        self.total = torch.zeros((), device=device)
        self.replay: torch.cuda.CUDAGraph | None = None
        if captured:
            self.model.train()
            run_aside(self._step)
            self.replay = capture(self._step)

    def train(self) -> float:
        """Train for one epoch and return the mean loss."""
        self.model.train()
        draws = draw_batches(range(len(self.trains)), self.epochs, self.trains, self.steps, self.batch)
        self.epochs += 1
        self.total.zero_()
        for graphs in torch.from_numpy(draws.graphs).to(self.chosen.device):
            self.chosen.copy_(graphs)
            if self.replay is None:
                self._step()
            else:
                self.replay.replay()
        return self.total.item() / self.steps / len(self.trains)

    def _step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        scores = self(self.chosen)
        labels = self.labels[self.chosen].flatten()
        loss = F.cross_entropy(scores.flatten(0, 1), labels, reduction="sum") / self.batch
        loss.backward()
        self.optimizer.step()
        self.total += loss.detach()

    def __call__(self, graphs: Tensor) -> Tensor:
        """Return the scores ``[M, B, classes]`` of graphs given by their numbers ``[M, B]``."""
        scores: Tensor = self.model(self.x[graphs], self.adjacency[graphs], self.mask[graphs])
        return scores

    @torch.no_grad()
    def score(self) -> np.ndarray:
        """Return the scores of all graphs by all models, ``[M, G, classes]``."""
        self.model.eval()
        models = len(self.trains)
        graphs, nodes = self.x.shape[:2]
        some = max(1, TOGETHER // (models * nodes * max(nodes, self.model.bimap.shape[1])))
        every = torch.arange(graphs, device=self.x.device).expand(models, graphs)
        scores: np.ndarray = torch.cat([self(part) for part in every.split(some, 1)], 1).cpu().numpy()
        return scores


def pad(store: PackedGraphs, features: NodeFeatures, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return padded features ``[G, n, F]``, a mask of real nodes ``[G, n, 1]`` and adjacency matrices ``[G, n, n]``.

    The adjacency matrices include self-loops, and n is the number of nodes of the largest graph.
    """
    graphs = len(store)
    nodes = int(store.sizes.max())
    owner = torch.arange(graphs).repeat_interleave(store.sizes)
    x, mask = to_dense_batch(features.rows(), owner, max_num_nodes=nodes, batch_size=graphs)
    adjacency = torch.eye(nodes, device=device).repeat(graphs, 1, 1)
    source, target = store.edge_index.long().to(device)
    owner = torch.arange(graphs).repeat_interleave(store.edge_ptr.diff()).to(device)
    adjacency.index_put_((owner, target, source), torch.ones((), device=device), accumulate=True)
    return x.to(device), mask.unsqueeze(2).float().to(device), adjacency


def _weights(models: int, inputs: int, outputs: int) -> nn.Parameter:
    return nn.Parameter((2 * torch.rand(models, inputs, outputs) - 1) / inputs**0.5)
