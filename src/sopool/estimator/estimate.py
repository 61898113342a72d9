"""How good a classifier is on graphs it has not seen: cross-validation around everything that is chosen."""

import statistics
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from sopool.data.splits import stratified_folds
from sopool.data.store import PackedGraphs
from sopool.estimator.classifier import GraphClassifier
from sopool.estimator.inputs import number_classes
from sopool.estimator.settings import UnseenWarning
from sopool.experiments.threads import threads
from sopool.training.metrics import Scores, score

MEASURES = ("accuracy", "balanced_accuracy", "roc_auc")
INNER_FOLDS = 3
TINY = 1e-300


@dataclass(frozen=True)
class Estimate:
    """The scores of models that were trained on all folds but one, on that one."""

    folds: list[Scores]
    """Of each test fold."""
    largest_class: float
    """The accuracy of always naming the most frequent class."""

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
        return {"folds": len(self.folds), "largest_class": self.largest_class, **figures}

    def _values(self, measure: str) -> list[float]:
        every = [{name: value for name, value in fold.items() if isinstance(value, float)} for fold in self.folds]
        return [fold[measure] for fold in every] if all(measure in fold for fold in every) else []


def searched(model: GraphClassifier, grid: dict[str, list[Any]]) -> BaseEstimator:
    """The model, or a search for its best settings by cross-validation of its own where there is a choice."""
    choice = {name: values for name, values in grid.items() if len(values) > 1}
    model = clone(model).set_params(**{name: values[0] for name, values in grid.items()})
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=0)
    return GridSearchCV(model, choice, cv=inner, error_score="raise") if choice else model


def estimate(
    model: BaseEstimator,
    store: PackedGraphs,
    labels: np.ndarray,
    folds: int = 5,
    workers: int = 1,
    report: Callable[[Scores], None] = lambda _: None,
) -> Estimate:
    """Train on all folds but one, score on that one, for each; ``workers`` processes of one thread side by side."""
    classes, codes = number_classes(labels)
    splits = stratified_folds(codes, folds, names=classes.tolist())
    jobs = (delayed(_fold)(clone(model), store, labels, codes, *split) for split in splits)
    scores = []
    for one in Parallel(n_jobs=min(workers, folds), return_as="generator")(jobs):
        scores.append(one)
        report(one)
    return Estimate(scores, float(np.bincount(codes).max() / len(codes)))


@contextmanager
def quiet() -> Iterator[None]:
    """No word about values that only a test fold has: how models cope with them is part of what is estimated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWarning)
        yield


def _fold(
    model: Any, store: PackedGraphs, labels: np.ndarray, codes: np.ndarray, train: np.ndarray, test: np.ndarray
) -> Scores:
    with threads(1), quiet():
        model.fit(store[train.tolist()], labels[train])
        shares = model.predict_proba(store[test.tolist()])
    return score(np.log(np.maximum(shares, TINY)), codes[test])
