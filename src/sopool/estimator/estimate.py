"""Estimate the accuracy on new graphs by cross-validation, including the choice of hyperparameters."""

import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from reprlib import repr as show
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold

from sopool._runtime.processes import run_jobs
from sopool._runtime.threads import threads
from sopool.data.formats.worker_file import GraphsFile, graphs_file
from sopool.data.graphs import PackedGraphs
from sopool.data.splits import stratified_folds
from sopool.errors import DataError, UserError
from sopool.estimator.classifier import GraphClassifier
from sopool.estimator.fitting import FitProgress, model_for
from sopool.estimator.validation import (
    LabelledGraphs,
    SingleGraphWarning,
    UnseenWarning,
    check_settings,
    check_several,
    label_graphs,
)
from sopool.objectives import SingleLabel

Scores = dict[str, float | None]
"""The score by each metric."""
MEASURES = ("accuracy", "balanced_accuracy", "roc_auc")
INNER_FOLDS = 3
TINY = 1e-300
FAR = 0.1
"""The gap between accuracy and balanced accuracy above which rare classes are considered to be missed."""
MANY_CLASSES = 10
"""With more classes than this, labels must have at least two graphs per class on average."""

OnEpoch = Callable[[FitProgress], None]
TrainTest = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Estimate:
    """The scores of a cross-validation.

    Examples:
        >>> from sopool.estimator.estimate import Estimate
        >>> folds = [{"accuracy": 0.75, "balanced_accuracy": 0.75}, {"accuracy": 0.25, "balanced_accuracy": 0.25}]
        >>> found = Estimate(folds, largest_class=0.5, classes=2)
        >>> found.mean("accuracy"), found.std("accuracy")
        (0.5, 0.25)
    """

    folds: list[Scores]
    """The scores on each test fold."""
    largest_class: float
    """The accuracy of always predicting the most frequent class, averaged over the same folds."""
    classes: int
    """The number of classes."""

    @property
    def misses_rare_classes(self) -> bool:
        """Whether graphs of rare classes are often classified as common ones; ``class_weight="balanced"`` may help."""
        return (self.mean("accuracy") or 0) - (self.mean("balanced_accuracy") or 1) > FAR

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over the folds; None if a fold has no such score."""
        values = self._values(measure)
        return statistics.fmean(values) if values else None

    def std(self, measure: str) -> float | None:
        """Return the standard deviation of a measure over the folds, with ``ddof=0``."""
        values = self._values(measure)
        return statistics.pstdev(values) if values else None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; accuracies are fractions."""
        figures = {name: {"mean": self.mean(name), "std": self.std(name)} for name in MEASURES}
        facts = {"folds": len(self.folds), "largest_class": self.largest_class, "classes": self.classes}
        return facts | figures

    def _values(self, measure: str) -> list[float]:
        every = [{name: value for name, value in fold.items() if isinstance(value, float)} for fold in self.folds]
        return [fold[measure] for fold in every] if all(measure in fold for fold in every) else []


def searched(model: GraphClassifier, grid: dict[str, list[Any]]) -> BaseEstimator:
    """Return the model, or a grid search over it if ``grid`` has several values for a parameter.

    Args:
        model: The classifier.
        grid: The values of each parameter to choose from.

    Examples:
        >>> from sopool.estimator import GraphClassifier
        >>> from sopool.estimator.estimate import searched
        >>> type(searched(GraphClassifier(), {"hidden": [16, 32], "lr": [0.01]})).__name__
        'GridSearchCV'
    """
    choice = {name: values for name, values in grid.items() if len(values) > 1}
    model = clone(model).set_params(**{name: values[0] for name, values in grid.items()})
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=0)
    return GridSearchCV(model, choice, cv=inner, error_score="raise") if choice else model


def fits_of(model: BaseEstimator) -> int:
    """Count the ensembles that fitting trains: one for each setting and inner fold of a search, and the best."""
    return len(ParameterGrid(model.param_grid)) * INNER_FOLDS + 1 if isinstance(model, GridSearchCV) else 1


def check_grid(model: GraphClassifier, grid: dict[str, list[Any]], store: PackedGraphs) -> None:
    """Raise ``UserError`` before training if a setting of the grid is impossible for these graphs."""
    for chosen in ParameterGrid(grid):
        model_for(store, GraphClassifier(**check_settings(model.get_params(deep=False) | chosen)))


def in_python(name: str, value: object = None) -> str:
    """Name an argument, and its value if given, in Python's notation."""
    return name if value is None else f"{name}={value}"


def check_classes(graphs: LabelledGraphs, folds: int, needed: int, argument: Callable[..., str] = in_python) -> None:
    """Raise ``DataError`` before training if the classes do not allow an estimate.

    Args:
        graphs: The labeled graphs.
        folds: The number of folds of the estimate; 0 for none.
        needed: How many graphs of each class must remain for training, see :func:`least_of_class`.
        argument: Formats an argument and its value in messages; the command line uses its own option names.
    """
    counts = graphs.counts
    total = len(graphs.codes)
    if MANY_CLASSES < len(counts) > total / 2:
        raise DataError(
            f"{total:,} graphs have {len(counts):,} different labels, which look like names or measurements and not "
            f"like classes. Regression is not supported; choose another column or property with "
            f"{argument('label_column')}."
        )
    rare = int(counts.argmin())
    count = int(counts[rare])
    if count < folds:
        trains = needed <= count < total
        _check_folds(graphs, folds, f" {argument('folds', 0)} trains without an estimate." if trains else "")
    if _left(count, folds) >= needed:
        return
    what = f"class {show(graphs.classes.tolist()[rare])} has {count} graph{'s' * (count > 1)}"
    what += f", and {argument('folds', folds)} may leave only {_left(count, folds)} for training" if folds else ""
    more = next((more for more in range(folds + 1, count + 1) if folds and _left(count, more) >= needed), None)
    none = [f"use {argument('folds', 0)} (no estimate)"] if folds and count >= needed else []
    ways = [f"use {argument('folds', more)}"] if more else none
    advice = ", or ".join([*ways, "add graphs to the class or remove the class"])
    raise DataError(f"{what}; at least {needed} are needed for training and for choosing settings: {advice}.")


def least_of_class(model: BaseEstimator) -> int:
    """Return how many graphs of each class fitting needs; a grid search makes folds of its own."""
    return INNER_FOLDS if fits_of(model) > 1 else 1


def _check_folds(graphs: LabelledGraphs, folds: int, way_out: str) -> None:
    """Make the folds; if that fails, raise its error with advice added."""
    try:
        stratified_folds(graphs.codes, folds, names=graphs.classes.tolist())
    except UserError as error:
        raise DataError(f"{error}{way_out}") from error


def _left(count: int, folds: int) -> int:
    """Return how many graphs of a class remain for training in the fold that tests most of them."""
    return count - -(-count // folds) if folds else count


def with_callback(model: BaseEstimator, on_epoch: OnEpoch) -> Any:
    """Return a copy of the model that calls ``on_epoch`` after each training epoch."""
    model = clone(model)
    one = model.estimator if isinstance(model, GridSearchCV) else model
    one.set_params(
        callback=lambda progress: on_epoch(progress)
    )  # a search copies its model, but a function is not copied
    return model


def fit_labelled(model: Any, store: PackedGraphs) -> Any:
    """Fit a model or a grid search on graphs that carry labels."""
    if not isinstance(model, GridSearchCV):
        return model.fit(store)
    graphs = label_graphs(store)
    return model.fit(store, graphs.classes[graphs.codes])


def estimate(
    model: BaseEstimator,
    store: PackedGraphs,
    folds: int = 5,
    workers: int = 1,
    on_fold: Callable[[Scores], None] = lambda _: None,
    on_epoch: OnEpoch = lambda _: None,
) -> Estimate:
    """Cross-validate a model: train on all folds but one and score on that one, for each fold.

    Args:
        model: A classifier, or a grid search, see :func:`searched`.
        store: Graphs that carry labels.
        folds: The number of folds. Default: 5.
        workers: The number of single-threaded processes. Default: 1.
        on_fold: Called with the scores of each finished fold.
        on_epoch: Called after each training epoch.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator import GraphClassifier
        >>> from sopool.estimator.estimate import estimate
        >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0)
        >>> found = estimate(model, load("MUTAG"), folds=2)
        >>> len(found.folds), found.classes
        (2, 2)
    """
    graphs = label_graphs(store)
    check_several(graphs.classes)
    splits = stratified_folds(graphs.codes, folds, names=graphs.classes.tolist())
    scores = {}
    for fold, one in _scores(model, store, graphs.codes, splits, workers, on_epoch):
        scores[fold] = one
        on_fold(one)
    largest = graphs.codes == graphs.counts.argmax()
    share = statistics.fmean(float(largest[test].mean()) for _, test in splits)
    return Estimate([scores[fold] for fold in range(folds)], share, len(graphs.classes))


@contextmanager
def quiet(*more: type[Warning]) -> Iterator[None]:
    """Suppress ``UnseenWarning`` and the warnings ``more``, which are expected within a cross-validation."""
    kinds: list[type[Warning]] = [UnseenWarning, *more]
    with warnings.catch_warnings():
        for kind in kinds:
            warnings.simplefilter("ignore", kind)
        yield


def _scores(
    model: BaseEstimator,
    store: PackedGraphs,
    codes: np.ndarray,
    splits: Sequence[TrainTest],
    workers: int,
    on_epoch: OnEpoch,
) -> Iterator[tuple[int, Scores]]:
    """Yield the number and the scores of each fold, computed here or in worker processes."""
    jobs = enumerate(splits)
    workers = min(workers, len(splits))
    if workers == 1:
        yield from map(_scorer(with_callback(model, on_epoch), store, codes), jobs)
        return
    with graphs_file(store) as graphs:
        yield from run_jobs(_worker, (graphs, model, codes), jobs, workers, on_epoch)


def _worker(
    graphs: GraphsFile, model: BaseEstimator, codes: np.ndarray, report: OnEpoch, stop: Callable[[], bool]
) -> Callable[[tuple[int, TrainTest]], tuple[int, Scores]]:
    """Return a function that scores folds in a worker process until it is told to stop."""

    def on_epoch(progress: FitProgress) -> None:
        if stop():
            raise CancelledError
        report(progress)

    return _scorer(with_callback(model, on_epoch), graphs.load(), codes)


def _scorer(
    model: Any, store: PackedGraphs, codes: np.ndarray
) -> Callable[[tuple[int, TrainTest]], tuple[int, Scores]]:
    def score_fold(job: tuple[int, TrainTest]) -> tuple[int, Scores]:
        fold, (train, test) = job
        with threads(1), quiet(SingleGraphWarning):
            fitted = fit_labelled(clone(model), store[train.tolist()])
            shares = fitted.predict_proba(store[test.tolist()])
        objective = SingleLabel(tuple(range(shares.shape[1])))
        return fold, objective.score(np.log(np.maximum(shares, TINY)), codes[test])

    return score_fold
