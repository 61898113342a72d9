"""What a classifier is told, checked and made into what training needs; and what it says of itself."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from sopool.data.errors import DataError
from sopool.data.store import PackedGraphs
from sopool.training.environment import environment

COUNTS = {"hidden": 1, "layers": 1, "blocks": 0, "n_models": 1, "epochs": 1, "batch_size": 1}
LEAST_STEPS, MOST_STEPS = 10, 50


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise a ``DataError`` for a number that cannot be."""
    least = COUNTS | {name: 1 for name in ("steps", "patience") if settings[name] is not None}
    for name, lowest in least.items():
        value = settings[name]
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
            raise DataError(f"{name}={value!r}: a whole number of at least {lowest} is needed.")
    if not settings["lr"] > 0:
        raise DataError(f"lr={settings['lr']!r}: the learning rate must be positive.")
    for name in ("dropout", "average"):
        if not 0 <= settings[name] < 1:
            raise DataError(f"{name}={settings[name]!r}: it must be at least 0 and below 1.")
    if not 0 <= settings["weight_decay"] < float("inf"):
        raise DataError(f"weight_decay={settings['weight_decay']!r}: it must be 0 or a positive number.")
    if not 0 <= settings["validation_fraction"] < 1:
        given = settings["validation_fraction"]
        raise DataError(f"validation_fraction={given!r}: it must be at least 0 (none is held out) and below 1.")


def steps_for(graphs: int, batch_size: int) -> int:
    """A pass over the graphs, but neither so short that little is learnt nor so long that much is missed."""
    return min(MOST_STEPS, max(LEAST_STEPS, -(-graphs // batch_size)))


def share_held_out(fraction: float, codes: np.ndarray, classes: np.ndarray) -> float:
    """The fraction to hold out: more than asked for where else not every class could have a graph on either side."""
    counts = np.bincount(codes, minlength=len(classes))
    if fraction and counts.min() < 2:
        rare = classes.tolist()[counts.argmin()]
        raise DataError(
            f"class {rare!r} has a single graph, which cannot be held out and trained on: add graphs, leave the class "
            "out, or set validation_fraction=0."
        )
    return max(fraction, len(classes) / len(codes)) if fraction else 0.0


def class_weights(given: Any, classes: np.ndarray, labels: np.ndarray) -> tuple[float, ...] | None:
    """How much a graph of each class counts; None where all count alike."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        known = set(classes.tolist())
        strange = [name for name in given if name not in known]
        if strange:
            raise DataError(f"class_weight names {strange[0]!r}, which is no class: they are {_listing(classes)}.")
    elif not (isinstance(given, str) and given == "balanced"):
        raise DataError(f"class_weight={given!r}: it must be None, 'balanced' or a number for each class.")
    weights = compute_class_weight(given, classes=classes, y=labels)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise DataError(f"class_weight={given!r}: the numbers must be finite, none below 0, one at least above.")
    return tuple(weights.tolist())


def describe(store: PackedGraphs, fingerprint: str, classes: np.ndarray, device: str, seconds: float) -> dict[str, Any]:
    """What a model was trained on and with; JSON."""
    assert store.labels is not None
    counts = np.bincount(store.labels.cpu().numpy(), minlength=len(classes))
    return {
        "data": {
            "name": store.name,
            "fingerprint": fingerprint,
            "graphs": len(store),
            "nodes": store.num_nodes,
            "graphs_of_class": counts.tolist(),
        },
        "environment": environment(device),
        "seconds": round(seconds, 3),
    }


class UnseenWarning(UserWarning):
    """Some nodes or edges are like none that a model was trained on."""


def unknown_messages(nodes: tuple[int, int], edges: tuple[int, int]) -> list[str]:
    """What to say about nodes and edges that no graph of the training was like: how many, of how many."""
    each = ((*nodes, "nodes have a label or a degree"), (*edges, "edges have a label"))
    return [
        f"{unknown:,} of {total:,} {what} that no training graph has: they count as unknown, and predictions for their "
        "graphs are less sure than they look."
        for unknown, total, what in each
        if unknown
    ]


def _listing(classes: np.ndarray) -> str:
    shown = ", ".join(map(repr, classes[:10].tolist()))
    return shown + (", ..." if len(classes) > 10 else "")
