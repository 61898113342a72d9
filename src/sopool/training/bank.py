"""The bank: models of one shape, trained side by side.

The models are one stacked module (see :mod:`sopool.nn.stacked`). All parameters lie in one matrix [M, P], all running
statistics in another [M, Q]: row m is model m, so the optimiser is a few operations, a snapshot is a copy of a row, and
a model leaves the bank by dropping its row.

A bank of M models gives what M banks of one give. Nothing is shared between models: batches and dropout follow from a
run's own seed and epoch, every sum is over one graph or the rows of one model.
"""

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.models.classifier import Classifier
from sopool.models.make import make_model
from sopool.models.stack import stack
from sopool.nn.dropout import Dropout
from sopool.training.adam import Adam
from sopool.training.batches import draw
from sopool.training.config import RunConfig
from sopool.training.splits import Split, run_seed
from sopool.training.tables import GraphTables

EVALUATED_NODES = {"cpu": 2048, "cuda": 16384}
"""Nodes of each model evaluated together: on a CPU a cache-full."""


@dataclass
class ModelState:
    """All that changes while models train: a row for each."""

    values: Tensor
    """Parameters [M, P]."""
    statistics: Tensor
    """Running means and variances [M, Q]."""
    mean: Tensor
    """Adam's running mean of the gradient [M, P]."""
    square: Tensor
    """Adam's running mean of its square [M, P]."""

    @classmethod
    def start(cls, model: torch.nn.Module) -> "ModelState":
        """Of a stacked module that was not trained yet."""
        values = _flatten(model.parameters())
        return cls(values, _flatten(model.buffers()), torch.zeros_like(values), torch.zeros_like(values))

    def rows(self, models: Sequence[int]) -> "ModelState":
        """Some of the models."""
        return ModelState(*(tensor[list(models)] for tensor in vars(self).values()))


class Bank:
    """M runs that differ in fold, seed, learning rate and dropout only. ``epoch`` counts the finished ones."""

    def __init__(
        self,
        tables: GraphTables,
        configs: Sequence[RunConfig],
        splits: Sequence[Split],
        state: ModelState | None = None,
        epoch: int = 0,
    ) -> None:
        self.tables, self.configs, self.splits, self.epoch = tables, list(configs), list(splits), epoch
        first = self.configs[0]
        self.steps, self.batch_size = first.steps, min(first.batch_size, min(len(split.train) for split in splits))
        self.weight_decay = first.weight_decay
        self.seeds = [run_seed(config) for config in self.configs]
        self.device = tables.node_ptr.device
        self.dtype = getattr(torch, first.precision)
        fresh = [new_model(config, tables.features.width, tables.classes) for config in self.configs]
        self.model = stack(fresh).to(self.device, self.dtype)
        self._take(ModelState.start(self.model) if state is None else state)
        self.substitutes = self._substitutes()

    def run_epoch(self) -> np.ndarray:
        """Train for one epoch; the loss of each model, averaged over the steps [M]."""
        self.model.train()
        draws = [
            draw(seed, self.epoch, split.train, self.steps, self.batch_size)
            for seed, split in zip(self.seeds, self.splits, strict=True)
        ]
        graphs = torch.from_numpy(np.stack([one.graphs for one in draws], axis=1)).to(self.device)
        keys = torch.from_numpy(np.stack([one.keys for one in draws], axis=1)).to(self.device)
        learning_rates = self._column([learning_rate(config, self.epoch) for config in self.configs])
        dropped = self._column([config.dropout for config in self.configs]).flatten()
        dropping = any(config.dropout for config in self.configs)
        losses = []
        for step in range(self.steps):
            dropout = Dropout(keys[step], dropped) if dropping else None
            losses.append(self._step(graphs[step], dropout, learning_rates, self.epoch * self.steps + step + 1))
        self.epoch += 1
        each = torch.stack(losses, dim=1).flatten(1).cpu().numpy()  # of one model in a row: summed in one order
        means: np.ndarray = each.astype(np.float64).mean(1)
        return means

    def _step(self, graphs: Tensor, dropout: Dropout | None, rates: Tensor, number: int) -> Tensor:
        """One batch [M, B] for each model and one step of the optimiser; the losses [M, B]."""
        batch = self.tables.batch(graphs, self.substitutes)
        scores, penalty = self.model.classify(batch.x.to(self.dtype), batch.neighbors, batch.ptr, dropout)
        labels = self.tables.labels.index_select(0, graphs.flatten())
        losses = F.cross_entropy(scores, labels, reduction="none")
        losses = (losses if penalty is None else losses + penalty).view(graphs.shape)
        gradients = torch.autograd.grad(losses.sum() / graphs.shape[1], self.parameters)
        gradient = _flatten(gradients)
        if self.weight_decay:
            gradient.add_(self.values, alpha=self.weight_decay)
        self.adam.step(self.values, gradient, rates, number)
        return losses.detach()

    @torch.no_grad()
    def scores(self, graphs: Sequence[np.ndarray], snapshot: ModelState | None = None) -> list[np.ndarray]:
        """Scores of each model for graphs of its own, [n, classes] each; those of a ``snapshot`` if one is given."""
        current = self.state
        if snapshot is not None:
            self._take(snapshot)
        self.model.eval()
        nodes = EVALUATED_NODES.get(self.device.type, EVALUATED_NODES["cpu"])
        chunk = max(1, int(nodes / max(1.0, self.tables.mean_nodes)))
        most = max(len(numbers) for numbers in graphs)
        padded = np.stack([np.resize(numbers, -(-most // chunk) * chunk) for numbers in graphs])
        out = []
        for part in torch.from_numpy(padded).to(self.device).split(chunk, dim=1):
            batch = self.tables.batch(part, self.substitutes)
            scores = self.model(batch.x.to(self.dtype), batch.neighbors, batch.ptr)
            out.append(scores.view(*part.shape, -1))
        if snapshot is not None:
            self._take(current)
        every = torch.cat(out, dim=1).cpu().numpy()
        return [scores[: len(numbers)] for scores, numbers in zip(every, graphs, strict=True)]

    @property
    def state(self) -> ModelState:
        """The live state: copy it to keep it."""
        return ModelState(self.values, self.statistics, self.adam.mean, self.adam.square)

    def keep(self, models: Sequence[int]) -> "Bank":
        """A bank of some of the models, where they are now."""
        configs, splits = [self.configs[m] for m in models], [self.splits[m] for m in models]
        return Bank(self.tables, configs, splits, self.state.rows(models), self.epoch)

    def _take(self, state: ModelState) -> None:
        """Make the module's parameters and buffers views of the rows of ``state``."""
        self.values, self.statistics = state.values, state.statistics
        self.adam = Adam(state.mean, state.square)
        self.parameters = list(self.model.parameters())
        for tensors, matrix in ((self.parameters, self.values), (list(self.model.buffers()), self.statistics)):
            pieces = matrix.split([tensor[0].numel() for tensor in tensors], dim=1)
            for tensor, piece in zip(tensors, pieces, strict=True):
                tensor.data = piece.view(tensor.shape)

    def _column(self, numbers: Sequence[float]) -> Tensor:
        return torch.tensor(numbers, dtype=self.dtype, device=self.device).unsqueeze(1)

    def _substitutes(self) -> Tensor | None:
        """For runs with a validation split only the values in their training graphs count [M, width]."""
        if self.configs[0].looks == "test":
            return None
        used = [self.tables.columns_used(torch.from_numpy(split.train)) for split in self.splits]
        return self.tables.features.substitutes(torch.stack(used))


def learning_rate(config: RunConfig, epoch: int) -> float:
    """Halved every so many epochs."""
    return config.lr * 0.5 ** (epoch // config.halve_every) if config.halve_every else config.lr


def new_model(config: RunConfig, in_channels: int, classes: int) -> Classifier:
    """A new model; it follows from the run's seed, and the global generators stay as they are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run_seed(config))
        return make_model(config.model, in_channels, classes)


def layout_of(config: RunConfig, in_channels: int, classes: int) -> str:
    """What the columns of a :class:`ModelState` stand for: all parameters and buffers by name and shape, hashed."""
    with torch.device("meta"):
        model = make_model(config.model, in_channels, classes)
    tensors = itertools.chain(model.named_parameters(), model.named_buffers())
    text = " ".join(f"{name}{list(tensor.shape)}" for name, tensor in tensors)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors [M, ...] as one matrix [M, P]."""
    return torch.cat([tensor.detach().flatten(1) for tensor in tensors], dim=1)
