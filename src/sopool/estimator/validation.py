"""Check the settings, graphs and labels that a user gives to a classifier, and word the messages about them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from reprlib import repr as show
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor
from torch_geometric.data import Batch, Data

from sopool.data.features.encoder import Encoder
from sopool.data.formats.convert import from_networkx, from_pyg
from sopool.data.formats.molecule_features import DEFAULT, MoleculeFeatures
from sopool.data.formats.molecules import smiles_to_store
from sopool.data.graphs import PackedGraphs, check_values, concatenate
from sopool.data.names import name_array, plain, reads, sort_names
from sopool.data.pack import Graph, pack
from sopool.errors import DataError, SettingError, refuse_table
from sopool.models.config import MOST_HIDDEN, MOST_LAYERS

Rule = tuple[Callable[[Any], bool], str]


def at_least(lowest: int) -> Rule:
    """Return the rule for whole numbers of at least ``lowest``."""
    return lambda value: type(value) is int and value >= lowest, f"a whole number of at least {lowest} is needed"


def _up_to(most: int) -> Rule:
    return lambda value: type(value) is int and 1 <= value <= most, f"a whole number from 1 to {most:,} is needed"


def _number(fits: Callable[[float], bool], needed: str) -> Rule:
    return lambda value: type(value) in (int, float) and math.isfinite(value) and fits(value), needed


def _instance(kind: Any, needed: str) -> Rule:
    return lambda value: isinstance(value, kind), needed


def _or_none(rule: Rule) -> Rule:
    fine, needed = rule
    return lambda value: value is None or fine(value), f"{needed}, or None"


def _or_usual(rule: Rule) -> Rule:
    """Return the rule that also accepts None for the default, which only Python users can give."""
    fine, needed = rule
    return lambda value: value is None or fine(value), needed


SHARE = _number(lambda value: 0 <= value < 1, "a number of at least 0 and below 1 is needed")
RULES: dict[str, Rule] = {
    "pool": _instance(str, "a name from the list of sopool pools is needed"),
    "pool_options": _or_none(_instance(Mapping, "a dictionary of options by name is needed")),
    "gnn": _instance(str, "a name such as 'gin-0' is needed"),
    "hidden": _or_usual(_up_to(MOST_HIDDEN)),
    "layers": _up_to(MOST_LAYERS),
    "blocks": at_least(0),
    "n_models": at_least(1),
    "epochs": _or_none(at_least(1)),
    "steps": _or_none(at_least(1)),
    "batch_size": _or_usual(at_least(1)),
    "lr": _or_usual(_number(lambda value: value > 0, "a positive number is needed")),
    "dropout": SHARE,
    "weight_decay": _or_usual(_number(lambda value: value >= 0, "a number of at least 0 is needed")),
    "average": _or_usual(SHARE),
    "validation_fraction": SHARE,
    "patience": (
        lambda value: value in (None, "auto") or at_least(1)[0](value),
        "a whole number of at least 1 is needed, or 'auto' or None",
    ),
    "encoder": _or_none(_instance(Encoder, "an encoder such as DegreeEncoder() is needed")),
    "metric": _or_none(_instance(str, "a name such as 'accuracy' or 'mae' is needed")),
    "loss": _instance(str, "'squared', 'absolute' or 'huber' is needed"),
    "device": _instance(str, "a name such as 'cpu' or 'cuda' is needed"),
    "checkpoints": _or_none(_instance(str | Path, "the path of a folder is needed")),
    "system": _or_none(_instance(str, "a name from the list of sopool systems is needed")),
    "system_options": _or_none(_instance(Mapping, "a dictionary of options by name is needed")),
    "callback": _or_none(_instance(Callable, "a function is needed")),
}


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with plain Python numbers; raise ``SettingError`` for an invalid one."""
    return {name: plain(value) for name, value in settings.items()} | {
        name: check_setting(name, settings[name], rule) for name, rule in RULES.items() if name in settings
    }


def check_setting(name: str, given: Any, rule: Rule) -> Any:
    """Return the value of ``name`` as a plain Python value; raise ``SettingError`` if it is invalid."""
    (fine, needed) = rule
    value = plain(given)
    if not fine(value):
        raise SettingError(f"{name}={value!r}: {needed}.")
    return value


def label_weights(given: Any, truth: np.ndarray) -> tuple[float, ...] | None:
    """Return the weights of the values 0 and 1 of each of T labels ``[2 T]``; None if all graphs have equal weights."""
    if given is None:
        return None
    if not (isinstance(given, str) and given == "balanced"):
        raise SettingError(f"class_weight={given!r}: None or 'balanced' is needed for several labels.")
    counts = np.stack([(truth == 0).sum(0), (truth == 1).sum(0)], axis=1)
    weights = np.where(counts > 0, counts.sum(1, keepdims=True) / np.maximum(2 * counts, 1), 1.0)
    return tuple(weights.flatten().tolist())


def class_weights(given: Any, classes: np.ndarray, codes: np.ndarray) -> tuple[float, ...] | None:
    """Return the weight of each class; None if all graphs have equal weights."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        numbers = {name: number for number, name in enumerate(classes.tolist())}
        strange = [name for name in given if name not in numbers]
        if strange:
            raise SettingError(
                f"class_weight names {strange[0]!r}, which is not a class; the classes are {listing(classes.tolist())}."
            )
        told: Any = {numbers[name]: weight for name, weight in given.items()}
    elif isinstance(given, str) and given == "balanced":
        told = given
    else:
        raise SettingError(
            f"class_weight={given!r}: None, 'balanced' or a dictionary with a number for each class is needed."
        )
    weights = compute_class_weight(told, classes=np.arange(len(classes)), y=codes)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise SettingError(
            f"class_weight={given!r}: finite numbers of at least 0 are needed, at least one of them above 0."
        )
    return tuple(weights.tolist())


MEASUREMENTS = (
    "GraphClassifier predicts classes: strings or whole numbers, or several labels that are 0, 1 or missing. Numbers "
    "are predicted by GraphRegressor."
)
EXPECTED = "expected strings, numbers or booleans"
KINDS = "a PackedGraphs, or a list of PyG Data, of NetworkX graphs or of SMILES strings"


def as_store(graphs: Any, features: str | MoleculeFeatures = DEFAULT) -> PackedGraphs:
    """Return graphs of any supported type as a store without labels and targets, on the CPU.

    Args:
        graphs: The graphs.
        features: What is read of SMILES. Default: what ``fit`` reads.
    """
    return _pack(listed_graphs(graphs), features)


def _pack(items: PackedGraphs | list[Any], features: str | MoleculeFeatures = DEFAULT) -> PackedGraphs:
    if isinstance(items, PackedGraphs):
        check_values(items)
        return _bare(items).to("cpu")
    for kind, convert in (CONVERT | {str: partial(_from_smiles, features=features)}).items():
        if isinstance(items[0], kind):
            odd = next((i for i, item in enumerate(items) if not isinstance(item, kind)), None)
            if odd is not None:
                raise DataError(
                    f"graph {odd} is {_name(items[odd])}, but graph 0 is {_name(items[0])}: give graphs of one type."
                )
            return _bare(convert(items))
    raise DataError(f"graph 0 is {_name(items[0])}. Give {KINDS}.")


def _bare(store: PackedGraphs) -> PackedGraphs:
    """Return the graphs without classes and targets."""
    return replace(store, labels=None, classes=(), targets=None, target_names=())


def listed_graphs(graphs: Any) -> PackedGraphs | list[Any]:
    """Return a store unchanged and any other collection as a list; raise ``DataError`` if it holds no graphs."""
    if isinstance(graphs, PackedGraphs):
        if not len(graphs):
            raise DataError(f"{graphs.name} has no graphs: give at least one.")
        return graphs
    if isinstance(graphs, str | bytes | Path):
        raise DataError(
            f"{show(str(graphs))} is a string and not a list of graphs. Read a file with sopool.data.load, or give "
            f"{KINDS}."
        )
    if isinstance(graphs, nx.Graph | Data) and not isinstance(graphs, Batch):
        raise DataError("a single graph was given: put it into a list.")
    refuse_table(graphs)
    try:
        items = [graphs] if isinstance(graphs, Batch) else list(graphs)
    except TypeError as error:
        raise DataError(f"an object {_name(graphs)} was given. Give {KINDS}.") from error
    if not items:
        raise DataError("an empty list was given: give at least one graph.")
    if any(isinstance(item, Batch) for item in items):
        raise DataError("a PyG Batch was given: give its graphs, which its method to_data_list() returns.")
    return items


def _name(item: Any) -> str:
    return f"of type {type(item).__name__}"


def _from_stores(stores: list[PackedGraphs]) -> PackedGraphs:
    """Join the stores of single graphs that scikit-learn selects."""
    names = {store.name for store in stores}
    name = names.pop() if len(names) == 1 else "graphs"
    return concatenate(list(map(_bare, stores)), name)


def _from_smiles(texts: list[str], features: str | MoleculeFeatures) -> PackedGraphs:
    return smiles_to_store(texts, on_error="raise", features=features)[0]


def _from_networkx(graphs: list[nx.Graph]) -> PackedGraphs:
    """Convert graphs; their weights are read if all edges have one."""
    weighted = all("weight" in edge for graph in graphs for *_, edge in graph.edges(data=True))
    return from_networkx(graphs, labels=[0] * len(graphs), weight="weight" if weighted else None)


CONVERT: dict[type, Callable[[list[Any]], PackedGraphs]] = {
    PackedGraphs: _from_stores,
    nx.Graph: _from_networkx,
    Data: lambda graphs: from_pyg(graphs, labels=[0] * len(graphs)),
    Graph: lambda graphs: pack(replace(graph, label=None) for graph in graphs),
}
"""How each type of graph but SMILES becomes a store. Labels are left out here because they may have any type, see
:func:`label_graphs`."""


class LabelledGraphs(NamedTuple):
    """Graphs with their classes, which are numbered in the order of ``classes``."""

    store: PackedGraphs
    """The graphs without labels, on the CPU."""
    classes: np.ndarray
    """The distinct labels, sorted, numbers before words, of the type that was given."""
    codes: np.ndarray
    """The number of each graph's class ``[G]``, int64."""

    @property
    def counts(self) -> np.ndarray:
        """The number of graphs of each class ``[C]``."""
        return np.bincount(self.codes)

    @property
    def numbered(self) -> PackedGraphs:
        """The graphs with the numbers of their classes as labels."""
        return replace(self.store, labels=torch.from_numpy(self.codes), classes=tuple(range(len(self.classes))))


def label_graphs(graphs: Any, y: Any = None) -> LabelledGraphs:
    """Return graphs with their labels: ``y``, or the labels that the graphs carry if ``y`` is None."""
    items = listed_graphs(graphs)
    store = _pack(items)
    if y is not None:
        return LabelledGraphs(store, *number_labels(as_labels(y, len(store))))
    if isinstance(items, PackedGraphs) and items.labels is not None:
        codes, names = items.present_classes()
        return LabelledGraphs(store, name_array(names), codes.cpu().numpy())
    return LabelledGraphs(store, *number_labels(as_labels(carried(items), len(store))))


def carried(graphs: Iterable[Any]) -> list[Any]:
    """Return the label or the targets that each graph of a list carries; raise ``DataError`` if one has none."""
    found: list[Any] = []
    for number, graph in enumerate(graphs):
        values = [one for one in _labels_of(graph) if one is not None]
        if not values:
            raise DataError(f"graph {number} has no label: give the labels as y.")
        found += values
    return found


def _labels_of(graph: Any) -> list[Any]:
    """Return the labels of the graphs of a store, or of a single graph of another type."""
    if isinstance(graph, PackedGraphs):
        if graph.labels is not None:
            return [graph.classes[code] for code in graph.labels.tolist()]
        return [] if graph.targets is None else graph.targets.tolist()
    if isinstance(graph, Data):
        return [graph.get("y")]
    return [graph.label if isinstance(graph, Graph) else graph.graph.get("label")]


def as_labels(given: Any, count: int) -> np.ndarray:
    """Return one label per graph ``[count]`` as an array of numbers, of words, or of objects if there are both.

    Numbers of several types become one type. A number and a word with the same text raise an error.
    """
    values = raw_array(given)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or len(values) != count:
        raise DataError(f"the labels have shape {list(values.shape)} for {count} graphs: give one for each graph.")
    missing = [i for i, value in enumerate(values.tolist()) if value is None or _is_nan(value)]
    if missing:
        raise DataError(
            f"the label of graph {missing[0]} is missing ({len(missing)} missing in all): leave these graphs out."
        )
    if values.dtype.kind == "O":
        values = _of_one_type(list(map(plain, values)))
    if values.dtype.kind not in "biufUO":
        raise DataError(f"labels of type {values.dtype} were given; {EXPECTED}.")
    _refuse_fractions(values.tolist())
    return values


def _refuse_fractions(labels: Sequence[Any]) -> None:
    """Raise a ``DataError`` if labels have fractions, because they are measurements and not classes."""
    odd = [label for label in labels if isinstance(label, float) and not label.is_integer()]
    if odd:
        others = f", and neither are {len(odd) - 1:,} others of {len(labels):,}" if len(odd) > 1 else ""
        raise DataError(f"the label {odd[0]} is not a class{others}. {MEASUREMENTS}")


def number_labels(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, sorted, and the number of each label among them ``[G]``, int64."""
    names = sort_names(labels.tolist())
    classes = _objects(names) if labels.dtype.kind == "O" else np.array(names, labels.dtype)
    return classes, codes_of(labels, classes.tolist())


def check_several(classes: np.ndarray) -> None:
    """Raise ``DataError`` unless there are at least two classes."""
    if len(classes) < 2:
        raise DataError(f"all graphs have class {show(classes.tolist()[0])}: give graphs of at least two classes.")


def codes_of(labels: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Return the number of each label's class ``[G]``, int64; -1 if it is not one of ``classes``."""
    number = {name: i for i, name in enumerate(classes)}
    return np.array([number.get(label, -1) for label in labels.tolist()], np.int64)


def raw_array(given: Any) -> np.ndarray:
    """Return labels, numbers or rows of them as an array, of objects if it has no other type."""
    refuse_table(given)
    if isinstance(given, str | bytes | Mapping):
        raise DataError(f"the labels are {show(given)}: give a list with one for each graph, in the same order.")
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
        raise DataError(f"the label {show(odd)} of type {type(odd).__name__} was given; {EXPECTED}.")
    words = sum(isinstance(value, str) for value in values)
    if 0 < words < len(values):
        sort_names(values)  # raises if a number and a word have the same text
    return name_array(values)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(value != value)


def _objects(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


class UnseenWarning(UserWarning):
    """A warning about nodes, edges or labels with values that do not occur in the training graphs.

    Examples:
        >>> import warnings
        >>> from sopool.data import Graph, load
        >>> from sopool.estimator import GraphClassifier, UnseenWarning
        >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(load("MUTAG"))
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     found = model.predict([Graph(2, [(0, 1), (1, 0)], node_labels=[99, 99])])
        >>> caught[-1].category is UnseenWarning
        True
    """


class SingleGraphWarning(UserWarning):
    """A warning about a class with only one training graph.

    Examples:
        >>> import warnings
        >>> from sopool.data import make_agreement
        >>> from sopool.estimator import GraphClassifier, SingleGraphWarning
        >>> labels = ["only"] + ["a", "b"] * 10
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     model = GraphClassifier(n_models=1, epochs=1, hidden=8).fit(make_agreement(21), labels)
        >>> caught[-1].category is SingleGraphWarning
        True
    """


def single_messages(classes: np.ndarray, counts: np.ndarray, fraction: float) -> list[str]:
    """Return messages about classes with a single graph, if a ``fraction`` of the graphs is held out."""
    single = classes[counts == 1].tolist()
    if not (fraction and single):
        return []
    what = f"class {listing(single)} has a single graph"
    if len(single) > 1:
        what = f"{len(single):,} classes have a single graph each ({listing(single)})"
    then = "the best epoch is chosen on graphs of the other classes"
    if len(classes) - len(single) < 2:
        then = "nor is any other graph, since one class is not enough to choose an epoch: the last epoch is kept"
    return [f"{what}, which is used for training and never held out; {then}."]


def unknown_messages(nodes: tuple[int, int], edges: tuple[int, int]) -> list[str]:
    """Return messages about values not seen in training; ``nodes`` and ``edges`` are (unknown, total)."""
    each = ((*nodes, "nodes have a label, a category or a degree"), (*edges, "edges have a label or a category"))
    return [
        f"{unknown:,} of {total:,} {what} that no training graph has: they count as unknown, and predictions for their "
        "graphs are less reliable than their probabilities suggest."
        for unknown, total, what in each
        if unknown
    ]


def empty_messages(store: PackedGraphs) -> list[str]:
    """Return messages about graphs without nodes."""
    empty = store.empty
    what = "all of them get the same, meaningless prediction."
    return [f"{len(empty):,} of {len(store):,} graphs have no nodes, graph {empty[0]} first: {what}"] if empty else []


def foreign_message(labels: Iterable[Any], count: int, total: int, classes: Sequence[Any]) -> str:
    """Return a message about ``count`` of ``total`` labels that are not classes of the model."""
    labels = list(dict.fromkeys(labels))
    alike = {reads(label) for label in labels} & set(map(reads, classes))
    hint = " Some have the same text, but one is a number and the other a string." if alike else ""
    return (
        f"{count:,} of {total:,} labels are not among the model's classes: {listing(labels)}; the classes are "
        f"{listing(classes)}.{hint}"
    )


def listing(values: Sequence[Any], most: int = 10) -> str:
    """Return the first ``most`` values as text."""
    return ", ".join(map(show, islice(values, most))) + ", ..." * (len(values) > most)
