"""What kind of model: everything that decides its shape."""

from dataclasses import dataclass, field
from typing import Any, Literal

Join = Literal["concat", "per-layer"]
DropoutOn = Literal["embedding", "logits"]


@dataclass(frozen=True)
class ModelConfig:
    """A flat classifier: message-passing layers, one readout, linear scores."""

    gnn: str = "gin-0"
    """One of :data:`sopool.nn.gnn.VARIANTS`."""
    pool: str = "sopool-bimap"
    """One of :data:`sopool.nn.READOUTS`."""
    pool_options: dict[str, Any] = field(default_factory=dict)
    hidden: int = 32
    layers: int = 4
    """Message-passing layers; the input features are pooled as well, as one layer more."""
    join: Join = "concat"
    """All layers side by side through one readout and one linear map, or each through its own, the scores added."""
    dropout_on: DropoutOn = "embedding"
    """Where dropout goes: before the linear map, or on the scores as in the authors' code."""
