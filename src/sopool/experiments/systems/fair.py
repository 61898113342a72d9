"""The ``fair`` protocol for controls, with the same folds and held-out graphs as for the networks.

A control has no epoch to choose, so its final model is trained on the whole training fold, including the held-out
graphs. One final model is enough, since another seed would give the same one.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from sopool._runtime.threads import cores
from sopool.data.pack import Label
from sopool.experiments.systems.views import Choice, View, Views
from sopool.models.config import ModelConfig
from sopool.objectives import SingleLabel
from sopool.objectives.metrics import cross_entropy
from sopool.training.protocols.outcome import Outcome
from sopool.training.run_splits import Split, Splitter
from sopool.training.runs.config import RunConfig

Scores = dict[str, float | None]
Item = TypeVar("Item")
Found = TypeVar("Found")


class _Candidate(NamedTuple):
    """A model of a fold and its rank on the held-out graphs."""

    rank: tuple[float, float]
    view: Choice
    choice: Choice


def splits_of(labels: np.ndarray, folds: int, seed: int, names: Sequence[Label] | None = None) -> list[Split]:
    """Return the splits on which the networks of an evaluation choose their settings."""
    splitter = Splitter(labels, names)
    model = ModelConfig()
    return [
        splitter(RunConfig("", "", "", model, fold, folds=folds, seed=seed, looks="validation"))
        for fold in range(folds)
    ]


def judge_control(
    views: Views, labels: np.ndarray, folds: int, seed: int, names: Sequence[Label] | None = None
) -> tuple[Outcome, list[Choice]]:
    """Return the result and the setting of each fold. ``names`` are the names of the classes, for messages."""
    splits = splits_of(labels, folds, seed, names)
    chosen = _choose(views, labels, splits)
    tested: dict[int, Scores] = {}
    for view in views:
        mine = [fold for fold, one in enumerate(chosen) if one.view == view.setting]
        results = _at_once(partial(_test, view, labels), [(splits[fold], chosen[fold].choice) for fold in mine])
        tested |= dict(zip(mine, results, strict=True))
        if len(tested) == folds:
            break
    return _outcome([tested[fold] for fold in range(folds)]), [one.view | one.choice for one in chosen]


def _choose(views: Views, labels: np.ndarray, splits: Sequence[Split]) -> list[_Candidate]:
    """Return the best candidate of each fold on its held-out graphs: by accuracy, then by loss, then the first."""
    best: list[_Candidate] = []
    for view in views:
        found = _at_once(partial(_candidates, view, labels), splits)
        before = [[one] for one in best] or [[] for _ in splits]
        best = [min(old + new, key=lambda one: one.rank) for old, new in zip(before, found, strict=True)]
    return best


def _candidates(view: View, labels: np.ndarray, split: Split) -> list[_Candidate]:
    every = view.scores(split.train, labels[split.train], split.validation, view.choices)
    ranks = [_rank(logits, labels[split.validation]) for logits in every]
    return [_Candidate(rank, view.setting, choice) for rank, choice in zip(ranks, view.choices, strict=True)]


def _rank(logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    return -float((logits.argmax(1) == labels).mean()), cross_entropy(logits, labels)


def _test(view: View, labels: np.ndarray, final: tuple[Split, Choice]) -> Scores:
    split, choice = final
    train = np.sort(np.concatenate([split.train, split.validation]))
    (logits,) = view.scores(train, labels[train], split.test, [choice])
    return SingleLabel(tuple(range(logits.shape[1]))).score(logits, labels[split.test])


def _at_once(work: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """Apply ``work`` to all items in threads on all cores, so that the matrices are shared."""
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(work, items))


def _outcome(folds: Sequence[Scores]) -> Outcome:
    return Outcome(
        protocol="fair",
        optimistic="",
        folds=tuple(fold["accuracy"] or 0.0 for fold in folds),
        epochs=(),
        setting=(),
        scores={name: tuple(fold[name] for fold in folds) for name in folds[0] if name != "accuracy"},
    )
