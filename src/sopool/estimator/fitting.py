"""Training an ensemble as one bank, each model stopped early on graphs that were held out from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from sopool.data.features.encoders import Encoder
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.data.splits import holdout
from sopool.errors import DataError
from sopool.estimator.ensemble import Ensemble
from sopool.estimator.validation import class_weights, share_held_out, steps_for
from sopool.models.config import ModelConfig
from sopool.models.presets import model_config, share_options
from sopool.models.stack import named_tensors, stack_of
from sopool.training.bank.bank import Bank, ModelState
from sopool.training.bank.batching import GraphTables
from sopool.training.protocols.metrics import cross_entropy
from sopool.training.runs.config import RunConfig
from sopool.training.splits import Split, run_seed

LARGE = 1e6
"""The magnitude of node features from which on they may be why a loss is not finite."""


class FitProgress(NamedTuple):
    """How training gets on, after each epoch; figures are averages over the models still training."""

    epoch: int
    """Epochs done."""
    epochs: int
    """Epochs at most."""
    training: int
    """Models still training."""
    loss: float
    validation_loss: float
    """On held-out graphs; NaN where none are."""
    validation_accuracy: float
    finished: int
    """Models for which this epoch was the last: they have had all of them, or were stopped."""


class Fitted(NamedTuple):
    """A trained ensemble and how it came about."""

    ensemble: Ensemble
    history: dict[str, np.ndarray]
    """``loss``, ``validation_loss`` and ``validation_accuracy`` of each model and epoch [M, epochs], NaN once it was
    stopped."""
    chosen: list[int]
    """The epoch whose weights were kept, from 0, of each model."""


class Judged(NamedTuple):
    """A model on its held-out graphs."""

    accuracy: float
    loss: float


@dataclass
class Member:
    """One model while it trains: what is written down, and its best weights so far."""

    split: Split
    history: dict[str, np.ndarray]
    chosen: int = -1
    rank: tuple[float, ...] = ()
    best: tuple[Tensor, Tensor] | None = None

    @classmethod
    def start(cls, split: Split, epochs: int) -> "Member":
        """Before the first epoch."""
        return cls(
            split, {name: np.full(epochs, np.nan) for name in ("loss", *(f"validation_{x}" for x in Judged._fields))}
        )

    def record(self, epoch: int, loss: float, judged: Judged | None, bank: Bank, row: int) -> None:
        """Write down an epoch; keep its weights if none before was better. Without held-out graphs the last is best."""
        self.history["loss"][epoch] = loss
        rank: tuple[float, ...] = (-epoch,)
        if judged is not None:
            self.history["validation_accuracy"][epoch], self.history["validation_loss"][epoch] = judged
            rank = (-judged.accuracy, judged.loss)
        if self.best is None or rank < self.rank:
            self.chosen = epoch
            self.rank = rank
            values, statistics = bank.shown
            self.best = values[row].clone(), statistics[row].clone()

    def ready(self, epoch: int, patience: int | None) -> bool:
        """Whether it has waited long enough for something better."""
        return patience is not None and len(self.split.validation) > 0 and epoch - self.chosen >= patience


def fit_ensemble(
    tables: GraphTables,
    encoder: Encoder,
    configs: Sequence[RunConfig],
    report: Callable[[FitProgress], Any] | None = None,
) -> Fitted:
    """Train models that differ in ``repeat`` only, each with its own weights to start from and graphs held out."""
    labels = tables.labels.cpu().numpy()
    first = configs[0]
    splits = [_split(config, labels) for config in configs]
    members = [Member.start(split, first.epochs) for split in splits]
    bank = Bank(tables, configs, splits)
    running = list(members)
    if bank.substitutes is not None and bool((bank.substitutes < 0).any()):
        raise DataError(f"{encoder!r} has no place for values it has not seen: make it with unknown=True.")
    while running and bank.epoch < first.epochs:
        lost, progress = _epoch(bank, running, labels)
        over = [m for m, member in enumerate(running) if m in lost or member.ready(bank.epoch - 1, first.patience)]
        if report is not None:
            report(progress._replace(finished=len(over) if bank.epoch < first.epochs else len(running)))
        if over:
            left = [m for m in range(len(running)) if m not in over]
            running = [running[m] for m in left]
            bank = bank.keep(left) if left else bank
    ensemble = _ensemble(tables, encoder, configs, members)
    history = {name: np.stack([member.history[name] for member in members]) for name in members[0].history}
    return Fitted(ensemble, history, [member.chosen for member in members])


def _split(config: RunConfig, labels: np.ndarray) -> Split:
    """The only graph of a class is always trained on."""
    every = np.arange(len(labels))
    none = np.zeros(0, np.int64)
    if not config.holdout:
        return Split(every, none, none)
    only = np.bincount(labels)[labels] == 1
    train, held = holdout(every[~only], labels, config.holdout, run_seed(config))
    return Split(np.union1d(train, every[only]), held, none)


def _epoch(bank: Bank, running: list[Member], labels: np.ndarray) -> tuple[list[int], FitProgress]:
    """Train and look; the models whose loss is not finite any more, and what to say before it is known who goes on."""
    epoch = bank.epoch
    config = bank.configs[0]
    lost = list[int]()
    seen = list[Judged]()
    losses = bank.run_epoch()
    held = [member.split.validation for member in running]
    scores = bank.scores(held) if len(held[0]) else [None] * len(running)
    for m, (member, loss, some) in enumerate(zip(running, losses, scores, strict=True)):
        if not (np.isfinite(loss) and (some is None or np.isfinite(some).all())):
            lost.append(m)
            if member.best is None:
                raise DataError(_not_finite(config, bank.tables))
            continue
        judged = None if some is None else judge(some, labels[member.split.validation], config.class_weights)
        member.record(epoch, float(loss), judged, bank, m)
        seen += [] if judged is None else [judged]
    accuracy, loss = np.mean(seen, axis=0).tolist() if seen else (float("nan"), float("nan"))
    return lost, FitProgress(epoch + 1, config.epochs, len(running), float(losses.mean()), loss, accuracy, 0)


def _not_finite(config: RunConfig, tables: GraphTables) -> str:
    """Say what to do about a loss that is not finite from the start."""
    said = f"the loss is not finite in the first epoch: lower the learning rate, which is {config.lr}"
    dense = tables.features.dense
    largest = 0.0 if dense is None or not dense.numel() else float(dense.abs().max())
    return f"{said}, or scale the node features, which reach {largest:g}." if largest > LARGE else f"{said}."


def judge(scores: np.ndarray, labels: np.ndarray, class_weights: Sequence[float] | None = None) -> Judged:
    """Scores [n, classes] against labels [n], where a graph counts as much as its class does in training."""
    weights = None if class_weights is None else np.array(class_weights)[labels]
    accuracy = np.average(scores.argmax(1) == labels, weights=weights)
    return Judged(float(accuracy), cross_entropy(scores, labels, weights))


def _ensemble(
    tables: GraphTables, encoder: Encoder, configs: Sequence[RunConfig], members: Sequence[Member]
) -> Ensemble:
    """The best of each."""
    best = [member.best for member in members if member.best is not None]
    values, statistics = (torch.stack(rows) for rows in zip(*best, strict=True))
    state = ModelState.start(values, statistics)
    bank = Bank(tables, configs, [member.split for member in members], state)
    assert bank.substitutes is not None
    tensors = {name: tensor.clone() for name, tensor in named_tensors(bank.model).items()}
    model = stack_of(bank.model, tensors).requires_grad_(False)
    return Ensemble(model, encoder, bank.substitutes, tables.classes)


def shape_of(store: PackedGraphs, given: SimpleNamespace) -> ModelConfig:
    """What the models look like."""
    options = share_options([given.pool], given.blocks, given.pool_options or {})[given.pool]
    made = model_config(store, given.gnn, given.pool, blocks=given.blocks, options=options)
    if given.weight_decay and "lr_scale" not in options:  # on a slow mapping it would weigh a hundred times as much
        made.pool_options.pop("lr_scale", None)
    return replace(made, hidden=given.hidden, layers=given.layers)


def runs_of(
    store: PackedGraphs, given: SimpleNamespace, model: ModelConfig, encoder: Encoder, classes: np.ndarray
) -> list[RunConfig]:
    """One for each model."""
    assert store.labels is not None
    codes = store.labels.numpy()
    run = RunConfig(
        data=store.name,
        fingerprint=content_key(store),
        encoder=repr(encoder),
        model=model,
        fold=0,
        seed=_seed(given.random_state),
        looks="validation",
        holdout=share_held_out(given.validation_fraction, codes),
        epochs=given.epochs,
        steps=given.steps or steps_for(len(store), given.batch_size),
        batch_size=given.batch_size,
        lr=given.lr,
        dropout=given.dropout,
        weight_decay=given.weight_decay,
        average=given.average,
        patience=given.patience,
        class_weights=class_weights(given.class_weight, classes, classes[codes]),
    )
    return [replace(run, repeat=number) for number in range(given.n_models)]


def _seed(random_state: Any) -> int:
    """Draw the seed of a fit; without a random state a new one, and never from NumPy's global generator."""
    own = np.random.RandomState() if random_state is None else check_random_state(random_state)
    return int(own.randint(2**31 - 1))
