"""Find the objective of a data set from what its graphs carry."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError, check_name
from sopool.objectives.base import LOSSES, TASKS, Objective, Task
from sopool.objectives.metrics import METRICS
from sopool.objectives.multi_label import MultiLabel
from sopool.objectives.regression import Regression
from sopool.objectives.single_label import SingleLabel

NEEDED = "Give graphs with labels or targets."


def objective_for(
    store: PackedGraphs,
    task: str | None = None,
    metric: str | None = None,
    loss: str | None = None,
    class_weights: tuple[float, ...] | None = None,
) -> Objective:
    """Return the objective for the graphs of a data set.

    Args:
        store: The graphs, with labels or targets.
        task: ``"classification"``, ``"multi-label"`` or ``"regression"``. Default: None, found from the values: labels
            are classes, targets that are all 0 or 1 are a multi-label classification, other targets a regression.
        metric: The name of the metric that chooses epochs and settings. Default: None, the usual one of the task.
        loss: ``"squared"``, ``"absolute"`` or ``"huber"``, for a regression. Default: None, ``"squared"``.
        class_weights: The weights of the classes, for a classification. Default: None, equal weights.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.objectives import objective_for
        >>> objective_for(load("MUTAG")).names
        (-1, 1)
    """
    task = task_of(store, task)
    given: dict[str, Any] = {} if metric is None else {"metric": metric}
    if metric is not None:
        check_metric(task, metric)
    if task == "regression":
        if loss is not None:
            check_name("loss", loss, LOSSES)
            given["loss_name"] = loss
        return Regression.of(_targets(store).cpu().numpy(), _target_names(store), **given)
    if loss is not None:
        raise SettingError(f"loss={loss!r} was given, but only a regression has a choice of losses: leave it out.")
    if task == "classification":
        return SingleLabel(store.classes, class_weights=class_weights, **given)
    return MultiLabel(_target_names(store), class_weights=class_weights, **given)


def check_metric(task: Task, metric: str) -> None:
    """Raise ``SettingError`` unless a metric with this name can score the task."""
    check_name("metric", metric, [name for name, one in METRICS.items() if task in one.tasks])


def task_of(store: PackedGraphs, task: str | None = None) -> Task:
    """Return the task, checked to be possible for these graphs; found from the values if ``task`` is None."""
    if store.labels is None and store.targets is None:
        raise DataError(f"{store.name} has neither labels nor targets to learn from. {NEEDED}")
    if task is None:
        if store.labels is not None:
            return "classification"
        return "multi-label" if _are_binary(_targets(store)) else "regression"
    check_name("task", task, TASKS)
    if task == "classification" and store.labels is None:
        raise SettingError(
            f"{store.name} has targets and no classes, so the task cannot be classification. Expected multi-label (all "
            "targets are 0 or 1) or regression; a column of classes is given as the label column."
        )
    if task == "multi-label" and not _are_binary(_targets(store)):
        raise SettingError(f"{store.name} has targets other than 0 and 1, so the task cannot be multi-label.")
    if task == "regression":
        _targets(store)
    found: Task = next(one for one in TASKS if one == task)
    return found


def truth_of(store: PackedGraphs, task: Task) -> Tensor:
    """Return the true values: class numbers, int64 ``[G]``, or targets, float64 ``[G, T]`` with NaN for missing ones.

    Args:
        store: The graphs, with labels or targets.
        task: The task, see :func:`objective_for`.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.objectives import truth_of
        >>> graphs = load("MUTAG")
        >>> truth_of(graphs, "classification").unique().tolist(), truth_of(graphs, "regression").unique().tolist()
        ([0, 1], [-1.0, 1.0])
    """
    if task != "classification":
        return _targets(store)
    if store.labels is None:
        raise DataError(f"{store.name} has no labels, which training needs. Give labeled graphs.")
    return store.labels


def _target_names(store: PackedGraphs) -> tuple[str, ...]:
    return store.target_names or ("target",)


def _targets(store: PackedGraphs) -> Tensor:
    """Return the targets; classes that are numbers can be targets, too."""
    if store.targets is not None:
        return store.targets
    if store.labels is None:
        raise DataError(f"{store.name} has no targets, which training needs. {NEEDED}")
    words = [name for name in store.classes if isinstance(name, str)]
    if words:
        raise DataError(
            f"{store.name} has the class {words[0]!r}, which is not a number, so it can only be a classification."
        )
    numbers = torch.tensor(store.classes, dtype=torch.float64, device=store.device)
    return numbers[store.labels].unsqueeze(1)


def _are_binary(targets: Tensor) -> bool:
    """Return whether all known targets are 0 or 1."""
    known = targets[~targets.isnan()]
    return bool(((known == 0) | (known == 1)).all())


def check_truth(objective: Objective, truth: np.ndarray) -> None:
    """Raise ``DataError`` if a target has no known value, or if all known values of a label are equal."""
    if truth.ndim == 1:
        return
    for name, column in zip(objective.names, truth.T, strict=True):
        known = column[~np.isnan(column)]
        if not len(known):
            raise DataError(f"the target {name!r} has no value in any graph: leave it out.")
        if (known == known[0]).all():
            graphs = f"all {len(known):,} known values are" if len(known) > 1 else "the only known value is"
            raise DataError(
                f"there is nothing to learn of the target {name!r}: {graphs} {known[0]:g}. Leave the target out."
            )
