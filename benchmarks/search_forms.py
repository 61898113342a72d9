"""The forms of second-order pooling that `search.py` compares, and the first-order ones beside them."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

BIMAP, SUM = "bimap (paper)", "sum-avg (paper)"
STANDARDIZED, BOTH = "standardized", "both"
"""The names of the readouts of `standardized.py`."""
AVERAGED, LARGE_BATCH = ", averaged", ", batch 128"
ENDS: dict[str, dict[str, Any]] = {AVERAGED: {"average": 0.99}, LARGE_BATCH: {"batch_size": 128}}
"""What a name may end with, and how the runs of that form then differ."""


@dataclass(frozen=True)
class Form:
    """What differs from the paper's setting."""

    pool: str = "sopool-bimap"
    options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)


NORM = {"pooled_norm": True}
AFTER = {"dropout_on": "embedding"}
RANDOM = {"frozen": True}
DRY = {"dropout": 0.0}
WAYS = {"dropout on embedding": (AFTER, {}), "light dropout": (AFTER, {"dropout": 0.2}), "no dropout": ({}, DRY)}
"""To drop: what differs in the model, and in its training."""


def normed(pool: str = "sopool-bimap", options: dict | None = None, run: dict | None = None, **model: Any) -> Form:
    """A batch norm of the graph embedding and dropout after it, instead of on the scores."""
    return Form(pool, options or {}, NORM | AFTER | model, run or {})


def standardized(power: float = 0.5) -> dict[str, Any]:
    """What makes a model one with the readout of `standardized.py`, whatever its pooling was."""
    return {"pool": STANDARDIZED, "pool_options": {"power": power}}


def slow(normalize: str | None = None, rank: int = 32) -> dict[str, Any]:
    """Options of bimap: W learns ten times more slowly than the rest."""
    return {"normalize": normalize, "lr_scale": 0.1} | ({} if rank == 32 else {"rank": rank})


def slow_forms() -> dict[str, Form]:
    """With all ways to drop, to normalise and two ranks: `slow, rank 16, size, matrix-sqrt, no dropout` is one."""
    found = {}
    for rank, normalize in product((32, 16), (None, "size", "matrix-sqrt", "size+matrix-sqrt")):
        parts = ["slow", *([] if rank == 32 else [f"rank {rank}"]), *(normalize.split("+") if normalize else [])]
        for way, (model, run) in WAYS.items():
            found[", ".join([*parts, way])] = Form(options=slow(normalize, rank), model=model, run=run)
    return found


def both(normalize: str | None = None) -> dict[str, Any]:
    """What makes a model one with the first moment of H beside a slow bimap, whatever its pooling was."""
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
    "dropout on embedding": Form(model=AFTER),
    "no dropout": Form(run=DRY),
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
    "sum-avg, dropout on embedding": Form("sum-avg", model=AFTER),
    "sum-avg, normed": normed("sum-avg"),
    "normed": normed(),
    "normed, no dropout": normed(run=DRY),
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
    "sum-avg, no dropout": Form("sum-avg", run=DRY),
    "sum-avg, normed, lr 0.003": normed("sum-avg", run={"lr": 0.003}),
    "standardized, p = 0": Form(model=standardized(power=0.0) | AFTER),
    "standardized": Form(model=standardized() | AFTER),
    "normed standardized, p = 0": Form(model=standardized(power=0.0) | NORM | AFTER),
    "normed standardized": Form(model=standardized() | NORM | AFTER),
    "normed standardized, p = 1": Form(model=standardized(power=1.0) | NORM | AFTER),
    "normed standardized, hidden layer": Form(model=standardized() | NORM | AFTER | {"head_hidden": 32}),
    "random, no dropout": Form(model=RANDOM, run=DRY),
    "random, dropout on embedding": Form(model=RANDOM | AFTER),
    "random, normed": normed(**RANDOM),
    "random m_attn, no dropout": Form("sopool-m-attn", model=RANDOM, run=DRY),
    "m_attn, no dropout": Form("sopool-m-attn", run=DRY),
    "sum-avg, normed, hidden layer": normed("sum-avg", head_hidden=32),
    "size, dropout on embedding": Form(options={"normalize": "size"}, model=AFTER),
    "random, size, dropout on embedding": Form(options={"normalize": "size"}, model=RANDOM | AFTER),
    "random, trace, dropout on embedding": Form(options={"normalize": "trace"}, model=RANDOM | AFTER),
    "random, sqrt, dropout on embedding": Form(options={"normalize": "sqrt"}, model=RANDOM | AFTER),
    "random, size, no dropout": Form(options={"normalize": "size"}, model=RANDOM, run=DRY),
    "size, no dropout": Form(options={"normalize": "size"}, run=DRY),
    "matrix-sqrt, no dropout": Form(options={"normalize": "matrix-sqrt"}, run=DRY),
    "random, matrix-sqrt, no dropout": Form(options={"normalize": "matrix-sqrt"}, model=RANDOM, run=DRY),
    "random, moments 1, 2, no dropout": Form(options={"moments": (1, 2)}, model=RANDOM, run=DRY),
    "random, size, moments 1, 2, no dropout": Form(
        options={"normalize": "size", "moments": (1, 2)}, model=RANDOM, run=DRY
    ),
    "random, size, matrix-sqrt, no dropout": Form(options={"normalize": "size+matrix-sqrt"}, model=RANDOM, run=DRY),
    **slow_forms(),
    "both, dropout on embedding": Form(model=both() | AFTER),
    "both, no dropout": Form(model=both(), run=DRY),
    "both, size, dropout on embedding": Form(model=both("size") | AFTER),
    "both, size, no dropout": Form(model=both("size"), run=DRY),
    "both, matrix-sqrt, no dropout": Form(model=both("matrix-sqrt"), run=DRY),
    "both, size, matrix-sqrt, no dropout": Form(model=both("size+matrix-sqrt"), run=DRY),
    "random both, matrix-sqrt, no dropout": Form(model=both("matrix-sqrt") | RANDOM, run=DRY),
    "normed both": Form(model=both() | NORM | AFTER),
    "normed both, no dropout": Form(model=both() | NORM, run=DRY),
    "normed, size": normed(options={"normalize": "size"}),
}


def form_of(name: str) -> Form:
    """By its name, which may end with some of ``ENDS``."""
    for end, run in ENDS.items():
        if name.endswith(end):
            form = form_of(name.removesuffix(end))
            return replace(form, run=form.run | run)
    return FORMS[name]
