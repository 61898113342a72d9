"""Labels of graphs as a user has them, and the classes they stand for."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from reprlib import repr as show
from typing import Any

import networkx as nx
import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from sopool.data.errors import DataError, refuse_table
from sopool.data.names import name_array, plain, reads, refuse_fractions, sort_names
from sopool.data.store import PackedGraphs
from sopool.estimator.inputs import listed

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
