"""What a classifier is told, checked and made into what training needs; and what it says of itself."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from reprlib import repr as show
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor
from torch_geometric.data import Batch, Data

from sopool._runtime.environment import environment
from sopool.data.features.encoders import Encoder
from sopool.data.formats.convert import from_networkx, from_pyg
from sopool.data.formats.molecules import smiles_to_store
from sopool.data.graphs import PackedGraphs, concatenate
from sopool.data.names import name_array, plain, reads, refuse_fractions, sort_names
from sopool.data.pack import Graph, pack
from sopool.errors import DataError, refuse_table

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
    (fine, needed) = rule
    value = plain(given)
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


KINDS = "a packed store, or a list of PyG Data, of NetworkX graphs or of SMILES"


def as_store(graphs: Any) -> PackedGraphs:
    """Graphs of any kind as a store without labels."""
    if isinstance(graphs, PackedGraphs):
        if not len(graphs):
            raise DataError(f"{graphs.name} has no graphs.")
        return replace(graphs, labels=None, classes=()).to("cpu")
    items = listed(graphs)
    for kind, convert in CONVERT.items():
        if isinstance(items[0], kind):
            odd = next((i for i, item in enumerate(items) if not isinstance(item, kind)), None)
            if odd is not None:
                raise DataError(
                    f"graph {odd} is {_name(items[odd])}, graph 0 {_name(items[0])}: give graphs of one kind."
                )
            return replace(convert(items), labels=None, classes=())
    raise DataError(f"graph 0 is {_name(items[0])}. Give {KINDS}.")


def listed(graphs: Any) -> list[Any]:
    """Graphs as a list, whatever holds them; a ``DataError`` for what holds none."""
    if isinstance(graphs, str | bytes | Path):
        raise DataError(f"{show(str(graphs))} is a single text. Read a file with sopool.data.load, or give {KINDS}.")
    if isinstance(graphs, nx.Graph | Data) and not isinstance(graphs, Batch):
        raise DataError("a single graph was given: put it into a list.")
    refuse_table(graphs)
    try:
        items = [graphs] if isinstance(graphs, Batch) else list(graphs)
    except TypeError as error:
        raise DataError(f"something {_name(graphs)} was given. Give {KINDS}.") from error
    if not items:
        raise DataError("there are no graphs.")
    if any(isinstance(item, Batch) for item in items):
        raise DataError("a PyG Batch was given: give the graphs it was made of, which its to_data_list() returns.")
    return items


def _name(item: Any) -> str:
    return f"of type {type(item).__name__}"


def _from_stores(stores: list[PackedGraphs]) -> PackedGraphs:
    """Scikit-learn picks graphs out of a store one by one."""
    names = {store.name for store in stores}
    name = names.pop() if len(names) == 1 else "graphs"
    return concatenate([replace(store, labels=None, classes=()) for store in stores], name)


CONVERT: dict[type, Callable[[list[Any]], PackedGraphs]] = {
    PackedGraphs: _from_stores,
    str: lambda texts: smiles_to_store(texts, on_error="raise")[0],
    nx.Graph: lambda graphs: from_networkx(graphs, labels=[0] * len(graphs), weight=None),
    Data: lambda graphs: from_pyg(graphs, labels=[0] * len(graphs)),
    Graph: lambda graphs: pack(replace(graph, label=None) for graph in graphs),
}
"""Labels that graphs carry are left out here, since they may be of any type, see ``labels.own_labels``; and so are
weights of edges, which no network uses, so that graphs with and without them go together."""


EXPECTED = "expected words, numbers, or true and false"


def own_labels(graphs: Any) -> np.ndarray:
    """The labels that graphs carry themselves; a ``DataError`` where there are none."""
    stores = [graphs] if isinstance(graphs, PackedGraphs) else listed(graphs)
    found: list[Any] = []
    for number, item in enumerate(stores):
        if isinstance(item, PackedGraphs) and (names := item.class_labels) is not None:
            found += names.tolist()
            continue
        value = item.get("y") if isinstance(item, Data) else None
        value = item.graph.get("label") if isinstance(item, nx.Graph) else value
        if value is None:
            raise DataError(f"graph {number} carries no label: give the labels as y.")
        found.append(value)
    return as_labels(found, len(found))


def as_labels(given: Any, count: int) -> np.ndarray:
    """One label for each graph [count]: an array of numbers or of words, of objects where there are both.

    Numbers of several types become one type; a number and a word that read alike are refused.
    """
    values = _array(given)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or len(values) != count:
        raise DataError(f"the labels have shape {list(values.shape)} for {count} graphs: one for each is needed.")
    missing = [i for i, value in enumerate(values.tolist()) if value is None or _is_nan(value)]
    if missing:
        raise DataError(f"the label of graph {missing[0]} is missing ({len(missing)} in all): leave such graphs out.")
    if values.dtype.kind == "O":
        values = _of_one_type(list(map(plain, values)))
    if values.dtype.kind not in "biufUO":
        raise DataError(f"labels of type {values.dtype} were given, {EXPECTED}.")
    refuse_fractions(values.tolist())
    return values


def number_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and the number of each label's class [n], int64; at least two classes."""
    names = sort_names(labels.tolist())
    classes = _objects(names) if labels.dtype.kind == "O" else np.array(names, labels.dtype)
    if len(classes) < 2:
        raise DataError(f"all graphs are of class {show(names[0])}: graphs of at least two classes are needed.")
    return classes, codes_of(labels, classes)


def codes_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The number of each label's class [n], int64; -1 where it is none of ``classes``."""
    number = {name: i for i, name in enumerate(classes.tolist())}
    return np.array([number.get(label, -1) for label in labels.tolist()], np.int64)


def foreign_message(labels: Iterable[Any], count: int, total: int, classes: np.ndarray) -> str:
    """About ``count`` of ``total`` labels, some of them ``labels``, that are none of a model's classes."""
    labels = list(dict.fromkeys(labels))
    alike = {reads(label) for label in labels} & {reads(name) for name in classes.tolist()}
    hint = " They read alike, but some are numbers and some are words." if alike else ""
    return (
        f"{count:,} of {total:,} labels are none of the model's classes: {listing(labels)}; the classes are "
        f"{listing(classes.tolist())}.{hint}"
    )


def listing(values: Sequence[Any], most: int = 10) -> str:
    """The first of them, in words."""
    return ", ".join(map(show, islice(values, most))) + ", ..." * (len(values) > most)


def _array(given: Any) -> np.ndarray:
    refuse_table(given)
    if isinstance(given, str | bytes | Mapping):
        raise DataError(f"the labels are {show(given)}: give a list with one for each graph, in their order.")
    if isinstance(given, Tensor):
        return given.detach().cpu().numpy()
    if hasattr(given, "dtype") and ((values := np.asarray(given)).dtype.kind != "O" or values.ndim != 1):
        return values
    try:
        given = list(given)
    except TypeError as error:
        raise DataError(f"the labels are {show(given)}: give a list with one for each graph.") from error
    if len({type(value) for value in given}) == 1 and isinstance(given[0], np.generic):
        return np.array(given)
    items = list(map(plain, given))
    lists = items and all(isinstance(item, list | tuple) and len(item) == len(items[0]) for item in items)
    return np.array(items, dtype=object) if lists else _objects(items)


def _of_one_type(values: list[Any]) -> np.ndarray:
    odd = next((value for value in values if not isinstance(value, str | bool | int | float)), None)
    if odd is not None:
        raise DataError(f"the label {show(odd)} of type {type(odd).__name__} was given, {EXPECTED}.")
    words = sum(isinstance(value, str) for value in values)
    if 0 < words < len(values):
        sort_names(values)  # refuses those that read alike
    return name_array(values)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(value != value)


def _objects(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
