"""Train an ensemble as one bank, with early stopping of each model on its own held-out graphs."""

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sopool._runtime.environment import environment
from sopool.data.division import Division
from sopool.data.features.encoder import Encoder
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError, UserError
from sopool.estimator.ensemble import Ensemble
from sopool.estimator.truth import KnownGraphs, is_part_of_data
from sopool.estimator.validation import class_weights, label_weights
from sopool.models.config import ModelConfig
from sopool.models.network import network_of
from sopool.models.presets import model_config, share_options, system_config
from sopool.models.stack import named_tensors, stack_of
from sopool.objectives import Objective, Task
from sopool.training.bank.bank import Bank, ModelState
from sopool.training.bank.batching import GraphTables
from sopool.training.checkpoints import CHECKPOINT_SECONDS, join_states, restore_checkpoint, save_checkpoints
from sopool.training.recorder import Recorder, best_weights
from sopool.training.run_splits import Split, run_seed
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore

if TYPE_CHECKING:
    from sopool.estimator.base import GraphEstimator

LEAST_STEPS = 10
PASSES = 100
"""The number of epochs for up to ``FULL`` graphs."""
FULL = 6400
LARGE = 1e6
"""The magnitude above which node features may be the reason for a loss that is not finite."""


class Schedule(NamedTuple):
    """Default lengths of training."""

    steps: int
    """The number of batches in an epoch: one pass over the graphs, but at least 10 batches."""
    epochs: int
    """The largest number of epochs."""
    patience: int
    """The number of epochs without improvement after which a model stops."""
    halve_every: int
    """The number of epochs after which the learning rate is halved."""


def schedule_for(graphs: int, batch_size: int) -> Schedule:
    """Return the schedule for a number of graphs.

    An epoch is a pass over the graphs. There are at most 100 epochs for up to 6,400 graphs. For more, the number of
    epochs falls with the square root of the number of graphs, so that the graphs seen in all grow with it; patience and
    learning rate keep their proportion to the epochs. Chosen by ``benchmarks/epochs_rule.py`` on held-out graphs.

    Args:
        graphs: The number of graphs.
        batch_size: Graphs per batch.

    Examples:
        >>> from sopool.estimator.fitting import schedule_for
        >>> schedule_for(1000, batch_size=32)
        Schedule(steps=32, epochs=100, patience=30, halve_every=50)
        >>> schedule_for(40_000, batch_size=32)
        Schedule(steps=1250, epochs=40, patience=12, halve_every=20)
    """
    share = min(1.0, (FULL / max(1, graphs)) ** 0.5)
    steps = max(LEAST_STEPS, -(-graphs // batch_size))
    epochs, patience, halve_every = (max(1, round(share * full)) for full in (PASSES, 0.3 * PASSES, 0.5 * PASSES))
    return Schedule(steps, epochs, patience, halve_every)


class FitProgress(NamedTuple):
    """The state of a fit after an epoch; losses and scores are averages over the models still training.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator import GraphClassifier
        >>> seen = []
        >>> model = GraphClassifier(n_models=1, epochs=2, hidden=8, random_state=0, callback=seen.append)
        >>> model = model.fit(load("MUTAG"))
        >>> [progress.epoch for progress in seen]
        [1, 2]
    """

    epoch: int
    """The number of finished epochs."""
    epochs: int
    """The largest number of epochs."""
    training: int
    """The number of models still training."""
    loss: float
    """The mean training loss."""
    validation_loss: float
    """The loss on held-out graphs; NaN if no graphs are held out."""
    validation_score: float
    """The score on held-out graphs by the metric that chooses the epoch; NaN if no graphs are held out."""
    finished: int
    """The number of models for which this epoch was the last one."""
    graphs: int = 0
    """The number of graphs that each model was trained on in this epoch."""
    resumed: int = 0
    """The number of epochs that were taken from a checkpoint, once for the models that continue there; losses and
    scores are then NaN. Otherwise 0."""


class Fitted(NamedTuple):
    """A trained ensemble and its training history."""

    ensemble: Ensemble
    history: dict[str, np.ndarray]
    """``loss``, ``validation_loss`` and ``validation_score``, each ``[M, epochs]``; NaN after a model stopped."""
    best_epochs: list[int]
    """The epoch whose weights were kept, counted from 0, of each model."""


USUAL: dict[str, Any] = {"hidden": 32, "batch_size": 32, "lr": 0.01, "weight_decay": 0.0, "average": 0.99}
"""What applies where neither the user nor the recipe of a system says anything else."""
OF_POOLINGS = ("pool", "pool_options", "gnn", "layers", "blocks", "dropout")
"""Settings of networks with a pooling, which a system's network does not have."""


def model_for(store: PackedGraphs, settings: "GraphEstimator", task: Task) -> ModelConfig:
    """Return the model configuration of an estimator on these graphs; raise ``UserError`` if it is impossible."""
    if settings.system is not None:
        _check_no_pooling(settings)
        return system_config(store, settings.system, settings.hidden, settings.system_options or {})
    if settings.system_options:
        raise SettingError(
            f"system_options={dict(settings.system_options)}: system is None, so there is no system that has them. "
            "Give its name, such as system='dgcnn'."
        )
    options = share_options([settings.pool], settings.blocks, settings.pool_options or {})[settings.pool]
    made = model_config(store, settings.gnn, settings.pool, blocks=settings.blocks, options=options, task=task)
    own = made.pool_options
    if settings.weight_decay and "lr_scale" in own and "lr_scale" not in options:
        own = own | {"lr_scale": 1.0}  # with a reduced learning rate the penalty would have a hundred times the effect
    hidden = USUAL["hidden"] if settings.hidden is None else settings.hidden
    return replace(made, pool_options=own, hidden=hidden, layers=settings.layers)


def _check_no_pooling(settings: "GraphEstimator") -> None:
    """Raise ``SettingError`` if a setting was given that the network of a system does not have."""
    usual = type(settings)().get_params(deep=False)
    for name in OF_POOLINGS:
        value = getattr(settings, name)
        if value != usual[name]:
            raise SettingError(
                f"{name}={value!r} is for networks with a pooling, but system={settings.system!r} is a network of its "
                "own: leave one of the two out. Options of the system are given in system_options."
            )


def training_of(settings: "GraphEstimator", graphs: int) -> dict[str, Any]:
    """Return how an estimator trains on a number of graphs, as fields of a run's configuration.

    What the user gave comes first, then the recipe of a system, then what is usual.
    """
    names = ("epochs", "steps", "batch_size", "lr", "weight_decay", "average")
    given = {name: value for name in names if (value := getattr(settings, name)) is not None}
    if settings.patience != "auto":
        given["patience"] = settings.patience
    if settings.system is None:
        usual = {name: value for name, value in USUAL.items() if name != "hidden"} | {"dropout": settings.dropout}
        schedule = schedule_for(graphs, given.get("batch_size", USUAL["batch_size"]))
        return usual | schedule._asdict() | given
    network = network_of(settings.system)
    first = network.settings[0]
    setting = {"batch_size": first.batch_size, "lr": first.lr, "dropout": first.dropout}
    return setting | network.training(graphs, given.get("batch_size", first.batch_size)) | given


def run_configs(
    graphs: KnownGraphs, settings: "GraphEstimator", objective: Objective, model: ModelConfig, encoder: Encoder
) -> list[RunConfig]:
    """Return the training configuration of each model of the ensemble; they differ only in ``repeat``."""
    run = RunConfig(
        data=graphs.store.name,
        fingerprint=graphs.fingerprint,
        encoder=encoder.recipe,
        model=model,
        fold=0,
        seed=_seed(settings.random_state),
        looks="validation",
        holdout=share_held_out(settings.validation_fraction, None if graphs.classes is None else graphs.counts),
        class_weights=_weights_of(graphs, settings),
        **training_of(settings, len(graphs.store)),
        **objective.settings,
    )
    return [replace(run, repeat=number) for number in range(settings.n_models)]


def _weights_of(graphs: KnownGraphs, settings: "GraphEstimator") -> tuple[float, ...] | None:
    """Return the weights of the classes or labels; None if all graphs have equal weights."""
    given = settings.get_params(deep=False).get("class_weight")
    if graphs.classes is None:
        return label_weights(given, graphs.truth)
    return class_weights(given, graphs.classes, graphs.truth)


def _seed(random_state: Any) -> int:
    """Draw the seed of a fit; without a random state a new one, never from NumPy's global generator."""
    own = np.random.RandomState() if random_state is None else check_random_state(random_state)
    return int(own.randint(2**31 - 1))


def share_held_out(fraction: float, counts: np.ndarray | None) -> float:
    """Return the fraction to hold out, raised if a class would have no graph on one of the two sides.

    Only classes with several graphs count; nothing is held out if fewer than two classes have several graphs.
    ``counts`` are the numbers of graphs of the classes, None for targets.
    """
    if counts is None:
        return fraction
    several = counts[counts > 1]
    return max(fraction, len(several) / int(several.sum())) if fraction and len(several) > 1 else 0.0


def training_facts(graphs: KnownGraphs, device: str, training: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data, the environment and the settings of a training as JSON.

    Times and the number of threads are left out, so that the same training gives the same facts.
    """
    return {
        "data": {
            "name": graphs.store.name,
            "fingerprint": graphs.fingerprint,
            "graphs": len(graphs.store),
            "nodes": graphs.store.num_nodes,
            "graphs_of_class" if graphs.classes is not None else "graphs_of_target": graphs.counts.tolist(),
        },
        "training": dict(training),
        "environment": {name: value for name, value in environment(device).items() if name != "threads"},
    }


def fit_ensemble(
    tables: GraphTables,
    encoder: Encoder,
    configs: Sequence[RunConfig],
    report: Callable[[FitProgress], Any] | None = None,
    checkpoints: str | Path | None = None,
) -> Fitted:
    """Train models that differ only in ``repeat``: each has its own initial weights and held-out graphs.

    Args:
        tables: The training graphs.
        encoder: The encoder of their nodes.
        configs: The configuration of each model.
        report: Called after each epoch. Default: None.
        checkpoints: A folder from which interrupted training continues. Default: None.
    """
    kept = None if checkpoints is None else _Kept(RunStore(checkpoints))
    configs = configs if kept is None else _of_these_tables(configs, tables)
    objective, true = tables.goal
    truth = true.cpu().numpy()
    weights = None if tables.weights is None else tables.weights.cpu().numpy()
    splits = [hold_out(config, objective, truth, tables.division) for config in configs]
    _check_known(objective, truth, splits)
    recorders = [
        Recorder(config, split, objective, truth, weights, score_training=False)
        for config, split in zip(configs, splits, strict=True)
    ]
    bank = Bank(tables, configs, splits)
    substitutes = bank.inputs.substitutes
    if substitutes is not None and bool((substitutes < 0).any()):
        raise SettingError(
            f"{encoder!r} has no feature for values that are not in the training graphs: create it with unknown=True."
        )
    begun = [(0, None) if kept is None else kept.restore(one, tables) for one in recorders]
    for epoch in sorted({done for done, _ in begun}):
        which = [m for m, (done, _) in enumerate(begun) if done == epoch]
        if epoch:
            state = join_states([begun[m][1] for m in which])
            own = Bank(tables, [configs[m] for m in which], [splits[m] for m in which], state, epoch)
        else:
            own = bank if len(which) == len(configs) else bank.keep(which)
        _train(own, [recorders[m] for m in which], report or (lambda progress: None), kept)
    curves = {"loss": "step_loss", "validation_loss": "validation_loss"}
    curves["validation_score"] = f"validation_{objective.metric}"
    history = {name: np.stack([one.curves[curve] for one in recorders]) for name, curve in curves.items()}
    chosen = [one.chosen_epoch for one in recorders if one.chosen_epoch is not None]
    return Fitted(_ensemble(tables, encoder, recorders), history, chosen)


def hold_out(config: RunConfig, objective: Objective, truth: np.ndarray, division: Division) -> Split:
    """Return the training and held-out graphs of a model; the only graph of a class is never held out."""
    every = np.arange(len(truth))
    labels = objective.strata(truth)
    none = np.zeros(0, np.int64)
    if not config.holdout:
        return Split(every, none, none)
    only = np.zeros(len(truth), bool)
    if labels is not None and not division.arrays:
        only = np.bincount(labels)[labels] == 1
    train, held = division.holdout(every[~only], labels, config.holdout, run_seed(config))
    return Split(np.union1d(train, every[only]), held, none)


def _check_known(objective: Objective, truth: np.ndarray, splits: Sequence[Split]) -> None:
    """Raise ``DataError`` if all known values of a target are held out, so that nothing is left to learn from."""
    for split in splits if truth.ndim == 2 and not is_part_of_data() else ():
        lost = np.flatnonzero(np.isnan(truth[split.train]).all(0) & ~np.isnan(truth).all(0))
        if len(lost):
            name = objective.names[lost[0]]
            count = int((~np.isnan(truth[:, lost[0]])).sum())
            raise DataError(
                f"the target {name!r} is known of {count} of {len(truth):,} graphs, and all of these were held out to "
                "choose an epoch. Give more values, leave the target out, or use validation_fraction=0."
            )


def _train(bank: Bank, running: list[Recorder], report: Callable[[FitProgress], Any], kept: "_Kept | None") -> None:
    """Train models that are at the same epoch to their ends."""
    epochs = bank.configs[0].epochs
    saved = time.monotonic()
    if bank.epoch:
        unknown = float("nan")
        left = _left(bank, running)
        over = len(running) - len(left)
        report(FitProgress(bank.epoch, epochs, len(running), unknown, unknown, unknown, over, resumed=bank.epoch))
        running = [running[m] for m in left]
        bank = bank.keep(left) if left else bank
    while running and bank.epoch < epochs:
        progress = _epoch(bank, running)
        left = _left(bank, running)
        if kept is not None:
            due = time.monotonic() - saved > CHECKPOINT_SECONDS
            ended = [m for m, one in enumerate(running) if m not in left and one.stopped is None]
            kept.save(bank, running, range(len(running)) if due else ended)
            saved = time.monotonic() if due else saved
        report(progress._replace(finished=len(running) - len(left)))
        if len(left) < len(running):
            running = [running[m] for m in left]
            bank = bank.keep(left) if left else bank


def _left(bank: Bank, running: Sequence[Recorder]) -> list[int]:
    """Return the numbers of the models that are not at their ends."""
    if bank.epoch == bank.configs[0].epochs:
        return []
    return [m for m, one in enumerate(running) if one.stopped is None and not one.is_over(bank.epoch - 1)]


class _Kept:
    """The checkpoints of a fit: if they cannot be written, training goes on without them, with a warning."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.writes = True

    def restore(self, recorder: Recorder, tables: GraphTables) -> tuple[int, ModelState | None]:
        """Return the finished epochs and the state of a model; 0 and None if there is none."""
        held = ("validation_loss", f"validation_{recorder.config.metric}") if len(recorder.split.validation) else ()
        return restore_checkpoint(self.store, recorder, tables, ("step_loss", *held))

    def save(self, bank: Bank, recorders: Sequence[Recorder], which: Sequence[int]) -> None:
        """Store the states of these models."""
        try:
            if which and self.writes:
                save_checkpoints(self.store, bank, recorders, which)
        except DataError as error:
            self.writes = False
            warnings.warn(f"{error} Training goes on, but cannot continue after an interruption.", stacklevel=2)


def _of_these_tables(configs: Sequence[RunConfig], tables: GraphTables) -> list[RunConfig]:
    """Return configurations whose keys also depend on all else that training depends on."""
    digest = hashlib.sha256(f"{configs[0].fingerprint} {tables.division.key} {len(configs)}".encode())
    if tables.weights is not None:
        digest.update(tables.weights.cpu().numpy().tobytes())
    return [replace(config, fingerprint=digest.hexdigest()) for config in configs]


def _epoch(bank: Bank, running: Sequence[Recorder]) -> FitProgress:
    """Train and score for one epoch; return the progress before any model is stopped."""
    epoch = bank.epoch
    losses = bank.run_epoch()
    held = [one.graphs for one in running]
    scores = bank.scores(held) if len(held[0]) else [np.zeros((0, bank.tables.goal[0].width))] * len(running)
    values, statistics = bank.shown
    for m, (recorder, loss, some) in enumerate(zip(running, losses, scores, strict=True)):
        recorder.record(epoch, float(loss), some, (values[m], statistics[m]))
        if recorder.chosen_epoch is None:
            raise _not_finite(recorder.config, bank.tables)
    going = [one for one in running if one.stopped is None and len(held[0])]
    names = ("loss", running[0].config.metric)
    seen = [[one.curves[f"validation_{name}"][epoch] for name in names] for one in going]
    loss, score = np.mean(seen, axis=0).tolist() if seen else (float("nan"), float("nan"))
    graphs = bank.steps * bank.batch_size
    return FitProgress(epoch + 1, running[0].config.epochs, len(running), float(losses.mean()), loss, score, 0, graphs)


def _not_finite(config: RunConfig, tables: GraphTables) -> UserError:
    """Return an error with advice for a loss that is not finite in the first epoch."""
    said = f"the loss is not finite in the first epoch: use a learning rate below {config.lr}"
    numbers = tables.features.numbers
    largest = 0.0 if numbers is None or not numbers.values.numel() else float(numbers.take().abs().max())
    if largest > LARGE:
        return DataError(f"{said}, or scale the node features, which are up to {largest:g}.")
    return SettingError(f"{said}.")


def _ensemble(tables: GraphTables, encoder: Encoder, recorders: Sequence[Recorder]) -> Ensemble:
    """Return the models, each with the weights of its best epoch."""
    state = ModelState.start(*best_weights(recorders, tables.device))
    bank = Bank(tables, [one.config for one in recorders], [one.split for one in recorders], state)
    tensors = {name: tensor.clone() for name, tensor in named_tensors(bank.model).items()}
    model = stack_of(bank.model, tensors).requires_grad_(False)
    return Ensemble(model, encoder, bank.inputs, tuple(bank.objectives))
