"""The variants of second-order pooling that `search.py` compares, and first-order variants for reference."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

BIMAP = "bimap (paper)"
SUM = "sum-avg (paper)"
STANDARDIZED = "standardized"
"""The name of the first readout of `standardized.py`."""
BOTH = "both"
"""The name of its second readout."""
AVERAGED = ", averaged"
LARGE_BATCH = ", batch 128"
ENDS: dict[str, dict[str, Any]] = {AVERAGED: {"average": 0.99}, LARGE_BATCH: {"batch_size": 128}}
"""Suffixes of names, and how the runs of such a variant differ."""


@dataclass(frozen=True)
class Form:
    """The differences of a variant from the paper's setting."""

    pool: str = "sopool-bimap"
    options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)


NORM = {"pooled_norm": True}
ON_EMBEDDING = {"dropout_on": "embedding"}
FROZEN = {"frozen": True}
NO_DROPOUT = {"dropout": 0.0}
DROPOUTS = {
    "dropout on embedding": (ON_EMBEDDING, {}),
    "light dropout": (ON_EMBEDDING, {"dropout": 0.2}),
    "no dropout": ({}, NO_DROPOUT),
}
"""Kinds of dropout: the differences in the model and in its training."""


def normed(pool: str = "sopool-bimap", options: dict | None = None, run: dict | None = None, **model: Any) -> Form:
    """Return the variant with a batch norm of the graph embedding, and dropout after it instead of on the scores."""
    return Form(pool, options or {}, NORM | ON_EMBEDDING | model, run or {})


def standardized(power: float = 0.5) -> dict[str, Any]:
    """Return the changes that replace the pooling of a model by the standardized readout of `standardized.py`."""
    return {"pool": STANDARDIZED, "pool_options": {"power": power}}


def slow(normalize: str | None = None, rank: int = 32) -> dict[str, Any]:
    """Return options of bimap with a learning rate of W that is a tenth of that of the other parameters."""
    return {"normalize": normalize, "lr_scale": 0.1} | ({} if rank == 32 else {"rank": rank})


def slow_forms() -> dict[str, Form]:
    """Return variants with all kinds of dropout and normalization and two ranks.

    An example is `slow, rank 16, size, matrix-sqrt, no dropout`.
    """
    found = {}
    for rank, normalize in product((32, 16), (None, "size", "matrix-sqrt", "size+matrix-sqrt")):
        parts = ["slow", *([] if rank == 32 else [f"rank {rank}"]), *(normalize.split("+") if normalize else [])]
        for way, (model, run) in DROPOUTS.items():
            found[", ".join([*parts, way])] = Form(options=slow(normalize, rank), model=model, run=run)
    return found


def both(normalize: str | None = None) -> dict[str, Any]:
    """Return the changes that replace the pooling of a model by the first moment of H and a slow bimap."""
    return {"pool": BOTH, "pool_options": slow(normalize)}


FORMS = {
    SUM: Form("sum-avg"),
    BIMAP: Form(),
    "size": Form(options={"normalize": "size"}),
    "trace": Form(options={"normalize": "trace"}),
    "sqrt": Form(options={"normalize": "sqrt"}),
    "matrix-sqrt": Form(options={"normalize": "matrix-sqrt"}),
    "triangle": Form(options={"triangle": True}),
    "moments 1, 2": Form(options={"moments": (1, 2)}),
    "rank 4": Form(options={"rank": 4}),
    "rank 16": Form(options={"rank": 16}),
    "rank 64": Form(options={"rank": 64}),
    "dropout on embedding": Form(model=ON_EMBEDDING),
    "no dropout": Form(run=NO_DROPOUT),
    "weight decay 1e-4": Form(run={"weight_decay": 1e-4}),
    "weight decay 1e-3": Form(run={"weight_decay": 1e-3}),
    "batch norm": Form(model=NORM),
    "hidden layer": Form(model={"head_hidden": 32}),
    "per layer": Form(model={"join": "per-layer"}),
    "lr 0.001": Form(run={"lr": 0.001}),
    "lr 0.003": Form(run={"lr": 0.003}),
    "lr never halved": Form(run={"halve_every": 1000}),
    "batch 128": Form(run=ENDS[LARGE_BATCH]),
    "hidden 64": Form(model={"hidden": 64}),
    "attn": Form("sopool-attn"),
    "m_attn, 8 heads": Form("sopool-m-attn"),
    "m_attn, 32 heads": Form("sopool-m-attn", {"heads": 32}),
    "covpool": Form("covpool"),
    "sum-avg, dropout on embedding": Form("sum-avg", model=ON_EMBEDDING),
    "sum-avg, normed": normed("sum-avg"),
    "normed": normed(),
    "normed, no dropout": normed(run=NO_DROPOUT),
    "normed, per layer": normed(join="per-layer"),
    "normed, moments 1, 2": normed(options={"moments": (1, 2)}),
    "normed, per layer, moments 1, 2": normed(options={"moments": (1, 2)}, join="per-layer"),
    "normed, trace": normed(options={"normalize": "trace"}),
    "normed, sqrt": normed(options={"normalize": "sqrt"}),
    "normed, matrix-sqrt": normed(options={"normalize": "matrix-sqrt"}),
    "normed, rank 16": normed(options={"rank": 16}),
    "normed, hidden layer": normed(head_hidden=32),
    "normed, hidden 64": normed(hidden=64),
    "normed, weight decay 1e-4": normed(run={"weight_decay": 1e-4}),
    "normed" + LARGE_BATCH: normed(run=ENDS[LARGE_BATCH]),
    "normed, lr 0.003": normed(run={"lr": 0.003}),
    "normed attn": normed("sopool-attn"),
    "normed m_attn, 8 heads": normed("sopool-m-attn"),
    "normed covpool": normed("covpool"),
    "sum-avg, no dropout": Form("sum-avg", run=NO_DROPOUT),
    "sum-avg, normed, lr 0.003": normed("sum-avg", run={"lr": 0.003}),
    "standardized, p = 0": Form(model=standardized(power=0.0) | ON_EMBEDDING),
    "standardized": Form(model=standardized() | ON_EMBEDDING),
    "normed standardized, p = 0": Form(model=standardized(power=0.0) | NORM | ON_EMBEDDING),
    "normed standardized": Form(model=standardized() | NORM | ON_EMBEDDING),
    "normed standardized, p = 1": Form(model=standardized(power=1.0) | NORM | ON_EMBEDDING),
    "normed standardized, hidden layer": Form(model=standardized() | NORM | ON_EMBEDDING | {"head_hidden": 32}),
    "random, no dropout": Form(model=FROZEN, run=NO_DROPOUT),
    "random, dropout on embedding": Form(model=FROZEN | ON_EMBEDDING),
    "random, normed": normed(**FROZEN),
    "random m_attn, no dropout": Form("sopool-m-attn", model=FROZEN, run=NO_DROPOUT),
    "m_attn, no dropout": Form("sopool-m-attn", run=NO_DROPOUT),
    "sum-avg, normed, hidden layer": normed("sum-avg", head_hidden=32),
    "size, dropout on embedding": Form(options={"normalize": "size"}, model=ON_EMBEDDING),
    "random, size, dropout on embedding": Form(options={"normalize": "size"}, model=FROZEN | ON_EMBEDDING),
    "random, trace, dropout on embedding": Form(options={"normalize": "trace"}, model=FROZEN | ON_EMBEDDING),
    "random, sqrt, dropout on embedding": Form(options={"normalize": "sqrt"}, model=FROZEN | ON_EMBEDDING),
    "random, size, no dropout": Form(options={"normalize": "size"}, model=FROZEN, run=NO_DROPOUT),
    "size, no dropout": Form(options={"normalize": "size"}, run=NO_DROPOUT),
    "matrix-sqrt, no dropout": Form(options={"normalize": "matrix-sqrt"}, run=NO_DROPOUT),
    "random, matrix-sqrt, no dropout": Form(options={"normalize": "matrix-sqrt"}, model=FROZEN, run=NO_DROPOUT),
    "random, moments 1, 2, no dropout": Form(options={"moments": (1, 2)}, model=FROZEN, run=NO_DROPOUT),
    "random, size, moments 1, 2, no dropout": Form(
        options={"normalize": "size", "moments": (1, 2)}, model=FROZEN, run=NO_DROPOUT
    ),
    "random, size, matrix-sqrt, no dropout": Form(
        options={"normalize": "size+matrix-sqrt"}, model=FROZEN, run=NO_DROPOUT
    ),
    **slow_forms(),
    "both, dropout on embedding": Form(model=both() | ON_EMBEDDING),
    "both, no dropout": Form(model=both(), run=NO_DROPOUT),
    "both, size, dropout on embedding": Form(model=both("size") | ON_EMBEDDING),
    "both, size, no dropout": Form(model=both("size"), run=NO_DROPOUT),
    "both, matrix-sqrt, no dropout": Form(model=both("matrix-sqrt"), run=NO_DROPOUT),
    "both, size, matrix-sqrt, no dropout": Form(model=both("size+matrix-sqrt"), run=NO_DROPOUT),
    "random both, matrix-sqrt, no dropout": Form(model=both("matrix-sqrt") | FROZEN, run=NO_DROPOUT),
    "normed both": Form(model=both() | NORM | ON_EMBEDDING),
    "normed both, no dropout": Form(model=both() | NORM, run=NO_DROPOUT),
    "normed, size": normed(options={"normalize": "size"}),
}


def form_of(name: str) -> Form:
    """Return the variant with a given name, which may end with some of ``ENDS``."""
    for end, run in ENDS.items():
        if name.endswith(end):
            form = form_of(name.removesuffix(end))
            return replace(form, run=form.run | run)
    return FORMS[name]
