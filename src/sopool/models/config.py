"""What kind of model: everything that decides its shape."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

from sopool._files.schema import BOOLEAN, LARGEST, Check, choice, list_of, mapping_of, record, text, value_check, whole
from sopool.nn.gnn import VARIANTS
from sopool.nn.pool.base import VectorFrom

Join = Literal["concat", "per-layer"]
DropoutOn = Literal["embedding", "logits"]
Head = Literal["per-block", "sum-readout"]

RANDOM = "-random"
"""How the names of frozen poolings end."""
LATER = ("blocks", "head", "block_readout", "frozen", "edge_labels", "pooled_norm", "head_hidden", "pool_source")
"""Settings that earlier versions did not have."""


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
    """How many edge labels a GNN that hears them knows; 0 for the others."""
    pooled_norm: bool = False
    """Whether a flat model's graph embeddings go through a batch norm, over the graphs of a batch, before all else."""
    head_hidden: int = 0
    """Units of a hidden layer between a flat model's graph embedding and its linear map; 0: there is none."""
    pool_source: str = ""
    """Which version of a readout of the user's own, see :func:`sopool.nn.registry.source_of`; empty for all others."""

    @classmethod
    def from_json(cls, saved: Any, where: str = "config") -> "ModelConfig":
        """Return the configuration with these fields, of a file; ``DataError`` names the one that cannot be."""
        return cls(**SAVED(saved, where))

    @property
    def pool_name(self) -> str:
        """The pooling as the command line has it."""
        return self.pool + RANDOM if self.frozen else self.pool

    @property
    def network(self) -> str:
        """What stands before the pooling, in words."""
        blocks = f", {self.blocks} block{'s' if self.blocks > 1 else ''}, {self.head}" if self.blocks else ""
        return self.gnn + blocks


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
}
SAVED = record(FIELDS, {item.name: item.default for item in fields(ModelConfig) if item.name in LATER})
