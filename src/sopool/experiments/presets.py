"""From names to model configurations."""

import difflib
from typing import Any, Literal

from sopool.data.errors import DataError
from sopool.data.store import PackedGraphs
from sopool.models.config import ModelConfig
from sopool.nn.gnn import VARIANTS
from sopool.nn.registry import READOUTS

Preset = Literal["default", "paper"]

FIRST_ORDER = ("sum", "mean", "max")
POOLS = (*READOUTS, "sum-avg")
"""``sum-avg`` is the paper's rule: the sum where nodes carry labels (bioinformatics), the mean where they do not
(social networks)."""


def model_config(store: PackedGraphs, gnn: str, pool: str, preset: Preset = "default") -> ModelConfig:
    """A flat model for a data set.

    First-order pools score each layer by itself and add the scores, as GIN does; the others see all layers side by
    side. With ``paper``, dropout is on the scores and the attentional pooling has a bias, as in the authors' code.
    """
    check_name("GNN", gnn, VARIANTS)
    check_name("pooling", pool, POOLS)
    if pool == "sum-avg":
        pool = "mean" if store.node_labels is None and store.node_attributes is None else "sum"
    options: dict[str, Any] = {"bias": True} if preset == "paper" and pool == "sopool-attn" else {}
    return ModelConfig(
        gnn=gnn,
        pool=pool,
        pool_options=options,
        join="per-layer" if pool in FIRST_ORDER else "concat",
        dropout_on="logits" if preset == "paper" else "embedding",
    )


def check_name(kind: str, name: str, known: Any) -> None:
    """Raise unless ``name`` is one of ``known``, with a guess at what was meant."""
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise DataError(f"there is no {kind} {name!r}.{hint} Known: {', '.join(known)}.")
