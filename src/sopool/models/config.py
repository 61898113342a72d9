"""What kind of model: everything that decides its shape."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from sopool._files.schema import BOOLEAN, LARGEST, Check, choice, list_of, mapping_of, record, text, value_check, whole
from sopool.nn.gnn import VARIANTS
from sopool.nn.pool.base import VectorFrom
from sopool.nn.registry import default_options, makers, own_readouts

Join = Literal["concat", "per-layer"]
DropoutOn = Literal["embedding", "logits"]
Head = Literal["per-block", "sum-readout"]

RANDOM = "-random"
"""How the names of frozen poolings end."""
LATER: dict[str, Any] = {
    "blocks": 0,
    "head": "per-block",
    "block_readout": "max-mean",
    "frozen": False,
    "edge_labels": 0,
    "pooled_norm": False,
    "head_hidden": 0,
    "pool_source": "",
}
"""Fields that the first files did not have, with the values that those files stand for. Values here never change."""
FIRST_FLAT_DEFAULTS: dict[str, dict[str, Any]] = {
    "sopool": {"triangle": False, "normalize": None, "moments": [2]},
    "sopool-bimap": {"rank": 32, "triangle": False, "normalize": None, "moments": [2], "lr_scale": 1.0},
    "sopool-attn": {"bias": False, "normalize": None},
    "sopool-m-attn": {"heads": 8, "normalize": None},
    "covpool": {"rank": 32, "triangle": False, "normalize": None, "moments": [2]},
    "sortpool": {"k": 10},
    "topkpool": {"ratio": 0.5},
    "sagpool": {"ratio": 0.5},
    "diffpool": {"clusters": 8, "link": 1.0, "entropy": 1.0},
    "eigenpool": {"vectors": 8, "size": None},
}
FIRST_BLOCK_DEFAULTS: dict[str, dict[str, Any]] = {
    "sopool-m-attn": {"heads": 16, "normalize": "adjacency"},
    "diffpool": {"clusters": 16, "link": 1.0, "entropy": 1.0},
    "topkpool": {"ratio": 0.5},
    "sagpool": {"ratio": 0.5},
    "eigenpool": {"vectors": 2, "size": 4},
}
"""What the options of the poolings were, where none were given, in files that do not tell: in flat models, and in the
blocks of a hierarchy. These tables are frozen: a registry's default may change, and an entry here may not, or earlier
models would predict differently and earlier runs would lose their names. An option that is added to a pooling later
enters with the value that leaves the pooling as it was."""


class Setting(NamedTuple):
    """What a grid varies."""

    hidden: int = 32
    batch_size: int = 32
    lr: float = 0.01
    dropout: float = 0.5


@dataclass(frozen=True)
class ModelConfig:
    """A classifier: message-passing layers, one readout, linear scores; or a hierarchy of blocks."""

    gnn: str = "gin-0"
    """One of :data:`sopool.nn.gnn.VARIANTS`."""
    pool: str = "sopool-bimap"
    """One of :data:`sopool.nn.READOUTS` or :data:`sopool.nn.GRAPH_READOUTS`; in a hierarchy one of
    :data:`sopool.nn.POOLINGS`."""
    pool_options: dict[str, Any] = field(default_factory=dict)
    """Those that were given, by the user or by a preset."""
    hidden: int = 32
    layers: int = 4
    """Message-passing layers of a flat model; the input features are pooled as well, as one layer more."""
    join: Join = "concat"
    """All layers side by side through one readout and one linear map, or each through its own, the scores added."""
    dropout_on: DropoutOn = "embedding"
    """Where dropout goes: before the linear map, or on the scores as in the authors' code."""
    blocks: int = 0
    """Blocks of one message-passing layer and one pooling; 0 for a flat model."""
    head: Head = "per-block"
    """Of a hierarchy: scores of each block, averaged (the paper); or the blocks' readouts summed, then a multi-layer
    perceptron (SAGPool)."""
    block_readout: VectorFrom = "max-mean"
    """What a block's classifier sees of its nodes."""
    frozen: bool = False
    """Whether the parameters of the readout, or of the blocks' poolings, stay as they were drawn."""
    edge_labels: int = 0
    """How many edge labels a GNN that uses them knows; 0 for the others."""
    pooled_norm: bool = False
    """Whether a flat model's graph embeddings go through a batch norm, over the graphs of a batch, before all else."""
    head_hidden: int = 0
    """Units of a hidden layer between a flat model's graph embedding and its linear map; 0: there is none."""
    pool_source: str = ""
    """Which version of a readout of the user's own, see :func:`sopool.nn.registry.source_of`; empty for all others."""
    pool_defaults: dict[str, Any] = field(default_factory=dict)
    """All options of the pooling with the values that hold where ``pool_options`` has none: those of the registry at
    the time when the configuration was made. They are kept with it, so that a later version, whose registry may have
    other defaults, makes the same model. Empty for a readout of the user's own."""

    def __post_init__(self) -> None:
        if not self.pool_defaults:
            object.__setattr__(self, "pool_defaults", _defaults_now(self.pool, self.blocks, self.pool_source))

    @classmethod
    def from_json(cls, saved: Any, where: str = "config") -> "ModelConfig":
        """Return the configuration with these fields, of a file; ``DataError`` names the one that cannot be."""
        found = SAVED(saved, where)
        if "pool_defaults" not in saved and not found["pool_source"]:
            found["pool_defaults"] = dict(_first_defaults(found["pool"], found["blocks"]))
        return cls(**found)

    def canonical(self) -> dict[str, Any]:
        """Return what names the model in a run's key: without what the first files did not tell, unless it differs."""
        saved = asdict(self)
        first = _first_defaults(self.pool, self.blocks)
        saved["pool_defaults"] = {
            name: value
            for name, value in self.pool_defaults.items()
            if name not in self.pool_options and (name not in first or value != first[name])
        }
        return without_defaults(saved, LATER | {"pool_defaults": {}})

    @property
    def effective_options(self) -> dict[str, Any]:
        """All options that the pooling is made with."""
        return self.pool_defaults | self.pool_options

    @property
    def pool_name(self) -> str:
        """The pooling as the command line has it."""
        return self.pool + RANDOM if self.frozen else self.pool

    @property
    def network(self) -> str:
        """What stands before the pooling, in words."""
        blocks = f", {self.blocks} block{'s' if self.blocks > 1 else ''}, {self.head}" if self.blocks else ""
        return self.gnn + blocks


def without_defaults(saved: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields that have one of these ``defaults``."""
    return {name: value for name, value in saved.items() if name not in defaults or value != defaults[name]}


def _defaults_now(pool: str, blocks: int, source: str) -> dict[str, Any]:
    """Return what the registry says today, as JSON has it; nothing for a readout that is not the package's own."""
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
    """Check an option of a pooling: one value, or a short list of them."""
    return OPTIONS(value, where) if type(value) is list else OPTION(value, where)


FIELDS: dict[str, Check] = {
    "gnn": choice(*VARIANTS),
    "pool": text(),
    "pool_options": mapping_of(_option),
    "hidden": whole(1, 2**16),
    "layers": whole(1, 256),
    "join": choice(*get_args(Join)),
    "dropout_on": choice(*get_args(DropoutOn)),
    "blocks": whole(0, 3),
    "head": choice(*get_args(Head)),
    "block_readout": choice(*get_args(VectorFrom)),
    "frozen": BOOLEAN,
    "edge_labels": whole(0, 2**16),
    "pooled_norm": BOOLEAN,
    "head_hidden": whole(0, 2**16),
    "pool_source": text(),
    "pool_defaults": mapping_of(_option),
}
SAVED = record(FIELDS, LATER | {"pool_defaults": {}})
