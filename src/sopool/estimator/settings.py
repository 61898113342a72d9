"""What a classifier is told, checked and made into what training needs; and what it says of itself."""

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from sopool.data.base_encoder import Encoder
from sopool.data.errors import DataError
from sopool.data.names import plain
from sopool.data.store import PackedGraphs
from sopool.estimator.labels import listing
from sopool.training.environment import environment

LEAST_STEPS, MOST_STEPS = 10, 50
Rule = tuple[Callable[[Any], bool], str]


def count(lowest: int) -> Rule:
    """For whole numbers."""
    return lambda value: type(value) is int and value >= lowest, f"a whole number of at least {lowest} is needed"


def _number(fits: Callable[[float], bool], needed: str) -> Rule:
    return lambda value: type(value) in (int, float) and math.isfinite(value) and fits(value), needed


def _instance(kind: Any, needed: str) -> Rule:
    return lambda value: isinstance(value, kind), needed


def _or_none(rule: Rule) -> Rule:
    fine, needed = rule
    return lambda value: value is None or fine(value), f"{needed}, or None"


SHARE = _number(lambda value: 0 <= value < 1, "a number of at least 0 and below 1 is needed")
RULES: dict[str, Rule] = {
    "pool": _instance(str, "a name that sopool pools lists is needed"),
    "pool_options": _or_none(_instance(Mapping, "options by name are needed")),
    "gnn": _instance(str, "a name such as 'gin-0' is needed"),
    "hidden": count(1),
    "layers": count(1),
    "blocks": count(0),
    "n_models": count(1),
    "epochs": count(1),
    "steps": _or_none(count(1)),
    "batch_size": count(1),
    "lr": _number(lambda value: value > 0, "the learning rate must be a positive number"),
    "dropout": SHARE,
    "weight_decay": _number(lambda value: value >= 0, "it must be 0 or a positive number"),
    "average": SHARE,
    "validation_fraction": SHARE,
    "patience": _or_none(count(1)),
    "encoder": _or_none(_instance(Encoder, "an encoder such as DegreeEncoder() is needed")),
    "device": _instance(str, "a name such as 'cpu' or 'cuda' is needed"),
    "callback": _or_none(_instance(Callable, "a function is needed")),
}


def checked(settings: Mapping[str, Any]) -> SimpleNamespace:
    """The settings of a classifier, numbers as Python has them; a ``DataError`` for one that cannot be."""
    given = {name: plain(value) for name, value in settings.items()}
    return SimpleNamespace(**given | {name: check(name, given[name], rule) for name, rule in RULES.items()})


def check(name: str, given: Any, rule: Rule) -> Any:
    """What is given for ``name``, a number as Python has it; a ``DataError`` if it cannot be."""
    (fine, needed), value = rule, plain(given)
    if not fine(value):
        raise DataError(f"{name}={value!r}: {needed}.")
    return value


def steps_for(graphs: int, batch_size: int) -> int:
    """A pass over the graphs, but neither so short that little is learnt nor so long that much is missed."""
    return min(MOST_STEPS, max(LEAST_STEPS, -(-graphs // batch_size)))


def share_held_out(fraction: float, codes: np.ndarray) -> float:
    """The fraction to hold out: more than asked for where else not every class could have a graph on either side.

    Of the classes that have several graphs; nothing where fewer than two have, for there is nothing to tell apart.
    """
    counts = np.bincount(codes)
    several = counts[counts > 1]
    return max(fraction, len(several) / int(several.sum())) if fraction and len(several) > 1 else 0.0


def class_weights(given: Any, classes: np.ndarray, labels: np.ndarray) -> tuple[float, ...] | None:
    """How much a graph of each class counts; None where all count alike."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        known = set(classes.tolist())
        strange = [name for name in given if name not in known]
        if strange:
            raise DataError(
                f"class_weight names {strange[0]!r}, which is no class: they are {listing(classes.tolist())}."
            )
    elif not (isinstance(given, str) and given == "balanced"):
        raise DataError(f"class_weight={given!r}: it must be None, 'balanced' or a number for each class.")
    weights = compute_class_weight(given, classes=classes, y=labels)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise DataError(f"class_weight={given!r}: the numbers must be finite, none below 0, one at least above.")
    return tuple(weights.tolist())


def describe(store: PackedGraphs, fingerprint: str, classes: np.ndarray, device: str) -> dict[str, Any]:
    """Return what a model was trained on and with, as JSON.

    The same training gives the same: neither times nor the number of threads, which does not change the model.
    """
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
        "environment": {name: value for name, value in environment(device).items() if name != "threads"},
    }


class UnseenWarning(UserWarning):
    """Some nodes, edges or labels are like none that a model was trained on."""


class SingleGraphWarning(UserWarning):
    """A class has only one graph to train on."""


def single_messages(fraction: float, codes: np.ndarray, classes: np.ndarray) -> list[str]:
    """What to say, where a ``fraction`` is to be held out, about classes with a single graph."""
    counts = np.bincount(codes)
    single = [name for name, count in zip(classes.tolist(), counts, strict=True) if count == 1]
    if not (fraction and single):
        return []
    what = f"class {listing(single)} has a single graph"
    if len(single) > 1:
        what = f"{len(single):,} classes have a single graph each ({listing(single)})"
    then = "epochs are chosen by graphs of the other classes"
    if len(classes) - len(single) < 2:
        then = "nor is any other, since one class is not enough to choose epochs by: the last epoch is kept"
    return [f"{what}, which is trained on and never held out; {then}."]


def unknown_messages(nodes: tuple[int, int], edges: tuple[int, int]) -> list[str]:
    """What to say about nodes and edges that no graph of the training was like: how many, of how many."""
    each = ((*nodes, "nodes have a label or a degree"), (*edges, "edges have a label"))
    return [
        f"{unknown:,} of {total:,} {what} that no training graph has: they count as unknown, and predictions for their "
        "graphs are less sure than they look."
        for unknown, total, what in each
        if unknown
    ]


def empty_messages(store: PackedGraphs) -> list[str]:
    """What to say about graphs without nodes."""
    empty = store.empty
    what = "all of them get the same prediction, which says nothing about them."
    return [f"{len(empty):,} of {len(store):,} graphs have no nodes, graph {empty[0]} first: {what}"] if empty else []
