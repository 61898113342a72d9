"""How good a classifier is on graphs it has not seen: cross-validation around everything that is chosen."""

import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold

from sopool._runtime.processes import run_jobs
from sopool._runtime.threads import threads
from sopool.data.formats.worker_file import GraphsFile, graphs_file
from sopool.data.graphs import PackedGraphs
from sopool.data.splits import stratified_folds
from sopool.estimator.classifier import GraphClassifier
from sopool.estimator.fitting import FitProgress, shape_of
from sopool.estimator.validation import SingleGraphWarning, UnseenWarning, checked, number_classes
from sopool.training.protocols.metrics import Scores, score

MEASURES = ("accuracy", "balanced_accuracy", "roc_auc")
INNER_FOLDS = 3
TINY = 1e-300

Watch = Callable[[FitProgress], None]
TrainTest = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Estimate:
    """The scores of models that were trained on all folds but one, on that one."""

    folds: list[Scores]
    """Of each test fold."""
    largest_class: float
    """The accuracy of always naming the most frequent class, the mean over the same folds."""
    classes: int
    """How many there are."""

    def mean(self, measure: str) -> float | None:
        """Over the folds; None where a fold has no such score."""
        values = self._values(measure)
        return statistics.fmean(values) if values else None

    def std(self, measure: str) -> float | None:
        """Over the folds, ddof = 0."""
        values = self._values(measure)
        return statistics.pstdev(values) if values else None

    def to_json(self) -> dict[str, Any]:
        """Fractions, not percentages."""
        figures = {name: {"mean": self.mean(name), "std": self.std(name)} for name in MEASURES}
        facts = {"folds": len(self.folds), "largest_class": self.largest_class, "classes": self.classes}
        return facts | figures

    def _values(self, measure: str) -> list[float]:
        every = [{name: value for name, value in fold.items() if isinstance(value, float)} for fold in self.folds]
        return [fold[measure] for fold in every] if all(measure in fold for fold in every) else []


def searched(model: GraphClassifier, grid: dict[str, list[Any]]) -> BaseEstimator:
    """The model, or a search for its best settings by cross-validation of its own where there is a choice."""
    choice = {name: values for name, values in grid.items() if len(values) > 1}
    model = clone(model).set_params(**{name: values[0] for name, values in grid.items()})
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=0)
    return GridSearchCV(model, choice, cv=inner, error_score="raise") if choice else model


def check_settings(model: GraphClassifier, grid: dict[str, list[Any]], store: PackedGraphs) -> None:
    """Raise a ``DataError`` now, before anything is trained, for a setting that no model of these graphs can have."""
    for chosen in ParameterGrid(grid):
        shape_of(store, checked(model.get_params(deep=False) | chosen))


def fits_of(model: BaseEstimator) -> int:
    """How many ensembles are trained to fit it: a search trains one for each setting and inner fold, and the best."""
    return len(ParameterGrid(model.param_grid)) * INNER_FOLDS + 1 if isinstance(model, GridSearchCV) else 1


def watched(model: BaseEstimator, watch: Watch) -> Any:
    """A copy that tells ``watch`` of each epoch of all that it trains."""
    model = clone(model)
    one = model.estimator if isinstance(model, GridSearchCV) else model
    one.set_params(callback=lambda progress: watch(progress))  # a search copies its model, but no function in it
    return model


def estimate(
    model: BaseEstimator,
    store: PackedGraphs,
    labels: np.ndarray,
    folds: int = 5,
    workers: int = 1,
    report: Callable[[Scores], None] = lambda _: None,
    watch: Watch = lambda _: None,
) -> Estimate:
    """Train on all folds but one, score on that one, for each; ``workers`` processes of one thread side by side.

    ``report`` is told of each fold that is done, ``watch`` of each epoch in between.
    """
    classes, codes = number_classes(labels)
    splits = stratified_folds(codes, folds, names=classes.tolist())
    scores = {}
    for fold, one in _scores(model, store, labels, codes, splits, workers, watch):
        scores[fold] = one
        report(one)
    largest = codes == np.bincount(codes).argmax()
    share = statistics.fmean(float(largest[test].mean()) for _, test in splits)
    return Estimate([scores[fold] for fold in range(folds)], share, len(classes))


@contextmanager
def quiet(*more: type[Warning]) -> Iterator[None]:
    """No word about values that only a test fold has, nor ``more``: how models cope is part of what is estimated."""
    kinds: list[type[Warning]] = [UnseenWarning, *more]
    with warnings.catch_warnings():
        for kind in kinds:
            warnings.simplefilter("ignore", kind)
        yield


def _scores(
    model: BaseEstimator,
    store: PackedGraphs,
    labels: np.ndarray,
    codes: np.ndarray,
    splits: Sequence[TrainTest],
    workers: int,
    watch: Watch,
) -> Iterator[tuple[int, Scores]]:
    """Of each fold, with its number; here, or in processes as they come."""
    jobs = enumerate(splits)
    workers = min(workers, len(splits))
    if workers == 1:
        yield from map(_scorer(watched(model, watch), store, labels, codes), jobs)
        return
    with graphs_file(store) as graphs:
        yield from run_jobs(_worker, (graphs, model, labels, codes), jobs, workers, watch)


def _worker(
    graphs: GraphsFile,
    model: BaseEstimator,
    labels: np.ndarray,
    codes: np.ndarray,
    report: Watch,
    stop: Callable[[], bool],
) -> Callable[[tuple[int, TrainTest]], tuple[int, Scores]]:
    """What scores folds in a process of its own, until it is told to stop."""

    def watch(progress: FitProgress) -> None:
        if stop():
            raise CancelledError
        report(progress)

    return _scorer(watched(model, watch), graphs.load(), labels, codes)


def _scorer(
    model: Any, store: PackedGraphs, labels: np.ndarray, codes: np.ndarray
) -> Callable[[tuple[int, TrainTest]], tuple[int, Scores]]:
    def score_fold(job: tuple[int, TrainTest]) -> tuple[int, Scores]:
        fold, (train, test) = job
        with threads(1), quiet(SingleGraphWarning):
            fitted = clone(model).fit(store[train.tolist()], labels[train])
            shares = fitted.predict_proba(store[test.tolist()])
        return fold, score(np.log(np.maximum(shares, TINY)), codes[test])

    return score_fold
