"""Split graphs into training, validation and test sets."""

import math
from collections.abc import Sequence
from reprlib import repr as show
from typing import Any

import numpy as np
from torch import Tensor

from sopool.errors import DataError, SettingError

Labels = Tensor | np.ndarray | Sequence[str | int]


def stratified_folds(
    labels: Labels, folds: int = 10, seed: int = 0, names: Sequence[Any] | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the indices of the training and test graphs of each fold, stratified by class.

    These are the folds of scikit-learn's ``StratifiedKFold(folds, shuffle=True, random_state=seed)``, as in the
    reference code. The folds are the same whether classes are given as numbers or as names.

    Args:
        labels: The class of each graph, ``[G]``.
        folds: The number of folds. Default: 10.
        seed: Random seed. Default: 0.
        names: The names of the classes, used in error messages if ``labels`` are numbers. Default: None.

    Examples:
        >>> from sopool.data import load, stratified_folds
        >>> folds = stratified_folds(load("MUTAG").labels)
        >>> train, test = folds[0]
        >>> len(folds), len(train), len(test)
        (10, 169, 19)
    """
    values = _array(labels)
    if folds < 2:
        raise SettingError(f"{folds} folds were requested, expected at least 2.")
    classes, counts = _classes(values, names)
    if counts.min() < folds:
        raise DataError(_too_small(classes, counts, folds))
    from sklearn.model_selection import StratifiedKFold  # imported here to start the command line faster

    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return [(train, test) for train, test in splitter.split(values, values)]


def random_folds(count: int, folds: int = 10, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the indices of the training and test graphs of each fold, for graphs without classes.

    These are the folds of scikit-learn's ``KFold(folds, shuffle=True, random_state=seed)``.

    Args:
        count: The number of graphs.
        folds: The number of folds. Default: 10.
        seed: Random seed. Default: 0.

    Examples:
        >>> from sopool.data import random_folds
        >>> train, test = random_folds(20, folds=5)[0]
        >>> len(train), len(test)
        (16, 4)
    """
    if folds < 2:
        raise SettingError(f"{folds} folds were requested, expected at least 2.")
    if count < folds:
        raise DataError(f"{count} graphs cannot be divided into {folds} folds: use fewer folds, or add graphs.")
    from sklearn.model_selection import KFold  # imported here to start the command line faster

    return list(KFold(folds, shuffle=True, random_state=seed).split(np.zeros(count)))


def _too_small(names: Sequence[Any], counts: np.ndarray, folds: int) -> str:
    """Return the message for classes that have fewer graphs than there are folds."""
    fewest = int(counts.argmin())
    others = int((counts < folds).sum()) - 1
    graphs = int(counts.sum())
    what = f"class {show(names[fewest])} has fewer graphs ({counts[fewest]}) than there are folds ({folds})"
    what += f", and so have {others:,} other classes" if others > 1 else ", and so has another class" if others else ""
    if len(counts) > graphs / 2:
        return f"{what}. {len(counts):,} classes of {graphs:,} graphs: are these labels classes or measurements?"
    fewer = "use fewer folds, or " if counts[fewest] > 1 else ""
    return f"{what}: {fewer}merge or drop {'such classes' if others else 'the class'}."


def holdout(
    train: np.ndarray | Sequence[int],
    labels: Labels | None,
    fraction: float = 0.1,
    seed: int = 0,
    names: Sequence[Any] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Hold out a ``fraction`` of the training graphs and return (train, validation).

    ``labels`` are the labels of all graphs, by which the graphs are stratified, so that ``labels[train]`` are those of
    the training graphs; None for graphs without classes. ``names`` are the names of numbered classes, used in error
    messages.
    """
    numbers, values, held = _to_hold_out(train, labels, fraction, names)
    from sklearn.model_selection import train_test_split

    kept, aside = train_test_split(numbers, test_size=held, stratify=values, random_state=seed)
    return np.sort(kept), np.sort(aside)


def check_holdout(
    train: np.ndarray | Sequence[int], labels: Labels | None, fraction: float = 0.1, names: Sequence[Any] | None = None
) -> None:
    """Raise the error that :func:`holdout` would raise for these training graphs; it does not depend on the seed."""
    _to_hold_out(train, labels, fraction, names)


def _to_hold_out(
    train: np.ndarray | Sequence[int], labels: Labels | None, fraction: float, names: Sequence[Any] | None
) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Return the indices of the training graphs, their labels, and how many of them to hold out."""
    numbers = np.asarray(train, dtype=np.int64)
    if not 0 < fraction < 1:
        raise SettingError(f"a fraction of {fraction} cannot be held out: expected a number between 0 and 1.")
    held = math.ceil(fraction * len(numbers))
    if labels is None:
        if not 0 < held < len(numbers):
            raise DataError(
                f"{fraction:.0%} of {len(numbers)} training graphs is {held}, which leaves no graph on one side: hold "
                "out another fraction, or add graphs."
            )
        return numbers, None, held
    values = _array(labels)
    wrong = numbers[(numbers < 0) | (numbers >= len(values))]
    if wrong.size:
        raise DataError(f"there is no graph {wrong[0]} to train on: there are {len(values)} graphs, numbered from 0.")
    values = values[numbers]
    classes, counts = _classes(values, names)
    if counts.min() < 2:
        raise DataError(
            f"class {show(classes[counts.argmin()])} has a single training graph, but one graph must be held out and "
            "one trained on. Add graphs to the class, or leave it out."
        )
    if min(held, len(numbers) - held) < len(classes):
        raise DataError(
            f"{100 * fraction:.0f} % of {len(numbers)} training graphs is {held}, which leaves some of the "
            f"{len(classes)} classes without a graph on one side: hold out another fraction."
        )
    return numbers, values, held


def _array(labels: Labels) -> np.ndarray:
    values = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if values.ndim != 1:
        raise DataError(f"labels have shape {list(values.shape)}, expected one label for each graph.")
    return values


def _classes(values: np.ndarray, names: Sequence[Any] | None) -> tuple[list[Any], np.ndarray]:
    """Return the names of the classes that occur and their counts; raise if there are fewer than two."""
    found, counts = np.unique(values, return_counts=True)
    classes = found.tolist() if names is None else [names[code] for code in found]
    if len(classes) < 2:
        what = f"all are of class {show(classes[0])}" if classes else "there are no graphs"
        raise DataError(f"{what}: graphs of at least two classes are needed.")
    return classes, counts
