"""The bank: models of one shape that are trained together.

The models are one stacked module (see :mod:`sopool.nn.layers`). All parameters are stored in one matrix ``[M, P]`` and
all buffers (running statistics, frozen parameters) in another ``[M, Q]``. Row m belongs to model m, so an optimizer
step is a few operations, a snapshot is a copy of a row, and a model is removed by dropping its row.

A bank of M models gives the same results as M banks of one model. Models share nothing: batches and dropout depend only
on a run's own seed and the epoch, and every sum is over one graph or the rows of one model.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool._runtime.generators import drawing_from, planning
from sopool.models.base import Classifier
from sopool.models.make import make_model
from sopool.models.stack import stack
from sopool.nn.dropout import Dropout
from sopool.ops import backends
from sopool.ops.segment.size_classes import graphs_apart
from sopool.training.bank.batching import Capacity, GraphTables
from sopool.training.bank.capture import CapturedSteps, Steps
from sopool.training.bank.inputs import ModelInputs
from sopool.training.bank.optimizer import OPTIMIZERS, clip_norms, fresh_shares
from sopool.training.bank.sampling import Draws, draw_batches
from sopool.training.bank.scoring import RepeatedScorer
from sopool.training.run_splits import Split, run_seed
from sopool.training.runs.config import RunConfig


@dataclass
class ModelState:
    """Everything that changes while M models train, with one row for each model."""

    values: Tensor
    """The P parameters of each model ``[M, P]``."""
    statistics: Tensor
    """The running means and variances, and the frozen parameters, of each model ``[M, Q]``."""
    mean: Tensor
    """The optimizer's running mean of the gradient, or its momentum ``[M, P]``."""
    square: Tensor
    """The optimizer's running mean of the squared gradient, or its sum ``[M, P]``."""
    average: Tensor
    """The running mean of values and statistics, concatenated ``[M, P + Q]``; ``[M, 0]`` if they are not averaged."""

    @classmethod
    def start(cls, values: Tensor, statistics: Tensor, averages: bool = False) -> "ModelState":
        """Return the state before the first step."""
        nothing = torch.zeros_like(values)
        average = torch.cat([values, statistics], dim=1) if averages else values[:, :0]
        return cls(values, statistics, nothing, nothing.clone(), average)

    def rows(self, models: Sequence[int]) -> "ModelState":
        """Return the state of some of the models."""
        return ModelState(*(tensor[list(models)] for tensor in vars(self).values()))


class Bank:
    """A bank of M runs, which may differ only in fold, seed, learning rate and dropout.

    Args:
        tables: The graphs, on the device to train on.
        configs: The M runs.
        splits: The training, validation and test graphs of each run.
        state: The state to continue from. Default: None, new models.
        epoch: The number of finished epochs. Default: 0.
        inputs: How each model takes the features of graphs. Default: None, learned from its training graphs.

    Examples:
        >>> import numpy as np
        >>> from sopool.data import AttributeEncoder, make_agreement
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.bank.batching import GraphTables
        >>> from sopool.training.run_splits import Splitter
        >>> from sopool.training.runs.config import RunConfig
        >>> graphs = make_agreement(20)
        >>> tables = GraphTables.build(graphs, AttributeEncoder().fit(graphs).transform(graphs))
        >>> shared = {"data": "agreement", "fingerprint": "0", "encoder": "", "model": ModelConfig(hidden=4)}
        >>> configs = [RunConfig(**shared, fold=fold, folds=2, steps=3, batch_size=5) for fold in range(2)]
        >>> splits = list(map(Splitter(graphs.labels.numpy()), configs))
        >>> bank = Bank(tables, configs, splits)
        >>> bank.run_epoch().shape
        (2,)
        >>> [scores.shape for scores in bank.scores([split.test for split in splits])]
        [(10, 2), (10, 2)]
    """

    def __init__(
        self,
        tables: GraphTables,
        configs: Sequence[RunConfig],
        splits: Sequence[Split],
        state: ModelState | None = None,
        epoch: int = 0,
        inputs: ModelInputs | None = None,
    ) -> None:
        self.tables = tables
        self.configs = list(configs)
        self.splits = list(splits)
        self.epoch = epoch
        first = self.configs[0]
        self.steps = first.steps
        self.batch_size = min(first.batch_size, min(len(split.train) for split in splits))
        self.weight_decay = first.weight_decay
        self.clip = first.clip
        self.stays = first.average
        self.seeds = [run_seed(config) for config in self.configs]
        self.device = tables.device
        self.dtype = getattr(torch, first.precision)
        self.model = stack(list(map(self._new_model, self.configs, self.splits))).to(self.device, self.dtype)
        if state is None:
            tensors = _flatten(self.model.parameters()), _flatten(_statistics(self.model))
            state = ModelState.start(*tensors, averages=first.average > 0)
        self._take(state)
        self.inputs = self._learn_inputs() if inputs is None else inputs
        rates = np.array([config.dropout for config in self.configs])
        self.dropped = self._numbers(rates) if rates.any() or self.model.draws else None
        objective, truth = tables.goal
        objective = objective.weighted(first.class_weights)
        self.truth = truth
        known = truth.cpu().numpy()
        self.objectives = [objective.fit(known[split.train]) for split in self.splits]
        self.loss = objective.make_loss(self.objectives, self.device, self.dtype)
        self._drawn: Draws | None = None
        self._captured: CapturedSteps | None = None
        self._scorer: RepeatedScorer | None = None

    def run_epoch(self) -> np.ndarray:
        """Train for one epoch; return the loss of each model, averaged over the steps ``[M]``."""
        self.model.train()
        draws = self._draw(self.epoch) if self._drawn is None else self._drawn
        steps = self._steps(draws)
        if self.captures:
            self._captured = self._captured or CapturedSteps(list(vars(self.state).values()), steps)
            losses = self._captured.run(self._step, steps, [self.tables.capacity(graphs) for graphs in draws.graphs])
        else:
            losses = torch.stack([self._step(steps.at(number)) for number in range(self.steps)])
        self.epoch += 1
        self._drawn = self._draw(self.epoch) if self.captures else None  # while the device computes
        each = losses.transpose(0, 1).flatten(1).cpu().numpy()  # one row per model: always summed in the same order
        means: np.ndarray = each.astype(np.float64).mean(1)
        return means

    def _draw(self, epoch: int) -> Draws:
        return draw_batches(self.seeds, epoch, [split.train for split in self.splits], self.steps, self.batch_size)

    def _steps(self, draws: Draws) -> Steps:
        """Return the inputs of this epoch's steps, on the device."""
        rates = np.array([[learning_rate(config, self.epoch)] for config in self.configs])
        first = self.epoch * self.steps + 1
        paces, roots = self.optimizer.corrections(rates, first, self.steps)
        fresh = fresh_shares(self.stays, first, self.steps)
        graphs, keys = (torch.from_numpy(one).to(self.device) for one in draws)
        every_rate = np.repeat(rates[None], self.steps, axis=0)
        return Steps(graphs, keys, *map(self._numbers, (every_rate, paces, roots, fresh)))

    @graphs_apart()
    def _step(self, step: Steps, capacity: Capacity | None = None) -> Tensor:
        """Make one optimizer step of all models on the batches ``[M, B]`` of ``step``; return the losses ``[M, B]``."""
        graphs = step.graphs
        batch = self.tables.batch(graphs, self.inputs, capacity)
        dropout = None if self.dropped is None else Dropout(step.keys, self.dropped)
        scores, penalty = self.model.classify(*batch.to(self.dtype), dropout=dropout)
        true = self.truth.index_select(0, graphs.flatten()).unflatten(0, graphs.shape)
        losses = self.loss(scores.view(*graphs.shape, -1), true)
        if self.tables.weights is not None:
            losses = losses * self.tables.weights[graphs].to(losses.dtype)
        losses = losses if penalty is None else losses + penalty.view(graphs.shape)
        gradients = torch.autograd.grad(losses.sum() / graphs.shape[1], self.parameters, materialize_grads=True)
        gradient = _flatten(gradients)
        if self.clip:
            clip_norms(gradient, self.clip)
        if self.weight_decay:
            gradient.add_(self.values, alpha=self.weight_decay)
        if self.decays is not None:
            self.values.mul_(1 - step.rate * self.decays)
        self.optimizer.step(self.values, gradient, step.pace, step.root)
        if self.averages:
            for mean, live in zip(self.shown, (self.values, self.statistics), strict=True):
                mean.lerp_(live, step.fresh)
        return losses.detach()

    def scores(self, graphs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs ``[n, W]`` of each model for its own graphs, see :meth:`~Objective.outputs`."""
        if self._scorer is None or not self._scorer.serves(graphs):
            self._scorer = RepeatedScorer(self.tables, graphs, self.captures, self.width)
        with self._averaged():
            each = self._scorer.scores(self._score)
        return [objective.outputs(scores) for objective, scores in zip(self.objectives, each, strict=True)]

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Use the running means as parameters and statistics for the duration of a ``with`` block."""
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
        """Whether models are scored with running means of their parameters."""
        return self.average.shape[1] > 0

    @property
    def shown(self) -> tuple[Tensor, Tensor]:
        """The parameters ``[M, P]`` and statistics ``[M, Q]`` that the models are scored with."""
        if not self.averages:
            return self.values, self.statistics
        split = self.values.shape[1]
        return self.average[:, :split], self.average[:, split:]

    @torch.no_grad()
    @graphs_apart()
    def _score(self, graphs: Tensor, capacity: Capacity | None) -> Tensor:
        """Score the same number of graphs for each model: ``[M, g]`` -> ``[M, g, W]``."""
        self.model.eval()
        batch = self.tables.batch(graphs, self.inputs, capacity)
        scores: Tensor = self.model(*batch.to(self.dtype))
        return scores.view(*graphs.shape, -1)

    @property
    def width(self) -> int:
        """The number of features of a node, those of all layers together."""
        return self.tables.features.width + self.configs[0].model.hidden * self.configs[0].model.layers

    @property
    def captures(self) -> bool:
        """Whether steps are captured as CUDA graphs, which requires that kernels do all the work."""
        return self.device.type == "cuda" and backends.serves(self.values) and self.model.capturable

    @property
    def state(self) -> ModelState:
        """The current state, not a copy."""
        return ModelState(self.values, self.statistics, self.optimizer.mean, self.optimizer.square, self.average)

    def keep(self, models: Sequence[int]) -> "Bank":
        """Return a bank of some of the models in their current state."""
        configs = [self.configs[m] for m in models]
        splits = [self.splits[m] for m in models]
        state = self.state.rows(models)
        return Bank(self.tables, configs, splits, state, self.epoch, self.inputs.rows(list(models)))

    def _take(self, state: ModelState) -> None:
        """Make the module's parameters and buffers views of the rows of ``state``."""
        self.values = state.values
        self.statistics = state.statistics
        self.average = state.average
        first = self.configs[0]
        self.optimizer = OPTIMIZERS[first.optimizer](state.mean, state.square, first.momentum)
        self.parameters = list(self.model.parameters())
        decays = self.model.decays()
        self.decays = None if decays is None else _flatten(decays)
        for tensors, matrix in ((self.parameters, self.values), (_statistics(self.model), self.statistics)):
            pieces = matrix.split([tensor[0].numel() for tensor in tensors], dim=1)
            for tensor, piece in zip(tensors, pieces, strict=True):
                tensor.data = piece.view(tensor.shape)

    def _new_model(self, config: RunConfig, split: Split) -> Classifier:
        """Return a new model; with a validation split it knows only the edge labels of its training graphs."""
        model = new_model(config, self.tables.features.width, self.tables.goal[0].width)
        if self.tables.edge_kinds and config.looks != "test":
            model.know(self.tables.edge_labels_used(torch.from_numpy(split.train)))
        return model

    def _numbers(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, self.dtype)

    def _learn_inputs(self) -> ModelInputs:
        """Return how each model takes the features; test graphs have no influence on it.

        With a validation split, values that do not occur in a run's training graphs are treated as unknown.
        """
        graphs = [torch.from_numpy(split.train) for split in self.splits]
        return self.tables.inputs_of(graphs, unknown=self.configs[0].looks != "test")


def learning_rate(config: RunConfig, epoch: int) -> float:
    """Return the learning rate in an epoch; it is halved every ``halve_every`` epochs."""
    return config.lr * 0.5 ** (epoch // config.halve_every) if config.halve_every else config.lr


def new_model(config: RunConfig, in_channels: int, outputs: int) -> Classifier:
    """Return a model whose initial weights depend only on the run's seed, even if other threads draw random numbers."""
    with drawing_from(run_seed(config)):
        return make_model(config.model, in_channels, outputs)


class Layout(NamedTuple):
    """The sizes of a :class:`ModelState` and an identifier of what its columns mean."""

    name: str
    """A hash of the names and shapes of the parameters and buffers."""
    parameters: int
    """The number of parameters."""
    statistics: int
    """The number of statistics."""


def layout_of(config: RunConfig, in_channels: int, outputs: int) -> Layout:
    """Return the layout of a run's model without allocating the model."""
    with planning():
        model = make_model(config.model, in_channels, outputs)
    tensors = itertools.chain(model.named_parameters(), model.named_buffers())
    text = " ".join([*ModelState.__annotations__, *(f"{name}{list(tensor.shape)}" for name, tensor in tensors)])
    parts = (model.parameters(), _statistics(model))
    parameters, statistics = (sum(tensor.numel() for tensor in part) for part in parts)
    return Layout(hashlib.sha256(text.encode()).hexdigest()[:16], parameters, statistics)


def _statistics(model: Classifier) -> list[Tensor]:
    """Return the buffers that may change; integer buffers, such as lists of columns, never do."""
    return [buffer for buffer in model.buffers() if buffer.is_floating_point()]


def _flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Concatenate tensors ``[M, ...]`` into one matrix ``[M, P]``."""
    return torch.cat([tensor.detach().reshape(len(tensor), -1) for tensor in tensors], dim=1)
