"""What cross-validation divides the graphs of a store by: groups, times, or given parts.

A store carries this in the columns ``split_values``, which are never features. Subsets, files of graphs and worker
processes carry them along, so that related graphs stay together at every level: in folds, among the held-out graphs of
a fold, and in the inner folds of a search.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from reprlib import repr as show
from typing import Any, NamedTuple

import numpy as np
import torch

from sopool.data.analysis.refinement import graph_colours
from sopool.data.graphs import PackedGraphs, concatenate
from sopool.data.honest_splits import (
    TEST,
    TRAIN,
    UNUSED,
    VALIDATION,
    TrainTest,
    check_classes_trained,
    folds_of,
    given_folds,
    group_folds,
    group_holdout,
    time_folds,
    time_holdout,
)
from sopool.data.splits import Labels, check_holdout, holdout, random_folds, stratified_folds
from sopool.errors import DataError, SettingError

RANDOM = "random"
SCAFFOLD = "scaffold"
COPIES = "copies"
GIVEN = "given"
WORDS = {"train": TRAIN, "training": TRAIN, "test": TEST}
WORDS |= dict.fromkeys(("valid", "validation", "val"), VALIDATION)
"""The words of a split column, in any case."""
EXPECTED = "expected random, scaffold, group:COLUMN, time:COLUMN or column:COLUMN"
HASH_BITS = 52
"""The bits of a group's number, which a float64 holds exactly. Two names with the same number, which is very unlikely,
would only keep their graphs together."""


class SplitRule(NamedTuple):
    """How a reader finds the split value of each graph."""

    kind: str
    """``"random"``, ``"scaffold"``, ``"group"``, ``"time"`` or ``"column"``."""
    column: str = ""
    """The column of a table or the property of an SDF file; empty for scaffolds."""

    @property
    def needs_molecules(self) -> bool:
        """Whether the values come from a table or an SDF file."""
        return self.kind != RANDOM

    @property
    def name(self) -> str:
        """The rule as text, such as ``group:lab``."""
        return f"{self.kind}:{self.column}" if self.column else self.kind


def split_rule(split: str | None) -> SplitRule | None:
    """Return the rule that a text such as ``"group:lab"`` names; None if none is given."""
    if split is None:
        return None
    kind, colon, column = split.partition(":")
    if (kind in ("group", "time", "column") and column) or (kind in (RANDOM, SCAFFOLD) and not colon):
        return SplitRule(kind, column)
    raise SettingError(f"split={split!r} is not a split: {EXPECTED}.")


@dataclass(frozen=True, eq=False)
class Division:
    """What the graphs of a store are divided by; without any of the three arrays, they are divided at random.

    Examples:
        >>> from sopool.data import load, with_split
        >>> from sopool.data.division import Division
        >>> graphs = load("MUTAG")
        >>> Division.of(graphs).name, Division.of(with_split(graphs, groups=range(188))).name
        ('random', 'groups')
    """

    name: str = RANDOM
    """What users call it, such as ``"scaffold"`` or ``"time:year"``."""
    groups: np.ndarray | None = None
    """The group of each graph ``[G]``; graphs of a group always stay together."""
    times: np.ndarray | None = None
    """The time of each graph ``[G]``; graphs are trained on before, and tested after, a point in time."""
    parts: np.ndarray | None = None
    """The part of each graph in each given fold ``[G, F]``, see :func:`~sopool.data.honest_splits.given_folds`."""

    @classmethod
    def of(cls, store: PackedGraphs) -> "Division":
        """Return the division of a store."""
        if store.split_values is None:
            return cls()
        values = store.split_values.cpu().numpy()
        columns = list(zip(map(_kind, store.split_columns), values.T, strict=True))
        parts = [column for kind, column in columns if kind == "parts"]
        own = dict(columns)
        first = store.split_columns[0]
        return cls(
            name=GIVEN if first.startswith("fold:") else first,
            groups=own.get("groups"),
            times=own.get("times"),
            parts=np.stack(parts, 1).astype(np.int64) if parts else None,
        )

    @property
    def key(self) -> str:
        """The name, followed by a hash of all values unless graphs are divided at random; part of the keys of runs."""
        arrays = [(label, self.arrays[label]) for label in sorted(self.arrays)]
        if not arrays:
            return self.name
        digest = hashlib.sha256()
        for label, values in arrays:
            digest.update(f"{label} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values, np.float64).tobytes())
        return f"{self.name} {digest.hexdigest()[:12]}"

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that are not None, by name."""
        return {
            name: values
            for name, values in (("groups", self.groups), ("times", self.times), ("parts", self.parts))
            if values is not None
        }

    def count(self, folds: int) -> int:
        """Return the number of folds: as given with the graphs, else ``folds``."""
        return folds if self.parts is None else self.parts.shape[1]

    def take(self, which: np.ndarray) -> "Division":
        """Return the division of some of the graphs."""
        return replace(self, **{name: values[which] for name, values in self.arrays.items()})

    def folds(
        self, count: int, strata: np.ndarray | None, folds: int, seed: int = 0, names: Sequence[Any] | None = None
    ) -> list[TrainTest]:
        """Return the training and test graphs of each fold.

        Args:
            count: The number of graphs.
            strata: The class of each graph ``[G]``; None if there are no classes.
            folds: The number of folds, unless the folds are given.
            seed: Random seed. Default: 0.
            names: The names of the classes, for messages. Default: None.
        """
        if not self.arrays:
            return random_folds(count, folds, seed) if strata is None else stratified_folds(strata, folds, seed, names)
        if self.parts is not None:
            found = given_folds(self.parts)
        elif self.times is not None:
            found = time_folds(self.times, folds)
        else:
            assert self.groups is not None
            found = group_folds(self.groups, folds, seed, strata)
        check_classes_trained(found, strata, names)
        return found

    def holdout(
        self,
        train: np.ndarray,
        strata: Labels | None,
        fraction: float = 0.1,
        seed: int = 0,
        names: Sequence[Any] | None = None,
        fold: int = 0,
    ) -> TrainTest:
        """Hold out some of the training graphs of a fold, and return (train, validation).

        These are the validation graphs of a given split, the latest graphs, whole groups, or random graphs.
        """
        if self.parts is not None:
            valid = self.parts[train, min(fold, self.parts.shape[1] - 1)] == VALIDATION
            if valid.any() and not valid.all():
                return train[~valid], train[valid]
        if self.times is not None:
            return time_holdout(train, self.times, fraction)
        if self.groups is not None:
            return group_holdout(train, self.groups, fraction, seed, None if strata is None else np.asarray(strata))
        return holdout(train, strata, fraction, seed, names)

    def check_holdout(
        self, train: np.ndarray, strata: np.ndarray | None, fraction: float, names: Sequence[Any] | None, fold: int
    ) -> None:
        """Raise the error that :meth:`holdout` would raise."""
        if self.arrays:
            self.holdout(train, strata, fraction, 0, names, fold)
        else:
            check_holdout(train, strata, fraction, names)


def new_graphs(name: str) -> str:
    """Say for which new graphs a score under the split ``name`` is an estimate."""
    name, plus, _ = name.partition(f"+{COPIES}")
    kind, _, column = name.partition(":")
    found = {
        RANDOM: "new graphs like the given ones",
        SCAFFOLD: "molecules whose scaffolds are not among those of the training graphs",
        COPIES: "graphs that are no copies of training graphs",
        "group": f"graphs with a new value of {column!r}",
        "groups": "graphs of new groups",
        "time": f"graphs that are later, by {column!r}, than all training graphs",
        "column": f"graphs such as those whose {column!r} is test",
        "test": f"graphs such as those of {column}",
        GIVEN: "graphs that differ from the training graphs as the test graphs of the given folds do",
    }[kind]
    return f"{found}, but no copies of training graphs" if plus else found


def split_title(dataset: str, split: str) -> str:
    """Return the name of a data set for tables, with its split unless that is random."""
    return dataset if split == RANDOM else f"{dataset} ({split} split)"


KINDS = {"time": "times", "column": "parts", "test": "parts", "fold": "parts"}
"""The array that a column belongs to, by the beginning of its name; others are groups."""


def _kind(name: str) -> str:
    """Return the array of a :class:`Division` that a column belongs to."""
    return KINDS.get(name.partition(":")[0], "groups")


def with_split(store: PackedGraphs, splits: Any = None, groups: Any = None) -> PackedGraphs:
    """Return the same graphs with the split that cross-validation is to use, instead of random folds.

    Args:
        store: The graphs.
        splits: A splitter of scikit-learn, a list of pairs (train, test) of graph numbers, or the fold of each graph
            ``[G]``, integers from 0. A splitter is asked once. Default: None, folds of whole ``groups``.
        groups: The group of each graph, numbers or strings ``[G]``. Graphs of a group are never divided between
            training, held-out and test graphs. Default: None.

    Examples:
        >>> from sklearn.model_selection import KFold
        >>> from sopool.data import load, with_split
        >>> graphs = load("MUTAG")
        >>> with_split(graphs, splits=KFold(4)).split_columns
        ('fold:1', 'fold:2', 'fold:3', 'fold:4')
        >>> with_split(graphs, groups=["first", "second"] * 94).split_columns
        ('groups',)
    """
    columns: dict[str, np.ndarray] = {}
    codes = None if groups is None else group_codes(_listed(groups, len(store), "groups"))
    if splits is not None:
        found = given_folds(parts := _parts(store, splits, codes))
        if codes is not None:
            _check_apart(found, codes)
        columns |= {f"fold:{number + 1}": part for number, part in enumerate(parts.T)}
    if codes is not None:
        columns["groups"] = codes
    return with_columns(store, columns)


def with_columns(store: PackedGraphs, columns: dict[str, np.ndarray]) -> PackedGraphs:
    """Return the same graphs with other split columns ``[G]``, by name; without any, they are divided at random."""
    if not columns:
        return replace(store, split_values=None, split_columns=())
    values = torch.from_numpy(np.stack([np.asarray(column, np.float64) for column in columns.values()], 1))
    return replace(store, split_values=values.to(store.device), split_columns=tuple(columns))


def keep_copies_together(store: PackedGraphs) -> PackedGraphs:
    """Return the same graphs with a split that never divides copies between training, held-out and test graphs.

    Copies are graphs that look alike to message passing: equal and isomorphic graphs, and a few others, see
    :func:`~sopool.data.analysis.refinement.graph_colours`. If graphs have groups, groups that share a copy are joined.

    Args:
        store: The graphs, divided at random or by groups.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.division import Division, keep_copies_together
        >>> division = Division.of(keep_copies_together(load("MUTAG")))
        >>> division.name, len(set(division.groups.tolist()))
        ('copies', 175)
    """
    division = Division.of(store)
    if division.times is not None or division.parts is not None:
        raise SettingError(
            f"copies cannot be kept together by the split {division.name}, which says of each graph where it belongs: "
            "use random, scaffold or group:COLUMN, or remove copies from the data."
        )
    copies = graph_colours(store)
    if division.groups is None:
        return with_columns(store, {COPIES: copies})
    from scipy.sparse import coo_array  # imported here to start the command line faster
    from scipy.sparse.csgraph import connected_components

    groups = np.unique(division.groups, return_inverse=True)[1]
    both = (groups, copies + groups.max(initial=-1) + 1)  # a group is joined to the copies that are in it
    size = int(both[1].max(initial=-1)) + 1
    joined = connected_components(coo_array((np.ones(len(groups)), both), (size, size)), directed=False)[1]
    return with_columns(store, {f"{division.name}+{COPIES}": joined[groups]})


def with_test(train: PackedGraphs, test: PackedGraphs) -> PackedGraphs:
    """Return the graphs of two stores with the split that trains on the first and tests on the second.

    Args:
        train: The training graphs, whose name the result has.
        test: The test graphs, with the same kinds of labels and attributes.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.division import Division, with_test
        >>> graphs = load("MUTAG")
        >>> Division.of(with_test(graphs[:150], graphs[150:])).name
        'test:MUTAG'
    """
    joined = concatenate([with_columns(train, {}), with_columns(test, {})], train.name)
    return with_columns(joined, {f"test:{test.name}": np.repeat([TRAIN, TEST], [len(train), len(test)])})


def group_codes(names: Iterable[Any]) -> np.ndarray:
    """Return a number for the name of each group, float64 ``[G]``, which does not depend on the other names."""
    codes: dict[str, int] = {}
    found = []
    for name in names:
        text = str(name)
        if text not in codes:
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            codes[text] = int.from_bytes(digest, "big") >> (64 - HASH_BITS)
        found.append(codes[text])
    return np.array(found, np.float64)


def column_values(rule: SplitRule, texts: Sequence[str | None], places: Sequence[str]) -> np.ndarray:
    """Return the split values ``[G]`` of the cells of a column; raise ``DataError`` if one is missing or wrong.

    Args:
        rule: What the column means.
        texts: The cell of each graph, None if there is none.
        places: The line or record of each graph, for messages.
    """
    for place, text in zip(places, texts, strict=True):
        if text is None or not text.strip():
            raise DataError(f"{place}: the column {rule.column!r} is empty, but the split {rule.name} needs a value.")
    cells = [text.strip() for text in texts if text is not None]
    if rule.kind == "column":
        return np.array([_part(rule, *pair) for pair in zip(cells, places, strict=True)], np.float64)
    return _times(rule, cells, places) if rule.kind == "time" else group_codes(cells)


def _part(rule: SplitRule, text: str, place: str) -> int:
    if text.lower() not in WORDS:
        raise DataError(f"{place}: the column {rule.column!r} holds {show(text)}, expected train, valid or test.")
    return WORDS[text.lower()]


def _times(rule: SplitRule, cells: Sequence[str], places: Sequence[str]) -> np.ndarray:
    """Return the times of cells that are all numbers or all dates."""
    found = [_time(cell) for cell in cells]
    for cell, place, (value, kind) in zip(cells, places, found, strict=True):
        if not math.isfinite(value):
            raise DataError(
                f"{place}: the column {rule.column!r} holds {show(cell)}, expected a number such as 2019, or a date "
                "such as 2019-05-31 or 2019-05-31T12:30:00."
            )
        if kind != found[0][1]:
            raise DataError(
                f"{place}: the column {rule.column!r} holds the {kind} {show(cell)}, but {places[0]} has a "
                f"{found[0][1]}: give only numbers or only dates."
            )
    return np.array([value for value, _ in found], np.float64)


def _time(text: str) -> tuple[float, str]:
    """Return a time and whether it was given as a number or a date; NaN for anything else."""
    try:
        return float(text), "number"
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        return math.nan, "text"
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp(), "date"


def _parts(store: PackedGraphs, splits: Any, codes: np.ndarray | None) -> np.ndarray:
    """Return the part of each graph in each fold ``[G, F]``."""
    count = len(store)
    if hasattr(splits, "get_n_splits"):
        labels = None if store.labels is None else store.labels.cpu().numpy()
        splits = splits.split(np.zeros(count), labels, codes)
    given = splits.tolist() if hasattr(splits, "tolist") else list(splits)
    if given and all(isinstance(one, int) for one in given):
        fold_of = np.array(_listed(given, count, "splits"))
        if fold_of.min() < 0:
            raise DataError(f"splits has the fold {fold_of.min()}, expected the fold of each graph, from 0.")
        given = folds_of(fold_of, int(fold_of.max()) + 1)
    if not given or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in given):
        raise DataError(
            "splits must be a splitter of scikit-learn, pairs (train, test) of graph numbers, or the fold of each "
            "graph, integers from 0."
        )
    return np.stack([_part_of(train, test, count, number) for number, (train, test) in enumerate(given)], 1)


def _part_of(train: Any, test: Any, count: int, number: int) -> np.ndarray:
    """Return the part of each graph in one fold ``[G]``."""
    part = np.full(count, UNUSED)
    for name, graphs, code in (("training", train, TRAIN), ("test", test, TEST)):
        chosen = np.asarray(graphs)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool and chosen.shape == (count,) else chosen
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise DataError(f"fold {number + 1} of splits: the {name} graphs must be a list of graph numbers.")
        chosen = chosen.astype(np.int64)
        wrong = chosen[(chosen < 0) | (chosen >= count)]
        if len(wrong):
            raise DataError(f"fold {number + 1} of splits: there is no graph {wrong[0]}, as there are {count} graphs.")
        both = chosen[part[chosen] == TRAIN]
        if code == TEST and len(both):
            raise DataError(f"fold {number + 1} of splits: graph {both[0]} is both a training and a test graph.")
        part[chosen] = code
    return part


def _check_apart(folds: Sequence[TrainTest], codes: np.ndarray) -> None:
    """Raise ``DataError`` if given folds divide a group."""
    for number, (train, test) in enumerate(folds):
        shared = np.flatnonzero(np.isin(codes, codes[train]) & np.isin(np.arange(len(codes)), test))
        if len(shared):
            raise DataError(
                f"fold {number + 1} of splits tests on graph {shared[0]}, but another graph of its group is a training "
                "graph: give splits that keep groups together, such as GroupKFold."
            )


def _listed(given: Any, count: int, name: str) -> list[Any]:
    """Return one plain value for each graph."""
    values = list(given.tolist() if hasattr(given, "tolist") else given)
    if len(values) != count:
        raise DataError(f"{name} has {len(values)} values for {count} graphs, expected one for each graph.")
    return values
