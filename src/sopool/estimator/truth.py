"""Read what is to be learned of graphs: classes, labels or numbers, and how much each graph counts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from reprlib import repr as show
from typing import Any, Literal

import numpy as np
import torch

from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs, check_targets, concatenate
from sopool.data.names import check_column_names, plain
from sopool.data.targets import default_names, is_missing, stack_targets
from sopool.errors import DataError
from sopool.estimator.validation import (
    MEASUREMENTS,
    LabelledGraphs,
    as_store,
    carried,
    check_several,
    label_graphs,
    listed_graphs,
    number_labels,
    raw_array,
)
from sopool.objectives import Objective, Task, objective_for, truth_of
from sopool.objectives.choose import check_truth, task_of

Predicts = Literal["classes", "numbers"]
"""What an estimator predicts: one class or several labels, or numbers."""

_are_part: ContextVar[bool] = ContextVar("_are_part", default=False)


@contextmanager
def part_of_data() -> Iterator[None]:
    """Accept targets without different known values, which the training graphs of a fold may have by chance."""
    token = _are_part.set(True)
    try:
        yield
    finally:
        _are_part.reset(token)


def is_part_of_data() -> bool:
    """Return whether the training graphs are those of a fold, see :func:`part_of_data`."""
    return _are_part.get()


@dataclass(frozen=True, eq=False)
class KnownGraphs:
    """Graphs with what is to be learned of them."""

    task: Task
    """The kind of what is learned."""
    store: PackedGraphs
    """The graphs on the CPU, with targets or with the numbers of their classes as labels."""
    classes: np.ndarray | None = None
    """The distinct classes, sorted, of the type that was given; None for targets."""
    flat: bool = False
    """Whether a single target was given as a list of numbers, and not as a matrix with one column."""
    kept: np.ndarray | None = None
    """Which of the graphs that were given are these ``[n]``, bool; None for all. Those without a known target are not.
    """

    @property
    def graphs(self) -> PackedGraphs:
        """The graphs with their classes by name, or with their targets, as estimators read them."""
        return self.store if self.classes is None else replace(self.store, classes=self.names)

    @property
    def labelled(self) -> LabelledGraphs:
        """The graphs with their classes, if they have classes."""
        assert self.classes is not None
        return LabelledGraphs(as_store(self.store), self.classes, self.truth)

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the classes or of the targets."""
        return self.store.target_names if self.classes is None else tuple(self.classes.tolist())

    @property
    def truth(self) -> np.ndarray:
        """The class numbers ``[G]``, or the targets ``[G, T]`` with NaN for missing ones."""
        found: np.ndarray = truth_of(self.store, self.task).numpy()
        return found

    @property
    def counts(self) -> np.ndarray:
        """The number of graphs of each class, or with a known value of each target."""
        return self.counts_of(np.ones(len(self.store), bool))

    def counts_of(self, which: np.ndarray) -> np.ndarray:
        """Return the same numbers of some of the graphs, selected by a boolean mask ``[G]``."""
        truth = self.truth[which]
        if self.classes is None:
            known: np.ndarray = (~np.isnan(truth)).sum(0)
            return known
        return np.bincount(truth, minlength=len(self.classes))

    @property
    def fingerprint(self) -> str:
        """A hash of the graphs and their true values, whatever the names of the classes or targets."""
        names = () if self.classes is not None else default_names(len(self.names))
        return content_key(replace(self.store, target_names=names))

    def objective(self, metric: str | None = None, loss: str | None = None) -> Objective:
        """Return what to predict, by the names of the classes or targets."""
        return replace(objective_for(self.store, self.task, metric, loss), names=self.names)

    def check(self) -> None:
        """Raise ``DataError`` unless there are two classes, or two different values of each target."""
        if self.classes is not None:
            check_several(self.classes)
        elif not is_part_of_data():
            check_truth(self.objective(), self.truth)

    def take(self, which: np.ndarray) -> "KnownGraphs":
        """Return some of the graphs, selected by a boolean mask ``[G]``; classes without a graph are left out."""
        if which.all():
            return self
        store = self.store[torch.from_numpy(which)]
        if self.classes is None:
            return replace(self, store=store)
        return of_classes(LabelledGraphs(as_store(store), *number_labels(self.classes[self.truth[which]])))


def of_classes(graphs: LabelledGraphs) -> KnownGraphs:
    """Return graphs whose classes are to be learned."""
    return KnownGraphs("classification", graphs.numbered, graphs.classes)


def known_graphs(graphs: Any, y: Any, predicts: Predicts) -> KnownGraphs:
    """Return graphs with what is to be learned of them: ``y``, or what the graphs carry if ``y`` is None.

    Graphs of which no target is known are left out.

    Args:
        graphs: The graphs, of any supported type.
        y: One class or number for each graph, or a matrix with a column for each target.
        predicts: Whether classes (or labels that are 0 or 1) or numbers are to be predicted.
    """
    items = listed_graphs(graphs)
    if y is None and isinstance(items, list) and _are_stores_of_targets(items):
        items = concatenate(items)
    if y is None and isinstance(items, PackedGraphs):
        return _of_store(items, predicts)
    values = carried(items) if y is None else y
    if predicts == "classes" and not _is_matrix(values):
        return of_classes(label_graphs(items, values))
    store = as_store(items)
    targets, names, flat = target_matrix(values, len(store))
    flat = flat if y is not None else len(names) == 1
    return _of_targets(replace(store, targets=torch.from_numpy(targets), target_names=names), predicts, flat)


def learned_by_task(store: PackedGraphs, task: str | None = None) -> KnownGraphs:
    """Return what is to be learned of the graphs of a store.

    Args:
        store: The graphs, with labels, targets or both.
        task: ``"classification"``, ``"multi-label"`` or ``"regression"``. Default: None, found from the values, see
            :func:`~sopool.objectives.objective_for`.
    """
    found = task_of(store, task)
    if found == "classification":
        return known_graphs(replace(store, targets=None, target_names=()), None, "classes")
    names = store.target_names or default_names(1)
    targets = replace(store, labels=None, classes=(), targets=truth_of(store, found), target_names=names)
    return known_graphs(targets, None, "numbers" if found == "regression" else "classes")


def _of_store(store: PackedGraphs, predicts: Predicts) -> KnownGraphs:
    """Return what is to be learned of what a store carries; classes that are numbers can be predicted as numbers."""
    if predicts == "classes" and (store.labels is not None or store.targets is None):
        return of_classes(label_graphs(store))
    targets = truth_of(store, "regression").cpu()
    names = store.target_names or default_names(1)
    check_targets(targets, names)
    graphs = replace(store.to("cpu"), labels=None, classes=(), targets=targets, target_names=names)
    return _of_targets(graphs, predicts, len(names) == 1)


def _of_targets(store: PackedGraphs, predicts: Predicts, flat: bool) -> KnownGraphs:
    """Return what is to be learned of graphs with targets, without the graphs of which none is known."""
    assert store.targets is not None
    # One kind of NaN, and no negative zero, for the fingerprint.
    targets = store.targets.where(~store.targets.isnan(), torch.nan) + 0.0
    store = replace(store, targets=targets)
    if predicts == "classes":
        _check_binary(targets.numpy(), store.target_names)
        found = KnownGraphs("multi-label", store)
    else:
        found = KnownGraphs("regression", store, flat=flat)
    known = (~targets.isnan()).any(1).numpy()
    return found if known.all() or not known.any() else replace(found.take(known), kept=known)


def _check_binary(targets: np.ndarray, names: Sequence[str]) -> None:
    odd = np.argwhere(~(np.isnan(targets) | (targets == 0) | (targets == 1)))
    if len(odd):
        graph, column = odd[0].tolist()
        others = f", and {len(odd) - 1:,} others are neither 0 nor 1" if len(odd) > 1 else ""
        raise DataError(
            f"graph {graph}: the target {names[column]!r} is {targets[graph, column]:g}{others}. {MEASUREMENTS}"
        )


def _are_stores_of_targets(items: list[Any]) -> bool:
    """Return whether these are stores with targets, one for each graph, as which scikit-learn divides a store."""
    return all(isinstance(one, PackedGraphs) and one.targets is not None for one in items)


def _is_table(given: Any) -> bool:
    return hasattr(given, "columns") and hasattr(given, "iloc")


def _is_matrix(given: Any) -> bool:
    """Return whether several values are given for each graph."""
    if _is_table(given):
        return len(given.columns) > 1
    values = raw_array(given)
    if values.ndim == 1:
        return any(isinstance(value, list | tuple) for value in values.tolist())
    return values.ndim > 1 and values.shape[-1] > 1


def target_matrix(given: Any, count: int) -> tuple[np.ndarray, tuple[str, ...], bool]:
    """Return targets as float64 ``[count, T]`` with NaN for missing ones, their names, and whether they were a list.

    Args:
        given: A list of numbers, a list of lists, an array or a data frame, whose columns give the names.
        count: The number of graphs.
    """
    names: tuple[str, ...] = ()
    if _is_table(given):
        names = tuple(str(name) for name in given.columns)
        given = list(zip(*(list(given[name]) for name in given.columns), strict=True))
    values = raw_array(given)
    if values.ndim == 3 and values.shape[1] == 1:  # of a list of PyG graphs, each with a row
        values = values[:, 0]
    if values.ndim not in (1, 2) or len(values) != count:
        raise DataError(
            f"the targets have shape {list(values.shape)} for {count} graphs: give a number for each graph, or a "
            "matrix with a row for each graph."
        )
    if values.dtype.kind == "O":
        rows = [_row(row) for row in values.tolist()]
        tensor, names = stack_targets(rows, [f"graph {number}" for number in range(count)], names)
        return tensor.numpy(), names, values.ndim == 1 and not any(isinstance(row, list) for row in rows)
    if values.dtype.kind not in "biuf":
        raise DataError(f"targets of type {values.dtype} were given; expected numbers, and NaN where one is missing.")
    matrix = values.reshape(count, -1).astype(np.float64)
    names = names or default_names(matrix.shape[1])
    check_column_names("target", names)
    if len(names) != matrix.shape[1]:
        raise DataError(f"{matrix.shape[1]} targets were given for {len(names)} names: {show(list(names))}.")
    check_targets(torch.from_numpy(matrix), names)
    return matrix, names, values.ndim == 1


def _row(given: Any) -> Any:
    """Return the targets of a graph in plain Python, None for a missing one."""
    given = plain(given)
    if isinstance(given, list | tuple):
        return [_row(one) for one in given]
    return None if not isinstance(given, str) and is_missing(given) else given


def match_targets(found: KnownGraphs, names: Sequence[str]) -> np.ndarray:
    """Return the true values of the targets of a model ``[G, T]``; raise ``DataError`` if these are other targets.

    Targets are matched by position. Those that carry names of their own must have them in the same order.
    """
    given = found.names
    if len(given) != len(names):
        raise DataError(
            f"there are {len(given)} targets, {show(list(given))}, but the model was fitted to {len(names)}: "
            f"{show(list(names))}."
        )
    default = default_names(len(names))
    if default not in (given, tuple(names)) and given != tuple(names):
        raise DataError(
            f"the targets are {show(list(given))}, but the model was fitted to {show(list(names))}: give them in "
            "this order."
        )
    return found.truth


def sample_weights(given: Any, graphs: KnownGraphs) -> np.ndarray | None:
    """Return the weight of each graph ``[G]``, float64; None for equal weights."""
    if given is None:
        return None
    count = len(graphs.store) if graphs.kept is None else len(graphs.kept)
    values = raw_array(given)
    if values.shape != (count,):
        raise DataError(
            f"sample_weight has shape {list(values.shape)}, expected one weight for each of {count} graphs."
        )
    try:
        weights = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight={show(given)}: numbers are needed.") from error
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise DataError(
            f"sample_weight of graph {wrong[0]} is {weights[wrong[0]]:g}: finite numbers of at least 0 are needed."
        )
    weights = weights if graphs.kept is None else weights[graphs.kept]
    if not weights.any():
        raise DataError("sample_weight is 0 for all graphs: give at least one of them a positive weight.")
    return weights
