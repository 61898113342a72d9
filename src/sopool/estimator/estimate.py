"""Estimate by cross-validation how good a model is on new graphs, including the choice of hyperparameters."""

import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from reprlib import repr as show
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid, StratifiedKFold

from sopool._runtime.processes import run_jobs
from sopool._runtime.threads import threads
from sopool.data.division import RANDOM, Division, with_split
from sopool.data.formats.worker_file import GraphsFile, graphs_file
from sopool.data.graphs import PackedGraphs
from sopool.data.honest_splits import group_folds, time_folds
from sopool.data.splits import stratified_folds
from sopool.errors import DataError, UserError
from sopool.estimator.base import GraphEstimator
from sopool.estimator.fitting import FitProgress, model_for
from sopool.estimator.truth import KnownGraphs, known_graphs, part_of_data
from sopool.estimator.validation import LabelledGraphs, SingleGraphWarning, UnseenWarning, check_settings
from sopool.models.network import network_of
from sopool.models.presets import UnusedWarning
from sopool.objectives import METRICS, Objective
from sopool.objectives.base import average
from sopool.objectives.calibration import Calibration, cross_calibrate

Scores = dict[str, list[float | None]]
"""For each metric, the score of each target, None where it cannot be computed; a class is a single target."""
INNER_FOLDS = 3
FAR = 0.1
"""The gap between accuracy and balanced accuracy above which rare classes are considered to be missed."""
MANY_CLASSES = 10
"""With more classes than this, labels must have at least two graphs per class on average."""

OnEpoch = Callable[[FitProgress], None]
OnFold = Callable[[dict[str, float | None]], None]
"""Called with the scores of a fold by metric, averaged over the targets."""
TrainTest = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Estimate:
    """The scores of a cross-validation.

    Examples:
        >>> from sopool.estimator.estimate import Estimate
        >>> from sopool.objectives import SingleLabel
        >>> folds = [{"accuracy": [0.75]}, {"accuracy": [0.25]}]
        >>> found = Estimate(SingleLabel(("no", "yes")), folds, baseline=[{"accuracy": [0.5]}] * 2)
        >>> found.mean("accuracy"), found.std("accuracy"), found.baseline_mean("accuracy")
        (0.5, 0.25, 0.5)
    """

    objective: Objective
    """What is predicted."""
    folds: list[Scores]
    """The scores on each test fold."""
    baseline: list[Scores]
    """The scores of a prediction that is the same for all graphs: the shares of the classes, the share of each label or
    the mean of each target in the training folds."""
    split: str = RANDOM
    """What the graphs were divided by, such as ``"random"`` or ``"scaffold"``."""
    calibration: Calibration | None = None
    """The temperature of the probabilities, and what it changes; None for numbers and for a single test set."""

    @property
    def temperature(self) -> float | None:
        """The temperature for a model that is trained on all graphs; None if it does not lower the log loss."""
        return self.calibration.temperature if self.calibration is not None and self.calibration.helps else None

    @property
    def misses_rare_classes(self) -> bool:
        """Whether graphs of rare classes are often classified as common ones; ``class_weight="balanced"`` may help."""
        if self.objective.task != "classification":
            return False
        return (self.mean("accuracy") or 0) - (self.mean("balanced_accuracy") or 1) > FAR

    def mean(self, metric: str, target: int | None = None) -> float | None:
        """Return the mean of a score over the folds in which it can be computed; None if it never can.

        Args:
            metric: The name of the metric.
            target: The position of a target. Default: None, the average over the targets of a fold that can be scored.
        """
        values = self.values(metric, target)
        return statistics.fmean(values) if values else None

    def std(self, metric: str, target: int | None = None) -> float | None:
        """Return the standard deviation of a score over the folds, with ``ddof=0``; see :meth:`mean`."""
        values = self.values(metric, target)
        return statistics.pstdev(values) if values else None

    def baseline_mean(self, metric: str, target: int | None = None) -> float | None:
        """Return the mean score of the baseline over the folds; see :meth:`mean`."""
        values = self._values(self.baseline, metric, target)
        return statistics.fmean(values) if values else None

    def values(self, metric: str, target: int | None = None) -> list[float]:
        """Return the scores of the folds in which they can be computed; see :meth:`mean`."""
        return self._values(self.folds, metric, target)

    def incomplete(self, metric: str) -> list[str]:
        """Return the names of the targets that cannot be scored in every fold."""
        targets = enumerate(self.objective.names if self.objective.task != "classification" else ("",))
        return [name for place, name in targets if len(self.values(metric, place)) < len(self.folds)]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; accuracies are fractions."""
        found = {
            "task": self.objective.task,
            "metric": self.objective.metric,
            "folds": len(self.folds),
            "split": self.split,
            "scores": self._figures(None),
            "baseline": {name: self.baseline_mean(name) for name in self.folds[0]},
        }
        if self.calibration is not None:
            found["calibration"] = self.calibration.to_json()
        if self.objective.task != "classification":
            found["targets"] = {name: self._figures(place) for place, name in enumerate(self.objective.names)}
        return found

    def _figures(self, target: int | None) -> dict[str, Any]:
        return {name: {"mean": self.mean(name, target), "std": self.std(name, target)} for name in self.folds[0]}

    def _values(self, folds: Sequence[Scores], metric: str, target: int | None) -> list[float]:
        each = [
            average(self.objective.comparable(metric, fold[metric])) if target is None else fold[metric][target]
            for fold in folds
            if metric in fold
        ]
        return [value for value in each if value is not None]


class InnerFolds:
    """The shuffled folds of a search: stratified if ``y`` has classes, random if it is None.

    Graphs of a group stay together, and graphs with times are trained on before those that test.
    """

    def split(self, graphs: Any, y: Any = None, groups: Any = None) -> Iterator[TrainTest]:
        """Yield the training and test graphs of each fold."""
        division = Division.of(graphs) if isinstance(graphs, PackedGraphs) else Division()
        related = _related_folds(division, None if y is None else np.unique(y, return_inverse=True)[1])
        if related is not None:
            yield from related
            return
        kind = KFold if y is None else StratifiedKFold
        yield from kind(INNER_FOLDS, shuffle=True, random_state=0).split(np.zeros(len(graphs)), y)

    def get_n_splits(self, graphs: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return INNER_FOLDS


def _related_folds(division: Division, strata: np.ndarray | None) -> list[TrainTest] | None:
    """Return the inner folds of graphs with times or groups; None for others."""
    if division.times is not None:
        return time_folds(division.times, INNER_FOLDS)
    if division.groups is not None:
        return group_folds(division.groups, INNER_FOLDS, strata=strata)
    return None


def by_metric(model: GraphEstimator, graphs: Any, y: Any = None) -> float:
    """Return the score of a model by its metric, with the sign that makes the larger one better; for searches.

    It is 0 where the score cannot be computed, which is so for all settings alike: the other folds then choose.
    """
    metric = model.objective_.metric
    if metric == "accuracy" and not model.target_names_:
        accuracy: float = model.score(graphs, y)  # labels of which the training fold has no graph count as wrong
        return accuracy
    found = model.scores(graphs, y, metrics=[metric])[metric]
    return 0.0 if found is None else METRICS[metric].sign * found


def searched(model: GraphEstimator, grid: dict[str, list[Any]]) -> BaseEstimator:
    """Return the model, or a grid search over it if ``grid`` has several values for a parameter.

    Args:
        model: The estimator, whose metric chooses.
        grid: The values of each parameter to choose from.

    Examples:
        >>> from sopool.estimator import GraphClassifier
        >>> from sopool.estimator.estimate import searched
        >>> type(searched(GraphClassifier(), {"hidden": [16, 32], "lr": [0.01]})).__name__
        'GridSearchCV'
    """
    choice = {name: values for name, values in grid.items() if len(values) > 1}
    model = clone(model).set_params(**{name: values[0] for name, values in grid.items()})
    if not choice:
        return model
    return GridSearchCV(model, choice, scoring=by_metric, cv=InnerFolds(), error_score="raise")


def system_grid(system: str, options: Mapping[str, Any] | None = None) -> dict[str, list[Any]]:
    """Return the values of a trained system's grid that there are several of, for :func:`searched`.

    Args:
        system: The name of the system.
        options: Options of its network that are not to be searched. Default: None.

    Examples:
        >>> from sopool.estimator.estimate import system_grid
        >>> system_grid("dgcnn")
        {'lr': [0.001, 0.0001]}
    """
    settings = network_of(system).settings
    every: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in settings] for name in ("hidden", "batch_size", "lr")
    }
    every["system_options"] = [dict(one.options) | dict(options or {}) for one in settings]
    distinct = {
        name: [value for at, value in enumerate(values) if value not in values[:at]] for name, values in every.items()
    }
    return {name: values for name, values in distinct.items() if len(values) > 1}


def fits_of(model: BaseEstimator) -> int:
    """Count the ensembles that fitting trains: one for each setting and inner fold of a search, and the best."""
    return len(ParameterGrid(model.param_grid)) * INNER_FOLDS + 1 if isinstance(model, GridSearchCV) else 1


def check_grid(model: GraphEstimator, grid: dict[str, list[Any]], graphs: KnownGraphs) -> None:
    """Raise ``UserError`` before training if a setting of the grid is impossible for these graphs."""
    for chosen in ParameterGrid(grid):
        given = type(model)(**check_settings(model.get_params(deep=False) | chosen))
        graphs.objective(given.metric, given.get_params(deep=False).get("loss"))
        model_for(graphs.store, given, graphs.task)


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
            f"like classes. Measurements are predicted by GraphRegressor, on the command line with --task regression. "
            f"Otherwise, choose another column or property with {argument('label_column')}."
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
    base_of(model).set_params(
        callback=lambda progress: on_epoch(progress)
    )  # a search copies its model, but a function is not copied
    return model


def base_of(model: Any) -> GraphEstimator:
    """Return the estimator of a search, and any other estimator unchanged."""
    one: GraphEstimator = model.estimator if isinstance(model, GridSearchCV) else model
    return one


def fit_labelled(model: Any, store: PackedGraphs) -> Any:
    """Fit a model or a grid search on graphs that carry labels or targets."""
    if not isinstance(model, GridSearchCV):
        return model.fit(store)
    graphs = known_graphs(store, None, base_of(model).predicts)
    with part_of_data():
        if graphs.classes is None:
            return model.fit(graphs.store)
        return model.fit(store, graphs.classes[graphs.truth])


def estimate(
    model: BaseEstimator,
    store: PackedGraphs,
    folds: int = 5,
    workers: int = 1,
    on_fold: OnFold = lambda _: None,
    on_epoch: OnEpoch = lambda _: None,
    splits: Any = None,
    groups: Any = None,
    fold_seed: int = 0,
    calibrate: bool = True,
) -> Estimate:
    """Cross-validate a model: train on all folds but one and score on that one, for each fold.

    Folds are stratified by class, and random for targets, unless the graphs carry a split, see
    :func:`~sopool.data.with_split`. Graphs of which no target is known are left out.

    Of a classifier, it also fits the temperature of the probabilities on the test folds. The scores of a fold are
    those with the temperature of the other folds, if this lowers the log loss of all folds.

    Args:
        model: An estimator, or a grid search, see :func:`searched`.
        store: Graphs that carry labels or targets.
        folds: The number of folds. Default: 5.
        workers: The number of single-threaded processes. Default: 1.
        on_fold: Called with the scores of each finished fold.
        on_epoch: Called after each training epoch.
        splits: A splitter of scikit-learn, pairs (train, test) of graph numbers, or the fold of each graph ``[G]``.
            Default: None, as the graphs carry it.
        groups: The group of each graph ``[G]``. Graphs of a group stay together in the folds, among the held-out graphs
            of each fold, and in the inner folds of a search. Default: None, as the graphs carry it.
        fold_seed: The random seed of the folds. Default: 0.
        calibrate: Whether a temperature is fitted and used. Default: True.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator import GraphClassifier
        >>> from sopool.estimator.estimate import estimate
        >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0)
        >>> found = estimate(model, load("MUTAG"), folds=2)
        >>> len(found.folds), found.objective.names
        (2, (-1, 1))
    """
    one = base_of(model)
    if splits is not None or groups is not None:
        store = with_split(store, splits, groups)
    known = known_graphs(store, None, one.predicts)
    known.check()
    objective = known.objective(one.metric, one.get_params(deep=False).get("loss"))
    truth = known.truth
    found = estimate_folds(known, folds, fold_seed, model)
    outputs = {}
    for fold, each in _outputs(model, known.graphs, found, workers, on_epoch):
        outputs[fold] = each
        on_fold(objective.score(each, truth[found[fold][1]]))
    tested = [truth[test] for _, test in found]
    each_fold = [outputs[fold] for fold in range(len(found))]
    calibration = None
    if calibrate and objective.task != "regression" and len(found) > 1:
        calibration, after = cross_calibrate(objective, each_fold, tested)
        each_fold = after if calibration.helps else each_fold
    scores = [objective.score_targets(each, true) for each, true in zip(each_fold, tested, strict=True)]
    alike = [np.tile(objective.constant(truth[train]), (len(test), 1)) for train, test in found]
    baseline = [objective.score_targets(each, truth[test]) for each, (_, test) in zip(alike, found, strict=True)]
    return Estimate(objective, scores, baseline, Division.of(known.store).name, calibration)


def estimate_folds(known: KnownGraphs, folds: int, fold_seed: int, model: BaseEstimator) -> list[TrainTest]:
    """Return the training and test graphs of each fold; raise ``DataError`` if some fit could not divide its graphs."""
    division = Division.of(known.store)
    strata = known.objective().strata(known.truth)
    found = division.folds(len(known.store), strata, folds, fold_seed, known.names)
    for fold, (train, _) in enumerate(found if division.arrays else ()):
        try:
            _check_fits(division.take(train), None if strata is None else strata[train], model)
        except UserError as error:
            raise DataError(f"fold {fold + 1} of the {division.name} split: {error}") from error
    return found


def _check_fits(division: Division, strata: np.ndarray | None, model: BaseEstimator) -> None:
    """Raise ``DataError`` if a fit or a search on these graphs could not divide them."""
    fits = [np.arange(len(next(iter(division.arrays.values()))))]
    inner = _related_folds(division, strata) if fits_of(model) > 1 else None
    fits += [train for train, _ in inner or ()]
    for train in fits if base_of(model).validation_fraction else ():
        division.holdout(train, strata, base_of(model).validation_fraction)


@contextmanager
def quiet(*more: type[Warning]) -> Iterator[None]:
    """Suppress warnings of a prediction and of a network, and those in ``more``, within a cross-validation."""
    kinds: list[type[Warning]] = [UnseenWarning, UnusedWarning, *more]
    with warnings.catch_warnings():
        for kind in kinds:
            warnings.simplefilter("ignore", kind)
        yield


def _outputs(
    model: BaseEstimator, store: PackedGraphs, splits: Sequence[TrainTest], workers: int, on_epoch: OnEpoch
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each fold and the outputs for its test graphs, computed here or in worker processes."""
    jobs = enumerate(splits)
    workers = min(workers, len(splits))
    if workers == 1:
        yield from map(_tester(with_callback(model, on_epoch), store), jobs)
        return
    with graphs_file(store) as graphs:
        yield from run_jobs(_worker, (graphs, model), jobs, workers, on_epoch)


def _worker(
    graphs: GraphsFile, model: BaseEstimator, report: OnEpoch, stop: Callable[[], bool]
) -> Callable[[tuple[int, TrainTest]], tuple[int, np.ndarray]]:
    """Return a function that trains for folds in a worker process until it is told to stop."""

    def on_epoch(progress: FitProgress) -> None:
        if stop():
            raise CancelledError
        report(progress)

    return _tester(with_callback(model, on_epoch), graphs.load())


def _tester(model: Any, store: PackedGraphs) -> Callable[[tuple[int, TrainTest]], tuple[int, np.ndarray]]:
    def test_fold(job: tuple[int, TrainTest]) -> tuple[int, np.ndarray]:
        fold, (train, test) = job
        with threads(1), quiet(SingleGraphWarning), part_of_data():
            fitted = fit_labelled(clone(model), store[train.tolist()])
            return fold, getattr(fitted, "best_estimator_", fitted).outputs(store[test.tolist()])

    return test_fold
