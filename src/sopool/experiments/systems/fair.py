"""The ``fair`` protocol for controls, with the same folds and held-out graphs as for the networks.

A control has no epoch to choose, so its final model is trained on the whole training fold, including the held-out
graphs. One final model is enough, since another seed would give the same one.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from sopool._runtime.threads import cores
from sopool.data.division import Division
from sopool.experiments.systems.views import Choice, View, Views, outputs_of
from sopool.models.config import ModelConfig
from sopool.objectives import Objective, SingleLabel
from sopool.training.protocols.outcome import Outcome, Scores
from sopool.training.protocols.protocols import score_fold, side_by_side
from sopool.training.run_splits import Split, Splitter
from sopool.training.runs.config import RunConfig

Item = TypeVar("Item")
Found = TypeVar("Found")


class _Candidate(NamedTuple):
    """A model of a fold and its rank on the held-out graphs."""

    rank: tuple[float, float]
    view: Choice
    choice: Choice


class _Tested(NamedTuple):
    """The scores of a fold and of each of several targets."""

    scores: Scores
    targets: dict[str, Scores]


def splits_of(
    truth: np.ndarray,
    folds: int,
    seed: int,
    objective: Objective | None = None,
    division: Division | None = None,
    fold_seed: int = 0,
) -> list[Split]:
    """Return the splits on which the networks of an evaluation choose their settings."""
    splitter = Splitter.of(objective or _classes(truth), truth, division)
    splitter.check(folds, held_out=True, seed=fold_seed)
    run = RunConfig("", "", "", ModelConfig(), 0, folds, fold_seed, seed, looks="validation")
    run = replace(run, split=splitter.division.key)
    return [splitter(replace(run, fold=fold)) for fold in range(folds)]


def judge_control(
    views: Views, truth: np.ndarray, splits: Sequence[Split], objective: Objective | None = None
) -> tuple[Outcome, list[Choice]]:
    """Return the result and the setting of each fold.

    Args:
        views: What the control sees of the graphs.
        truth: The true values of every graph: class numbers ``[G]``, or targets ``[G, T]``.
        splits: The training, held-out and test graphs of each fold.
        objective: What is predicted. Default: None, one class per graph.
    """
    objective = objective or _classes(truth)
    folds = len(splits)
    chosen = _choose(views, truth, splits, objective)
    tested: dict[int, _Tested] = {}
    for view in views:
        mine = [fold for fold, one in enumerate(chosen) if one.view == view.setting]
        finals = [(fold, splits[fold], chosen[fold].choice) for fold in mine]
        tested |= dict(zip(mine, _at_once(partial(_test, view, truth, objective), finals), strict=True))
        if len(tested) == folds:
            break
    outcome = _outcome([tested[fold] for fold in range(folds)], objective)
    return outcome, [one.view | one.choice for one in chosen]


def _classes(truth: np.ndarray) -> Objective:
    return SingleLabel(tuple(range(int(truth.max()) + 1)))


def _choose(views: Views, truth: np.ndarray, splits: Sequence[Split], objective: Objective) -> list[_Candidate]:
    """Return the best candidate of each fold on its held-out graphs: by score, then by loss, then the first."""
    best: list[_Candidate] = []
    for view in views:
        found = _at_once(partial(_candidates, view, truth, objective), splits)
        before = [[one] for one in best] or [[] for _ in splits]
        best = [min(old + new, key=lambda one: one.rank) for old, new in zip(before, found, strict=True)]
    return best


def _candidates(view: View, truth: np.ndarray, objective: Objective, split: Split) -> list[_Candidate]:
    every = outputs_of(view, objective, split.train, truth[split.train], split.validation, view.choices)
    fitted = objective.fit(truth[split.train])
    ranks = [_rank(fitted, outputs, truth[split.validation]) for outputs in every]
    return [_Candidate(rank, view.setting, choice) for rank, choice in zip(ranks, view.choices, strict=True)]


def _rank(objective: Objective, outputs: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    score = objective.chosen_by.sign * objective.choosing_score(outputs, truth)
    return -score, objective.loss(outputs, truth)


def _test(view: View, truth: np.ndarray, objective: Objective, final: tuple[int, Split, Choice]) -> _Tested:
    fold, split, choice = final
    train = np.sort(np.concatenate([split.train, split.validation]))
    (outputs,) = outputs_of(view, objective, train, truth[train], split.test, [choice])
    return _Tested(*score_fold(objective, outputs, truth[split.test], f"fold {fold + 1}"))


def _at_once(work: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """Apply ``work`` to all items in threads on all cores, so that the matrices are shared."""
    from threadpoolctl import threadpool_limits  # imported here to start the command line faster

    with threadpool_limits(1), ThreadPoolExecutor(cores()) as pool:  # more threads of BLAS compete with these
        return list(pool.map(work, items))


def _outcome(folds: Sequence[_Tested], objective: Objective) -> Outcome:
    scores = dict(side_by_side([fold.scores for fold in folds]))
    own = scores.pop(objective.metric)
    return Outcome(
        protocol="fair",
        optimistic="",
        folds=tuple(score for score in own if score is not None),
        epochs=(),
        setting=(),
        scores=scores,
        metric=objective.metric,
        targets={name: side_by_side([fold.targets[name] for fold in folds]) for name in folds[0].targets},
    )
