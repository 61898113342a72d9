"""What one run is: a model, the graphs it trains on, how it is trained, and what is looked at."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

from sopool._files.schema import Check, choice, number, optional, record, text, tuple_of, whole
from sopool.errors import DataError
from sopool.models.config import ModelConfig, Setting, without_defaults
from sopool.models.presets import fitted_options, without_fitted

LATER: dict[str, Any] = {"weight_decay": 0.0, "patience": None, "class_weights": None, "average": 0.0}
"""Fields that the first files did not have, with the values that those files stand for. Values here never change."""
Looks = Literal["test", "validation", "chosen"]
Precision = Literal["float32", "float64"]
BELOW_ONE = math.nextafter(1, 0)


@dataclass(frozen=True)
class RunConfig:
    """One model on one fold. Equal configurations give equal results, whatever else is trained beside them."""

    data: str
    fingerprint: str
    """Of the graphs, labels and classes, see :func:`sopool.data.formats.packed.content_key`."""
    encoder: str
    model: ModelConfig
    fold: int
    folds: int = 10
    split_seed: int = 0
    seed: int = 0
    repeat: int = 0
    """0 to choose a setting, 1, 2, ... for the final runs of the ``fair`` protocol."""
    looks: Looks = "test"
    """``test``: the test fold at every epoch. ``validation``: a tenth of the training graphs is held out and looked at
    instead. ``chosen``: likewise, and then the test fold, once, at the epoch that was best on the held-out graphs."""
    holdout: float = 0.1
    epochs: int = 350
    steps: int = 50
    """Batches per epoch, each drawn without replacement from the training graphs."""
    batch_size: int = 32
    lr: float = 0.01
    halve_every: int = 50
    """Epochs after which the learning rate is halved, again and again."""
    dropout: float = 0.5
    weight_decay: float = 0.0
    """How much of each parameter is added to its gradient."""
    patience: int | None = None
    """Epochs without a better one, on the held-out graphs, after which none is chosen any more."""
    class_weights: tuple[float, ...] | None = None
    """How much a graph of each class counts in the loss; None: all alike."""
    average: float = 0.0
    """How much of the running mean of all parameters and statistics stays at each step; models are looked at, and kept,
    with that mean. 0: as they are."""
    precision: Precision = "float32"

    @property
    def setting(self) -> Setting:
        """Its place in a grid."""
        return Setting(self.model.hidden, self.batch_size, self.lr, self.dropout)

    def with_setting(self, setting: Setting) -> "RunConfig":
        """The same run at another place of a grid."""
        model = replace(self.model, hidden=setting.hidden)
        return replace(self, model=model, batch_size=setting.batch_size, lr=setting.lr, dropout=setting.dropout)

    def evaluation(self) -> "RunConfig":
        """Return what runs share that differ in fold, repeat and setting only."""
        return replace(self.with_setting(Setting()), fold=0, repeat=0)

    def experiment(self) -> "RunConfig":
        """Return what all runs of an experiment share, whatever they look at and whatever is found for each fold."""
        shared = self.evaluation()
        return replace(shared, model=without_fitted(shared.model), looks="test", encoder="", steps=0)

    def place(self) -> "RunConfig":
        """Return what runs share that differ in their pooling, setting or seed only."""
        model = replace(self.model, pool="", pool_options={}, pool_defaults={}, pool_source="", frozen=False)
        model = replace(model, join="concat", dropout_on="logits")
        return replace(self, model=model, seed=0).with_setting(Setting())

    @property
    def lengths(self) -> tuple[int, str]:
        """What is asked for, or found for each fold from its training graphs: batches in an epoch, and options."""
        return self.steps, str(fitted_options(self.model))

    def bank_shape(self) -> str:
        """Return a name for what the runs of a bank share: all but fold, seed, learning rate and dropout."""
        return replace(self, fold=0, seed=0, repeat=0, lr=0.0, dropout=0.0).key

    def to_json(self) -> dict[str, Any]:
        """Return all of it, for :meth:`from_json`."""
        return asdict(self)

    def canonical(self) -> dict[str, Any]:
        """Return what names the run: all that differs from what the first files stand for where they do not tell it."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        return without_defaults(plain | {"model": self.model.canonical()}, LATER)

    @classmethod
    def from_json(cls, saved: Any) -> "RunConfig":
        """Return the configuration that :meth:`to_json` gave; ``DataError`` if this is something else."""
        found = cls(**SAVED(saved, "config"))
        if not found.fold < found.folds:
            raise DataError(
                f"config.fold is {found.fold}, expected a number below config.folds, which is {found.folds}."
            )
        return found

    @cached_property
    def key(self) -> str:
        """A name for it: the hash of everything above, in its canonical form."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


FIELDS: dict[str, Check] = {
    "data": text(),
    "fingerprint": text("[0-9a-f]{1,64}"),  # part of the name of a file
    "encoder": text(),
    "model": ModelConfig.from_json,
    "fold": whole(),
    "folds": whole(2, 2**12),
    "split_seed": whole(),
    "seed": whole(0, 2**128),
    "repeat": whole(0, 2**7),  # for each fold and repeat there is something to look for
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
}
SAVED = record(FIELDS, LATER)
