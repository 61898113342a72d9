"""The bank: models of one shape, trained side by side.

The models are one stacked module (see :mod:`sopool.nn.layers`). All parameters lie in one matrix [M, P], all buffers
(running statistics, frozen parameters) in another [M, Q]: row m is model m, so the optimiser is a few operations, a
snapshot is a copy of a row, and a model leaves the bank by dropping its row.

A bank of M models gives what M banks of one give. Nothing is shared between models: batches and dropout follow from a
run's own seed and epoch, every sum is over one graph or the rows of one model.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sopool._runtime.generators import drawing_from, planning
from sopool.models.base import Classifier
from sopool.models.make import make_model
from sopool.models.stack import stack
from sopool.nn.dropout import Dropout
from sopool.ops import backends
from sopool.training.bank.batching import Capacity, GraphTables
from sopool.training.bank.capture import CapturedSteps, Steps
from sopool.training.bank.optimizer import Adam, fresh_shares, unbias
from sopool.training.bank.sampling import Draws, draw_batches
from sopool.training.bank.scoring import RepeatedScorer
from sopool.training.run_splits import Split, run_seed
from sopool.training.runs.config import RunConfig


@dataclass
class ModelState:
    """All that changes while models train: a row for each."""

    values: Tensor
    """Parameters [M, P]."""
    statistics: Tensor
    """Running means and variances, and what is frozen [M, Q]."""
    mean: Tensor
    """Adam's running mean of the gradient [M, P]."""
    square: Tensor
    """Adam's running mean of its square [M, P]."""
    average: Tensor
    """The running mean of values and statistics side by side [M, P + Q], or [M, 0] where there is none."""

    @classmethod
    def start(cls, values: Tensor, statistics: Tensor, averages: bool = False) -> "ModelState":
        """Without a step behind it."""
        nothing = torch.zeros_like(values)
        average = torch.cat([values, statistics], dim=1) if averages else values[:, :0]
        return cls(values, statistics, nothing, nothing.clone(), average)

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
        self.tables = tables
        self.configs = list(configs)
        self.splits = list(splits)
        self.epoch = epoch
        first = self.configs[0]
        self.steps = first.steps
        self.batch_size = min(first.batch_size, min(len(split.train) for split in splits))
        self.weight_decay = first.weight_decay
        self.stays = first.average
        self.seeds = [run_seed(config) for config in self.configs]
        self.device = tables.device
        self.dtype = getattr(torch, first.precision)
        self.model = stack(list(map(self._new_model, self.configs, self.splits))).to(self.device, self.dtype)
        if state is None:
            tensors = _flatten(self.model.parameters()), _flatten(_statistics(self.model))
            state = ModelState.start(*tensors, averages=first.average > 0)
        self._take(state)
        self.substitutes = self._substitutes()
        rates = np.array([config.dropout for config in self.configs])
        self.dropped = self._numbers(rates) if rates.any() else None
        weights = first.class_weights
        self.class_weights = None if weights is None else self._numbers(np.array(weights))
        self._drawn: Draws | None = None
        self._captured: CapturedSteps | None = None
        self._scorer: RepeatedScorer | None = None

    def run_epoch(self) -> np.ndarray:
        """Train for one epoch; the loss of each model, averaged over the steps [M]."""
        self.model.train()
        draws = self._draw(self.epoch) if self._drawn is None else self._drawn
        steps = self._steps(draws)
        if self.captures:
            self._captured = self._captured or CapturedSteps(list(vars(self.state).values()), steps)
            losses = self._captured.run(self._step, steps, [self.tables.capacity(graphs) for graphs in draws.graphs])
        else:
            losses = torch.stack([self._step(steps.at(number)) for number in range(self.steps)])
        self.epoch += 1
        self._drawn = self._draw(self.epoch) if self.captures else None  # while the device is at work
        each = losses.transpose(0, 1).flatten(1).cpu().numpy()  # of one model in a row: summed in one order
        means: np.ndarray = each.astype(np.float64).mean(1)
        return means

    def _draw(self, epoch: int) -> Draws:
        return draw_batches(self.seeds, epoch, [split.train for split in self.splits], self.steps, self.batch_size)

    def _steps(self, draws: Draws) -> Steps:
        """What this epoch's steps are made of, on the device."""
        rates = np.array([[learning_rate(config, self.epoch)] for config in self.configs])
        first = self.epoch * self.steps + 1
        paces, roots = unbias(rates, first, self.steps)
        fresh = fresh_shares(self.stays, first, self.steps)
        graphs, keys = (torch.from_numpy(one).to(self.device) for one in draws)
        return Steps(graphs, keys, *map(self._numbers, (paces, roots, fresh)))

    def _step(self, step: Steps, capacity: Capacity | None = None) -> Tensor:
        """One batch [M, B] for each model and one step of the optimiser; the losses [M, B]."""
        graphs = step.graphs
        batch = self.tables.batch(graphs, self.substitutes, capacity)
        dropout = None if self.dropped is None else Dropout(step.keys, self.dropped)
        scores, penalty = self.model.classify(batch.x.to(self.dtype), batch.neighbors, batch.ptr, dropout)
        labels = self.tables.labels.index_select(0, graphs.flatten())
        losses = F.cross_entropy(scores, labels, self.class_weights, reduction="none")
        losses = (losses if penalty is None else losses + penalty).view(graphs.shape)
        gradients = torch.autograd.grad(losses.sum() / graphs.shape[1], self.parameters, materialize_grads=True)
        gradient = _flatten(gradients)
        if self.weight_decay:
            gradient.add_(self.values, alpha=self.weight_decay)
        self.adam.step(self.values, gradient, step.pace, step.root)
        if self.averages:
            for mean, live in zip(self.shown, (self.values, self.statistics), strict=True):
                mean.lerp_(live, step.fresh)
        return losses.detach()

    def scores(self, graphs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Scores of each model for graphs of its own, [n, classes] each."""
        if self._scorer is None or not self._scorer.serves(graphs):
            self._scorer = RepeatedScorer(self.tables, graphs, self.captures, self.width)
        with self._averaged():
            return self._scorer.scores(self._score)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The module with the running means in place of what it trains."""
        if not self.averages:
            yield
            return
        places = (self.values, self.statistics)
        live = [place.clone() for place in places]
        for place, mean in zip(places, self.shown, strict=True):
            place.copy_(mean)
        try:
            yield
        finally:
            for place, own in zip(places, live, strict=True):
                place.copy_(own)

    @property
    def averages(self) -> bool:
        """Whether models are scored with running means."""
        return self.average.shape[1] > 0

    @property
    def shown(self) -> tuple[Tensor, Tensor]:
        """What the models are scored with: parameters [M, P], statistics [M, Q]."""
        if not self.averages:
            return self.values, self.statistics
        split = self.values.shape[1]
        return self.average[:, :split], self.average[:, split:]

    @torch.no_grad()
    def _score(self, graphs: Tensor, capacity: Capacity | None) -> Tensor:
        """Scores of as many graphs for each model: [M, g] -> [M, g, classes]."""
        self.model.eval()
        batch = self.tables.batch(graphs, self.substitutes, capacity)
        scores: Tensor = self.model(batch.x.to(self.dtype), batch.neighbors, batch.ptr)
        return scores.view(*graphs.shape, -1)

    @property
    def width(self) -> int:
        """Of a node's vectors, those of all layers side by side."""
        return self.tables.features.width + self.configs[0].model.hidden * self.configs[0].model.layers

    @property
    def captures(self) -> bool:
        """Whether steps are captured: where kernels do all the work, and nothing waits for the device."""
        return self.device.type == "cuda" and backends.serves(self.values) and self.model.capturable

    @property
    def state(self) -> ModelState:
        """The live state: copy it to keep it."""
        return ModelState(self.values, self.statistics, self.adam.mean, self.adam.square, self.average)

    def keep(self, models: Sequence[int]) -> "Bank":
        """A bank of some of the models, where they are now."""
        configs = [self.configs[m] for m in models]
        splits = [self.splits[m] for m in models]
        return Bank(self.tables, configs, splits, self.state.rows(models), self.epoch)

    def _take(self, state: ModelState) -> None:
        """Make the module's parameters and buffers views of the rows of ``state``."""
        self.values = state.values
        self.statistics = state.statistics
        self.average = state.average
        self.adam = Adam(state.mean, state.square)
        self.parameters = list(self.model.parameters())
        for tensors, matrix in ((self.parameters, self.values), (_statistics(self.model), self.statistics)):
            pieces = matrix.split([tensor[0].numel() for tensor in tensors], dim=1)
            for tensor, piece in zip(tensors, pieces, strict=True):
                tensor.data = piece.view(tensor.shape)

    def _new_model(self, config: RunConfig, split: Split) -> Classifier:
        """With a validation split it knows only the edge labels in its training graphs, as it does of node features."""
        model = new_model(config, self.tables.features.width, self.tables.classes)
        if config.model.edge_labels and config.looks != "test":
            model.know(self.tables.edge_labels_used(torch.from_numpy(split.train)))
        return model

    def _numbers(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, self.dtype)

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
    """Make a model whose first weights follow from the run's seed, whatever other threads draw at the same time."""
    with drawing_from(run_seed(config)):
        return make_model(config.model, in_channels, classes)


class Layout(NamedTuple):
    """What a :class:`ModelState` has and what its columns stand for."""

    name: str
    """A hash of the parameters and buffers by name and shape."""
    parameters: int
    statistics: int


def layout_of(config: RunConfig, in_channels: int, classes: int) -> Layout:
    """Return the layout of a run's model, which is not made for that."""
    with planning():
        model = make_model(config.model, in_channels, classes)
    tensors = itertools.chain(model.named_parameters(), model.named_buffers())
    text = " ".join([*ModelState.__annotations__, *(f"{name}{list(tensor.shape)}" for name, tensor in tensors)])
    parts = (model.parameters(), _statistics(model))
    parameters, statistics = (sum(tensor.numel() for tensor in part) for part in parts)
    return Layout(hashlib.sha256(text.encode()).hexdigest()[:16], parameters, statistics)


def _statistics(model: Classifier) -> list[Tensor]:
    """The buffers that may change: what is no number with a fraction, such as a list of columns, stays as it is."""
    return [buffer for buffer in model.buffers() if buffer.is_floating_point()]


def _flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors [M, ...] as one matrix [M, P]."""
    return torch.cat([tensor.detach().reshape(len(tensor), -1) for tensor in tensors], dim=1)
