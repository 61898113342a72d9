"""The configuration of a model: everything that determines its architecture."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

from sopool._files.schema import (
    BOOLEAN,
    LARGEST,
    SCALAR,
    Check,
    choice,
    list_of,
    mapping_of,
    record,
    text,
    value_check,
    whole,
)
from sopool.nn.gnn import VARIANTS, EdgeSpec
from sopool.nn.pool.base import VectorFrom
from sopool.nn.registry import default_options, makers, own_readouts

Join = Literal["concat", "per-layer"]
DropoutOn = Literal["embedding", "logits"]
Head = Literal["per-block", "sum-readout"]
BlockReadout = Literal[VectorFrom, "sopool-pairs"]

MOST_HIDDEN = 2**16
MOST_LAYERS = 256
"""The largest width and number of message-passing layers."""
RANDOM = "-random"
"""The suffix of the names of poolings with random, fixed parameters."""
LATER: dict[str, Any] = {
    "blocks": 0,
    "head": "per-block",
    "block_readout": "max-mean",
    "frozen": False,
    "edge_labels": 0,
    "edge_categories": [],
    "edge_attributes": 0,
    "edge_weights": False,
    "graph_attributes": 0,
    "pooled_norm": False,
    "head_hidden": 0,
    "pool_source": "",
    "system": "",
    "system_version": "",
    "system_options": {},
}
"""Fields that the first file format did not have, with the values that are assumed for such files. Never change these
values."""
SELECTING = {"ratio": 0.5, "min_score": None, "multiplier": 1.0, "nonlinearity": "tanh"}
FIRST_FLAT_DEFAULTS: dict[str, dict[str, Any]] = {
    "sopool": {"triangle": False, "normalize": None, "moments": [2]},
    "sopool-bimap": {"rank": 32, "triangle": False, "normalize": None, "moments": [2], "lr_scale": 1.0},
    "sopool-attn": {"bias": False, "normalize": None},
    "sopool-m-attn": {"heads": 8, "normalize": None},
    "sopool-pairs": {
        **{"rank": 16, "distances": 6, "rest": False, "walks": False, "normalize": "log", "with_sum": True},
        **{"layers": 2, "batch_norm": False, "lr_scale": 1.0, "decay": 0.0},
    },
    "covpool": {"rank": 32, "triangle": False, "normalize": None, "moments": [2]},
    "sortpool": {"k": 10},
    "topkpool": SELECTING,
    "sagpool": SELECTING,
    "diffpool": {"clusters": 8, "link": 1.0, "entropy": 1.0},
    "eigenpool": {"vectors": 8, "size": None},
}
FIRST_BLOCK_DEFAULTS: dict[str, dict[str, Any]] = {
    "sopool-m-attn": {"heads": 16, "normalize": "adjacency"},
    "diffpool": {"clusters": 16, "link": 1.0, "entropy": 1.0},
    "topkpool": SELECTING,
    "sagpool": SELECTING,
    "eigenpool": {"vectors": 2, "size": 4},
}
"""The default options of poolings for files that do not contain them: in flat models (``FIRST_FLAT_DEFAULTS``) and in
the blocks of hierarchical models. These tables are frozen. The defaults of the registry may change, but a changed entry
here would change the predictions of earlier models and the keys of earlier runs. Add a new option of a pooling with the
value that keeps its previous behavior."""


class Setting(NamedTuple):
    """The hyperparameters that a grid search varies.

    Examples:
        >>> from sopool.models.config import Setting
        >>> Setting(hidden=64)
        Setting(hidden=64, batch_size=32, lr=0.01, dropout=0.5)
        >>> Setting.of_system({"size": 3}).to_json()
        {'size': 3}
    """

    hidden: int = 32
    batch_size: int = 32
    lr: float = 0.01
    dropout: float = 0.5
    options: tuple[tuple[str, Any], ...] = ()
    """Hyperparameters of a system other than the network of this package, by name."""

    @classmethod
    def of_system(cls, options: Mapping[str, Any]) -> "Setting":
        """Return the setting of a system that is not a network and has only ``options``."""
        return cls(0, 0, 0.0, 0.0, tuple(options.items()))

    @property
    def is_network(self) -> bool:
        """Whether it is the setting of a network, which has a width, a batch size and so on."""
        return self.hidden > 0

    def to_json(self) -> dict[str, Any]:
        """Return the hyperparameters by name, without those that do not apply."""
        numbers = {"hidden": self.hidden, "batch_size": self.batch_size, "lr": self.lr, "dropout": self.dropout}
        return (numbers if self.is_network else {}) | dict(self.options)

    def __repr__(self) -> str:
        return f"Setting({', '.join(f'{name}={value!r}' for name, value in self.to_json().items())})"


@dataclass(frozen=True)
class ModelConfig:
    """The architecture of a flat or a hierarchical classifier.

    Examples:
        >>> config = ModelConfig(pool="sopool-bimap", pool_options={"rank": 16}, hidden=64)
        >>> config.effective_options["rank"]
        16
        >>> ModelConfig(pool="sopool-m-attn", blocks=2).network
        'gin-0, 2 blocks, per-block'
    """

    gnn: str = "gin-0"
    """The message-passing layers, a key of ``sopool.nn.gnn.VARIANTS``."""
    pool: str = "sopool-bimap"
    """The pooling: a key of :data:`sopool.nn.READOUTS` or :data:`sopool.nn.GRAPH_READOUTS`, or in a hierarchical model
    of :data:`sopool.nn.POOLINGS`."""
    pool_options: dict[str, Any] = field(default_factory=dict)
    """The options of the pooling that were set by the user or by a preset. Of a system, those that were computed from
    the training graphs."""
    hidden: int = 32
    """The width of the message-passing layers."""
    layers: int = 4
    """The number of message-passing layers of a flat model. The input features are pooled as well, like another layer.
    """
    join: Join = "concat"
    """How a flat model uses its layers: ``"concat"`` concatenates them before one readout and one linear classifier;
    ``"per-layer"`` gives each layer its own and adds the scores."""
    dropout_on: DropoutOn = "embedding"
    """Where dropout is applied: on the graph embedding, or on the scores as in the authors' code."""
    blocks: int = 0
    """The number of blocks, each of one message-passing layer and one pooling; 0 for a flat model."""
    head: Head = "per-block"
    """The classifier of a hierarchical model: ``"per-block"`` averages the scores of all blocks (the paper);
    ``"sum-readout"`` sums the readouts of the blocks and applies a multi-layer perceptron (SAGPool)."""
    block_readout: BlockReadout = "max-mean"
    """How the nodes of a block become a vector for its classifier, see :class:`~sopool.nn.PooledReadout`;
    ``"sopool-pairs"`` reads the last block by walks between its nodes, and those before it by ``"max-mean"``."""
    frozen: bool = False
    """Whether the parameters of the readout, or of the pooling layers, keep their random initial values."""
    edge_labels: int = 0
    """The number of edge labels, for message-passing layers that use them; otherwise 0."""
    edge_categories: list[int] = field(default_factory=list)
    """The number of values of each further column of edge categories, for layers that use them; otherwise empty."""
    edge_attributes: int = 0
    """The number of edge attributes, for layers that use them; otherwise 0."""
    edge_weights: bool = False
    """Whether messages are multiplied by the weights of edges."""
    graph_attributes: int = 0
    """The number of attributes of each graph that are appended to its embedding; 0 for none."""
    pooled_norm: bool = False
    """Whether the graph embeddings of a flat model are batch normalized before the classifier."""
    head_hidden: int = 0
    """The number of units of a hidden layer between the graph embedding and the linear classifier of a flat model; 0
    for none."""
    pool_source: str = ""
    """A hash of the source code of a user's readout, see :func:`sopool.nn.registry.source_of`; otherwise empty."""
    system: str = ""
    """The name of a system that takes the place of layers and pooling, which are without meaning then, see
    :mod:`sopool.experiments.systems`; otherwise empty."""
    system_version: str = ""
    """The version of the system, with a hash of its source code if it is the user's; otherwise empty."""
    system_options: dict[str, Any] = field(default_factory=dict)
    """The hyperparameters of the system, such as ``{"iterations": 3}``; otherwise empty."""
    pool_defaults: dict[str, Any] = field(default_factory=dict)
    """The options of the pooling that apply where ``pool_options`` has none. They are stored with the configuration, so
    that later versions with other defaults create the same model. Empty for a user's readout."""

    def __post_init__(self) -> None:
        if not self.pool_defaults:
            object.__setattr__(self, "pool_defaults", _defaults_now(self.pool, self.blocks, self.pool_source))

    @classmethod
    def from_json(cls, saved: Any, where: str = "config") -> "ModelConfig":
        """Return the configuration with the fields of a file; a ``DataError`` names an invalid field."""
        found = SAVED(saved, where)
        if "pool_defaults" not in saved and not found["pool_source"]:
            found["pool_defaults"] = dict(_first_defaults(found["pool"], found["blocks"]))
        return cls(**found)

    def canonical(self) -> dict[str, Any]:
        """Return the fields that identify the model in the key of a run, without those at their first default."""
        saved = asdict(self)
        first = _first_defaults(self.pool, self.blocks)
        saved["pool_defaults"] = {
            name: value
            for name, value in self.pool_defaults.items()
            if name not in self.pool_options and (name not in first or value != first[name])
        }
        return without_defaults(saved, LATER | {"pool_defaults": {}})

    def with_first_defaults(self) -> "ModelConfig":
        """Return the configuration with the first defaults of its pooling, with which earlier runs were trained."""
        first = _first_defaults(self.pool, self.blocks)
        return replace(self, pool_defaults={name: first.get(name, now) for name, now in self.pool_defaults.items()})

    @property
    def effective_options(self) -> dict[str, Any]:
        """All options with which the pooling is created."""
        return self.pool_defaults | self.pool_options

    @property
    def edges(self) -> EdgeSpec:
        """What edges have that the message-passing layers use."""
        labels = (self.edge_labels,) if self.edge_labels else ()
        return EdgeSpec((*labels, *self.edge_categories), self.edge_attributes, self.edge_weights)

    @property
    def pool_name(self) -> str:
        """The name of the pooling, or of the system that takes its place, on the command line."""
        return self.system or (self.pool + RANDOM if self.frozen else self.pool)

    @property
    def network(self) -> str:
        """A description of the model without its pooling; empty for a system that takes the place of both."""
        if self.system:
            return ""
        blocks = f", {self.blocks} block{'s' if self.blocks > 1 else ''}, {self.head}" if self.blocks else ""
        return self.gnn + blocks


def without_defaults(saved: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Leave out the fields whose values equal their ``defaults``."""
    return {name: value for name, value in saved.items() if name not in defaults or value != defaults[name]}


def _defaults_now(pool: str, blocks: int, source: str) -> dict[str, Any]:
    """Return the current defaults of the registry in JSON types; nothing for a user's readout."""
    known = makers(bool(blocks)).keys() - (() if blocks else own_readouts().keys())
    found = default_options(pool, bool(blocks)) if pool in known and not source else {}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _first_defaults(pool: str, blocks: int) -> dict[str, Any]:
    return (FIRST_BLOCK_DEFAULTS if blocks else FIRST_FLAT_DEFAULTS).get(pool, {})


OPTION = value_check(
    lambda value: (
        value is None or type(value) in (bool, str) or (type(value) in (int, float) and abs(value) <= LARGEST)
    ),
    "an option of a pooling: a number, a text, true, false or null, or a few of them",
)
OPTIONS = list_of(OPTION, most=8)


def _option(value: Any, where: str) -> Any:
    """Check an option of a pooling, which is one value or a short list of values."""
    return OPTIONS(value, where) if type(value) is list else OPTION(value, where)


FIELDS: dict[str, Check] = {
    "gnn": choice(*VARIANTS),
    "pool": text(),
    "pool_options": mapping_of(_option),
    "hidden": whole(1, MOST_HIDDEN),
    "layers": whole(1, MOST_LAYERS),
    "join": choice(*get_args(Join)),
    "dropout_on": choice(*get_args(DropoutOn)),
    "blocks": whole(0, 3),
    "head": choice(*get_args(Head)),
    "block_readout": choice(*get_args(BlockReadout)),
    "frozen": BOOLEAN,
    "edge_labels": whole(0, 2**16),
    "edge_categories": list_of(whole(1, 2**16), most=256),
    "edge_attributes": whole(0, 2**16),
    "edge_weights": BOOLEAN,
    "graph_attributes": whole(0, 2**16),
    "pooled_norm": BOOLEAN,
    "head_hidden": whole(0, 2**16),
    "pool_source": text(),
    "system": text(),
    "system_version": text(),
    "system_options": mapping_of(SCALAR),
    "pool_defaults": mapping_of(_option),
}
SAVED = record(FIELDS, LATER | {"pool_defaults": {}})
