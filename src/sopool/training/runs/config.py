"""The configuration of a run: its model, data, training and evaluation."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

from sopool._files.schema import Check, choice, number, optional, record, text, tuple_of, whole
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError
from sopool.models.config import ModelConfig, Setting, without_defaults
from sopool.models.presets import fitted_options, without_fitted
from sopool.models.systems.recipe import WITH_MOMENTUM, OptimizerName
from sopool.objectives import LOSSES, METRICS, TASKS, Objective, Task, objective_for

LATER: dict[str, Any] = {
    "weight_decay": 0.0,
    "patience": None,
    "class_weights": None,
    "average": 0.0,
    "task": "classification",
    "metric": "accuracy",
    "loss": None,
    "split": "random",
    "path": (),
    "optimizer": "adam",
    "momentum": 0.0,
    "clip": 0.0,
}
"""Fields that the first files lacked, with the values that are assumed for those files. These values never change."""
Looks = Literal["test", "validation", "chosen"]
Precision = Literal["float32", "float64"]
BELOW_ONE = math.nextafter(1, 0)


@dataclass(frozen=True)
class RunConfig:
    """The configuration of one model on one fold.

    Equal configurations give equal results, whatever is trained in the same bank.

    Examples:
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.runs.config import RunConfig
        >>> config = RunConfig("MUTAG", fingerprint="0", encoder="", model=ModelConfig(hidden=16), fold=0, lr=0.001)
        >>> config.setting
        Setting(hidden=16, batch_size=32, lr=0.001, dropout=0.5)
        >>> RunConfig.from_json(config.to_json()).key == config.key
        True
    """

    data: str
    """The name of the data set."""
    fingerprint: str
    """A hash of the graphs, labels and classes, see :func:`sopool.data.formats.packed.content_key`."""
    encoder: str
    """The encoder of the node features, as text, see :attr:`sopool.data.Encoder.recipe`."""
    model: ModelConfig
    """The configuration of the model."""
    fold: int
    """The test fold, from 0."""
    folds: int = 10
    """The number of folds."""
    split_seed: int = 0
    """The random seed of the folds."""
    seed: int = 0
    """The random seed of initial weights, batches, dropout and held-out graphs."""
    repeat: int = 0
    """0 for runs that choose a setting; 1, 2, ... for the final runs of the ``fair`` protocol."""
    looks: Looks = "test"
    """Which graphs the run is scored on. ``"test"``: the test fold, at every epoch. ``"validation"``: a part of the
    training graphs that is held out, at every epoch. ``"chosen"``: the same, and then the test fold once, at the best
    epoch on the held-out graphs."""
    holdout: float = 0.1
    """The fraction of the training graphs that is held out."""
    epochs: int = 350
    """The number of epochs."""
    steps: int = 50
    """Batches per epoch, each drawn without replacement from the training graphs."""
    batch_size: int = 32
    """Graphs per batch."""
    lr: float = 0.01
    """The initial learning rate."""
    halve_every: int = 50
    """The learning rate is halved every so many epochs; 0 keeps it constant."""
    dropout: float = 0.5
    """The dropout rate."""
    weight_decay: float = 0.0
    """The L2 penalty."""
    patience: int | None = None
    """The number of epochs without improvement on the held-out graphs after which no later epoch is chosen; None: no
    limit."""
    class_weights: tuple[float, ...] | None = None
    """The weight of each class in the loss; None weights all graphs equally."""
    average: float = 0.0
    """The decay of the running mean of all parameters and statistics. Models are scored and stored with this mean; 0
    turns averaging off."""
    precision: Precision = "float32"
    """The floating-point type, ``"float32"`` or ``"float64"``."""
    task: Task = "classification"
    """What is predicted: one class (``"classification"``), several labels (``"multi-label"``) or numbers
    (``"regression"``)."""
    metric: str = "accuracy"
    """The metric that chooses epochs and settings."""
    loss: str | None = None
    """The loss of a regression: ``"squared"``, ``"absolute"`` or ``"huber"``."""
    path: tuple[float, ...] = ()
    """The regularization path of a fixed system: the strengths of its learner, which are to it what epochs are to a
    network. Each is an epoch of its curves. Empty for networks."""
    split: str = "random"
    """What the graphs are divided by, see :attr:`sopool.data.division.Division.key`."""
    optimizer: OptimizerName = "adam"
    """The optimizer: ``"adam"``, ``"sgd"``, ``"rmsprop"`` or ``"adagrad"``, with the constants of ``torch.optim``."""
    momentum: float = 0.0
    """The momentum of ``"sgd"`` and ``"rmsprop"``."""
    clip: float = 0.0
    """The largest norm of a model's gradient; a longer one is scaled down. 0 turns clipping off."""

    @property
    def split_name(self) -> str:
        """What the graphs are divided by, as users call it: ``random``, ``scaffold``, ``time:year`` and so on."""
        return self.split if self.split == "random" else self.split.rpartition(" ")[0]

    @property
    def setting(self) -> Setting:
        """The hyperparameters that a grid varies."""
        if self.path:
            return Setting.of_system(self.model.system_options)
        options = tuple(self.model.system_options.items())
        return Setting(self.model.hidden, self.batch_size, self.lr, self.dropout, options)

    def with_setting(self, setting: Setting) -> "RunConfig":
        """Return the same run with another setting."""
        model = replace(self.model, system_options=dict(setting.options))
        if not setting.is_network:
            return replace(self, model=model)
        model = replace(model, hidden=setting.hidden)
        return replace(self, model=model, batch_size=setting.batch_size, lr=setting.lr, dropout=setting.dropout)

    def evaluation(self) -> "RunConfig":
        """Return the configuration that runs share if they differ only in fold, repeat and setting."""
        return replace(self.with_setting(Setting()), fold=0, repeat=0)

    def experiment(self) -> "RunConfig":
        """Return the configuration that all runs of an experiment share, without what differs by protocol or fold."""
        shared = self.evaluation()
        return replace(shared, model=without_fitted(shared.model), looks="test", encoder="", steps=0)

    def place(self) -> "RunConfig":
        """Return the configuration that runs share if they differ only in pooling, setting or seed."""
        model = replace(self.model, pool="", pool_options={}, pool_defaults={}, pool_source="", frozen=False)
        model = replace(model, join="concat", dropout_on="logits", system="", system_version="")
        if self.path:  # systems with different learners can be compared
            return replace(self, model=model, seed=0, path=(), epochs=1).with_setting(Setting())
        return replace(self, model=model, seed=0).with_setting(Setting())

    def objective(self, store: PackedGraphs) -> Objective:
        """Return the objective of the run for the graphs of its data set."""
        return objective_for(store, self.task, self.metric, self.loss, self.class_weights)

    @property
    def lengths(self) -> tuple[int, str]:
        """The batches per epoch and the fitted options, which are given or derived from a fold's training graphs."""
        return self.steps, str(fitted_options(self.model))

    def bank_shape(self) -> str:
        """Return an identifier of what the runs of a bank share: all but fold, seed, learning rate and dropout."""
        return replace(self, fold=0, seed=0, repeat=0, lr=0.0, dropout=0.0).key

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object for :meth:`from_json`."""
        return asdict(self) | {"path": list(self.path)}

    def canonical(self) -> dict[str, Any]:
        """Return the values that identify the run, without later fields that have their default values."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        return without_defaults(plain | {"model": self.model.canonical()}, LATER)

    @classmethod
    def from_json(cls, saved: Any) -> "RunConfig":
        """Return the configuration that :meth:`to_json` wrote; raise ``DataError`` if ``saved`` is not one."""
        found = cls(**SAVED(saved, "config"))
        if not found.fold < found.folds:
            raise DataError(
                f"config.fold is {found.fold}, expected a number below config.folds, which is {found.folds}."
            )
        if found.task not in METRICS[found.metric].tasks or (found.loss is None) == (found.task == "regression"):
            raise DataError(f"config.metric {found.metric!r} and config.loss {found.loss!r} are not for {found.task}.")
        if found.path and len(found.path) != found.epochs:
            raise DataError(
                f"config.path has {len(found.path)} strengths, expected one for each epoch: {found.epochs}."
            )
        if found.momentum and found.optimizer not in WITH_MOMENTUM:
            raise DataError(f"config.momentum is {found.momentum}, but the optimizer {found.optimizer} has none.")
        return found

    @cached_property
    def key(self) -> str:
        """An identifier: a hash of all fields in their canonical form."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


FIELDS: dict[str, Check] = {
    "data": text(),
    "fingerprint": text("[0-9a-f]{1,64}"),  # part of the name of a file
    "encoder": text(),
    "model": ModelConfig.from_json,
    "fold": whole(),
    "folds": whole(1, 2**12),  # 1 for a given test set
    "split_seed": whole(),
    "seed": whole(0, 2**128),
    "repeat": whole(0, 2**7),  # each fold and repeat is looked up
    "looks": choice(*get_args(Looks)),
    "holdout": number(0, BELOW_ONE),
    "epochs": whole(1, 2**31),
    "steps": whole(1, 2**31),
    "batch_size": whole(1, 2**31),
    "lr": number(0),
    "halve_every": whole(),
    "dropout": number(0, BELOW_ONE),
    "weight_decay": number(0),
    "patience": optional(whole()),
    "class_weights": optional(tuple_of(number(0))),
    "average": number(0, BELOW_ONE),
    "precision": choice(*get_args(Precision)),
    "task": choice(*TASKS),
    "metric": choice(*METRICS),
    "loss": optional(choice(*LOSSES)),
    "split": text(most=2**10),
    "path": tuple_of(number()),
    "optimizer": choice(*get_args(OptimizerName)),
    "momentum": number(0, BELOW_ONE),
    "clip": number(0),
}
SAVED = record(FIELDS, LATER)
