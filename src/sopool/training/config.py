"""What one run is: a model, the graphs it trains on, how it is trained, and what is looked at."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from sopool.models.config import ModelConfig

LATER = {
    "blocks",
    "head",
    "block_readout",
    "frozen",
    "edge_labels",
    "pooled_norm",
    "head_hidden",
    "pool_source",
    "weight_decay",
    "patience",
    "class_weights",
    "average",
}
"""Settings that earlier versions did not have."""
Looks = Literal["test", "validation", "chosen"]


class Setting(NamedTuple):
    """What a grid varies."""

    hidden: int = 32
    batch_size: int = 32
    lr: float = 0.01
    dropout: float = 0.5


@dataclass(frozen=True)
class RunConfig:
    """One model on one fold. Equal configurations give equal results, whatever else is trained beside them."""

    data: str
    fingerprint: str
    """Of the graphs, labels and classes, see :func:`sopool.data.file.content_key`."""
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
    precision: Literal["float32", "float64"] = "float32"

    @property
    def setting(self) -> Setting:
        """Its place in a grid."""
        return Setting(self.model.hidden, self.batch_size, self.lr, self.dropout)

    def with_setting(self, setting: Setting) -> "RunConfig":
        """The same run at another place of a grid."""
        model = replace(self.model, hidden=setting.hidden)
        return replace(self, model=model, batch_size=setting.batch_size, lr=setting.lr, dropout=setting.dropout)

    def to_json(self) -> dict[str, Any]:
        """All of it, for :meth:`from_json`; but what came later is there only if it is used, so that names stay."""
        saved = asdict(self)
        for part, settings in ((saved, self), (saved["model"], self.model)):
            for item in fields(settings):
                if item.name in LATER and part[item.name] == item.default:
                    del part[item.name]
        return saved

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "RunConfig":
        """From what :meth:`to_json` gave; ``TypeError`` or ``KeyError`` if it is something else."""
        if set(saved) | LATER != {item.name for item in fields(cls)} | LATER:
            raise KeyError("not the configuration of a run")
        weights = saved.get("class_weights")
        made = {"model": ModelConfig(**saved["model"]), "class_weights": None if weights is None else tuple(weights)}
        return cls(**(saved | made))

    @cached_property
    def key(self) -> str:
        """A name for it: the hash of everything above."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
