"""Split graphs so that related ones stay on one side: by groups, by time, or as given.

Every function returns the numbers of graphs. Nothing here depends on the order in which groups are named.
"""

import math
from collections.abc import Sequence
from reprlib import repr as show
from typing import Any

import numpy as np

from sopool.errors import DataError, SettingError

TrainTest = tuple[np.ndarray, np.ndarray]
TRAIN, VALIDATION, TEST, UNUSED = range(4)
"""The parts that a graph may belong to in a given split."""
LEAST_GROUPS = 3
"""The least number of groups to cross-validate a model that holds out training graphs to choose its epoch."""
TOO_FEW = (
    f"give at least {LEAST_GROUPS} groups, because one is tested on and another is held out of the training graphs. Of "
    "two, test on one by a column that holds train and test (split=column:COLUMN), or by a file for each."
)
DRAWS = 16
"""The number of random draws of held-out groups, of which the best balanced one is used."""


def group_folds(
    groups: np.ndarray, folds: int = 10, seed: int = 0, strata: np.ndarray | None = None
) -> list[TrainTest]:
    """Return the training and test graphs of each fold, of whole groups.

    The largest groups are dealt first, each to the fold that has the fewest graphs of its classes and the fewest graphs
    altogether; groups of equal size are shuffled. Folds are therefore as equal in size and classes as the groups allow.

    Args:
        groups: The group of each graph, any numbers ``[G]``.
        folds: The number of folds. Default: 10.
        seed: Random seed. Default: 0.
        strata: The class of each graph ``[G]``, from 0. Default: None, only sizes are balanced.

    Examples:
        >>> import numpy as np
        >>> from sopool.data.honest_splits import group_folds
        >>> [test.tolist() for _, test in group_folds(np.array([7, 7, 7, 3, 3, 5]), folds=2)]
        [[0, 1, 2], [3, 4, 5]]
    """
    _check_folds(folds)
    codes = np.unique(groups, return_inverse=True)[1]
    count = int(codes.max(initial=-1)) + 1
    if count < folds:
        fewer = f"use at most {count} folds, or groups that are smaller." if count >= LEAST_GROUPS else TOO_FEW
        raise DataError(f"{count} group{'s' * (count != 1)} cannot be divided into {folds} folds: {fewer}")
    table = _contents(codes, strata)
    sizes = table[:, -1]
    order = np.random.default_rng(seed).permutation(count)
    order = order[np.argsort(-sizes[order], kind="stable")]
    shares = table / np.maximum(table.sum(0), 1)
    filled = np.zeros((folds, table.shape[1]))
    fold_of = np.empty(count, np.int64)
    for group in order:
        # This keeps the sum of the squared shares of all folds small, so an empty fold is always filled first.
        fold_of[group] = np.argmin(filled @ shares[group])
        filled[fold_of[group]] += shares[group]
    return folds_of(fold_of[codes], folds)


def group_holdout(
    train: np.ndarray, groups: np.ndarray, fraction: float = 0.1, seed: int = 0, strata: np.ndarray | None = None
) -> TrainTest:
    """Hold out whole groups of the training graphs, about a ``fraction`` of them, and return (train, validation).

    Of several random draws the one is used whose size is nearest to the fraction and whose classes are most like those
    of all graphs. Every class keeps at least one graph to train on.

    Args:
        train: The numbers of the training graphs.
        groups: The group of each graph ``[G]``, of all graphs.
        fraction: The fraction of the training graphs to hold out. Default: 0.1.
        seed: Random seed. Default: 0.
        strata: The class of each graph ``[G]``, of all graphs. Default: None.
    """
    _check_fraction(fraction)
    codes = np.unique(groups[train], return_inverse=True)[1]
    table = _contents(codes, None if strata is None else strata[train])
    goal = math.ceil(fraction * len(train))
    # The only group of a class is never held out.
    sole = ((table > 0).sum(0) == 1)[:-1]
    free = np.flatnonzero(~(table[:, :-1][:, sole] > 0).any(1))
    if len(table) < 2 or not len(free):
        raise DataError(
            f"{len(train)} training graphs of {len(table)} group{'s' * (len(table) != 1)} leave no group to hold out: "
            f"{TOO_FEW if len(table) < LEAST_GROUPS - 1 else 'give more groups, or hold out no graphs.'}"
        )
    draw = np.random.default_rng(seed)
    tries = [_draw(draw.permutation(free), table[:, -1], goal) for _ in range(DRAWS)]
    held = min(tries, key=lambda some: _imbalance(table, some, goal))
    if not math.isfinite(_imbalance(table, held, goal)):
        raise DataError(
            f"holding out {fraction:.0%} of {len(train)} training graphs by whole groups would take all graphs of a "
            "class: give more groups, or hold out another fraction."
        )
    aside = np.isin(codes, held)
    return np.sort(train[~aside]), np.sort(train[aside])


def time_folds(times: np.ndarray, folds: int = 10) -> list[TrainTest]:
    """Return the training and test graphs of each fold; all training graphs are earlier than all test graphs.

    The graphs are cut into ``folds + 1`` consecutive periods of about equal size. Fold k is tested on period k + 1 and
    trained on all periods before it, so later folds have more training graphs. Graphs of equal time stay together.

    Args:
        times: The time of each graph ``[G]``.
        folds: The number of folds. Default: 10.

    Examples:
        >>> import numpy as np
        >>> from sopool.data.honest_splits import time_folds
        >>> [(train.tolist(), test.tolist()) for train, test in time_folds(np.array([2003, 2001, 2002]), folds=2)]
        [([1], [2]), ([1, 2], [0])]
    """
    _check_folds(folds, least=1)
    codes = np.unique(times, return_inverse=True)[1]
    count = int(codes.max(initial=-1)) + 1
    if count <= folds:
        raise DataError(
            f"{count} different time{'s' * (count != 1)} cannot be cut into the {folds + 1} periods of {folds} folds: "
            "use fewer folds, or more exact times."
        )
    until = np.cumsum(np.bincount(codes))
    ends: list[int] = []  # the last time of every period but the last one
    for fold in range(1, folds + 1):
        nearest = int(np.abs(until - fold * len(times) / (folds + 1)).argmin())
        ends.append(min(max(nearest, ends[-1] + 1 if ends else 0), count - 2 - folds + fold))
    period = np.searchsorted(ends, codes)
    return [(np.flatnonzero(period < fold), np.flatnonzero(period == fold)) for fold in range(1, folds + 1)]


def time_holdout(train: np.ndarray, times: np.ndarray, fraction: float = 0.1) -> TrainTest:
    """Hold out the latest training graphs, about a ``fraction`` of them, and return (train, validation).

    Args:
        train: The numbers of the training graphs.
        times: The time of each graph ``[G]``, of all graphs.
        fraction: The fraction of the training graphs to hold out. Default: 0.1.
    """
    _check_fraction(fraction)
    known, codes, counts = np.unique(times[train], return_inverse=True, return_counts=True)
    if len(known) < 2:
        raise DataError(f"all {len(train)} training graphs have the same time, so none of them is later than others.")
    later = np.cumsum(counts[::-1])[:-1]  # the number of graphs in the latest 1, 2, ... times
    kept = len(known) - 1 - int(np.abs(later - math.ceil(fraction * len(train))).argmin())
    return np.sort(train[codes < kept]), np.sort(train[codes >= kept])


def given_folds(parts: np.ndarray) -> list[TrainTest]:
    """Return the training and test graphs of each fold, as given; validation graphs count as training graphs.

    Args:
        parts: The part of each graph in each of F folds ``[G, F]``: ``TRAIN``, ``VALIDATION``, ``TEST`` or ``UNUSED``.
    """
    found = []
    for fold, part in enumerate(parts.T):
        train = np.flatnonzero((part == TRAIN) | (part == VALIDATION))
        test = np.flatnonzero(part == TEST)
        if not (part == TRAIN).any() or not len(test):
            what = "test" if (part == TRAIN).any() else "training"
            raise DataError(f"fold {fold + 1} of the given split has no {what} graphs, expected at least one.")
        found.append((train, test))
    return found


def folds_of(fold_of: np.ndarray, folds: int) -> list[TrainTest]:
    """Return the training and test graphs of each fold from the fold of each graph ``[G]``."""
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(folds)]


def check_classes_trained(
    folds: Sequence[TrainTest], strata: np.ndarray | None, names: Sequence[Any] | None = None
) -> None:
    """Raise ``DataError`` if a fold has no training graph of a class.

    Args:
        folds: The training and test graphs of each fold.
        strata: The class of each graph ``[G]``; None without classes.
        names: The names of the classes. Default: None, their numbers.
    """
    for fold, (train, _) in enumerate(folds if strata is not None else ()):
        assert strata is not None
        lost = np.setdiff1d(strata, strata[train])
        if len(lost):
            name = lost[0] if names is None else names[lost[0]]
            raise DataError(
                f"fold {fold + 1} of the split has no training graph of class {show(name)}: use fewer folds or another "
                "split, or merge or drop the class."
            )


def _contents(codes: np.ndarray, strata: np.ndarray | None) -> np.ndarray:
    """Return the number of graphs of each class, and of all graphs, in each group ``[K, C + 1]``."""
    count = int(codes.max(initial=-1)) + 1
    sizes = np.bincount(codes, minlength=count)[:, None]
    if strata is None:
        return sizes
    classes = np.unique(strata, return_inverse=True)[1]
    table = np.zeros((count, int(classes.max(initial=-1)) + 1), np.int64)
    np.add.at(table, (codes, classes), 1)
    return np.concatenate([table, sizes], 1)


def _draw(order: np.ndarray, sizes: np.ndarray, goal: int) -> np.ndarray:
    """Take groups in this order as long as they fit; the smallest one if none fits."""
    taken: list[int] = []
    for group in order.tolist():
        if sizes[group] <= goal:
            taken.append(group)
            goal -= int(sizes[group])
        if not goal:
            break
    return np.array(taken or [order[sizes[order].argmin()]])


def _imbalance(table: np.ndarray, held: np.ndarray, goal: int) -> float:
    """Return how far held-out groups are from the wanted number and classes; infinite if a class would be lost."""
    own = table[held].sum(0)
    total = table.sum(0)
    if (own >= total).any():
        return math.inf
    wanted = goal * total / total[-1]
    return float(np.abs(own - wanted).sum() / goal)


def _check_folds(folds: int, least: int = 2) -> None:
    if folds < least:
        raise SettingError(f"{folds} folds were requested, expected at least {least}.")


def _check_fraction(fraction: float) -> None:
    if not 0 < fraction < 1:
        raise SettingError(f"a fraction of {fraction} cannot be held out: expected a number between 0 and 1.")
