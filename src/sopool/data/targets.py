"""Tell the classes of graphs from numbers to predict (targets), and read these numbers."""

import math
from collections.abc import Sequence
from reprlib import repr as show
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.data.formats import limits
from sopool.data.graphs import MAX_TARGET
from sopool.data.names import number_in
from sopool.errors import DataError

Targets = list[float | None]
"""The targets of one graph; None where one is missing."""
GraphLabel = str | int | float | Targets
"""What the source of a graph gives as its label: a class, a number with a fraction, or a list of targets."""

TRUTH = {"true": 1.0, "false": 0.0}
"""Words that stand for numbers in a column of targets."""


def is_target(label: Any) -> bool:
    """Return whether a label cannot be a class: whether it is a list, a number with a fraction, infinite or NaN."""
    return isinstance(label, list) or (isinstance(label, float) and not label.is_integer())


def is_missing(value: Any) -> bool:
    """Return whether a label is missing: None, NaN, what pandas writes for them, or a list of nothing else."""
    if isinstance(value, list):
        return all(map(is_missing, value))
    return value is None or str(value).lower() in ("", "nan", "<na>")


def default_names(count: int) -> tuple[str, ...]:
    """Return the names of targets that have none in their source: "target", or "target 1", "target 2", ..."""
    check_count(count)
    return ("target",) if count == 1 else tuple(f"target {number}" for number in range(1, count + 1))


def check_count(count: int) -> None:
    """Raise unless a graph may have this many targets."""
    if not 0 < count <= limits.MAX_TARGETS:
        raise DataError(f"{count:,} targets, expected 1 to {limits.MAX_TARGETS:,}.")


def target_of(value: Any) -> float | None:
    """Return a target as a float, or None if it is missing; raise a ``DataError`` if it is not a number."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, bool | int | float):
        raise DataError(f"{show(value)}, expected a number, or None if it is missing")
    if abs(value) > MAX_TARGET:
        raise DataError(f"{show(value)}, expected a number of at most {MAX_TARGET:g} in size")
    return float(value)


def target_of_text(text: str | None) -> float | None:
    """Return the target that a string in a file stands for, or None if it is missing; raise if it is not a number."""
    if not text or is_missing(text):
        return None
    number = TRUTH.get(text.lower(), number_in(text))
    if number is None:
        raise DataError(f"{show(text)}, expected a finite number, or nothing if it is missing")
    return target_of(number)


def targets_of(values: Sequence[Any], names: Sequence[str] = ()) -> Targets:
    """Return the targets of one graph; the error for one that is not a number gives its name."""
    check_count(len(values))
    found: Targets = []
    for place, value in enumerate(values):
        try:
            found.append(target_of(value))
        except DataError as error:
            name = (names or default_names(len(values)))[place]
            raise DataError(f"the target {show(name)} is {error}.") from error
    return found


def stack_targets(
    labels: Sequence[Any], where: Sequence[str], names: tuple[str, ...] = ()
) -> tuple[Tensor, tuple[str, ...]]:
    """Stack the targets of all graphs, float64 ``[G, T]``, and return them with their names.

    Args:
        labels: For each graph a list of numbers, or for each graph a number; None if all targets of it are missing.
        where: The name of each graph in error messages.
        names: The names of the targets. Default: those of :func:`default_names`.
    """
    first = next((place for place, label in enumerate(labels) if isinstance(label, list)), None)
    single = first is None
    width = len(names) or (1 if first is None else len(labels[first]))
    try:
        names = tuple(names) or default_names(width)
    except DataError as error:
        raise DataError(f"{where[first or 0]}: {error}") from error
    given = {place: label for place, label in enumerate(labels) if label is not None}
    for place, label in given.items():  # all of them first, because one wide label would need memory for each graph
        _check_alike(label, single, width, names, where[place])
    rows = np.full((len(labels), width), np.nan)
    for place, label in given.items():
        try:
            rows[place] = [math.nan if one is None else one for one in targets_of([label] if single else label, names)]
        except DataError as error:
            raise DataError(f"{where[place]}: {error}") from error
    return torch.from_numpy(rows), names


def _check_alike(label: Any, single: bool, width: int, names: Sequence[str], where: str) -> None:
    """Raise unless a label is a list of ``width`` numbers or, if ``single``, one number."""
    problem = ""
    if isinstance(label, str):
        problem = (
            f"the label {show(label)} is text, but other labels are numbers with fractions or lists. Numbers to "
            "predict must all be numbers, and missing ones empty, null or None; classes are text or whole numbers."
        )
    elif isinstance(label, list) == single:
        problem = f"the label {show(label)} is a single value, but other graphs have a list of {width:,} targets."
    elif isinstance(label, list) and len(label) != width:
        problem = f"{len(label):,} targets, expected {width:,}: {show(list(names))}."
    elif single and width > 1:
        problem = f"the label {show(label)} is one target, expected {width:,}: {show(list(names))}."
    if problem:
        raise DataError(f"{where}: {problem}")
