"""Learners: models of scikit-learn that learn from a fixed representation of graphs, each with one strength.

The strengths of a learner are its regularization path: they are to a fixed system what epochs are to a network.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sopool.objectives import Task

C = (0.1, 1.0, 10.0, 100.0)
"""The default strengths of support vector machines."""
TREES = 300
"""The number of trees of a forest."""


class Inputs(NamedTuple):
    """What a learner gets: of the graphs that it learns from, and of those that it is asked about.

    Either features ``[train, F]`` and ``[wanted, F]``, dense or sparse; or blocks of a kernel ``[train, train]`` and
    ``[wanted, train]``, with the kernel of each wanted graph with itself ``[wanted]``.
    """

    seen: Any
    wanted: Any
    own: np.ndarray | None = None


Fit = Callable[..., Iterator[np.ndarray]]
"""A function of inputs, true values, strengths, a random seed and the options of the learner. It yields, for each
strength, scores ``[wanted, classes]`` if it classifies, or numbers ``[wanted, T]``."""


@dataclass(frozen=True)
class Learner:
    """A way to learn from a representation.

    Examples:
        >>> from sopool.experiments.systems.learners import LEARNERS
        >>> list(LEARNERS)
        ['prior', 'logistic', 'linear-svm', 'svm', 'svm-rbf', 'forest', 'boosting']
        >>> LEARNERS["svm"].strengths
        (0.1, 1.0, 10.0, 100.0)
    """

    name: str
    """The name of the learner."""
    takes: Literal["nothing", "features", "kernel"]
    """What it learns from. A learner that takes a kernel is given the inner products of features."""
    said: Mapping[Task, str]
    """What it is, by task, for the end of a sentence about what it sees."""
    classify: Fit
    regress: Fit
    strength: str = "C"
    """The name of its strength; empty if it has none."""
    strengths: tuple[float, ...] = C
    """The default values of the strength, in the order of the path."""
    options: tuple[str, ...] = ()
    """Further hyperparameters, which a system's settings may have."""
    chance: bool = False
    """Whether its models depend on a random seed."""


def by_class(decision: np.ndarray) -> np.ndarray:
    """Return scores of each class ``[n, classes]``; for two classes scikit-learn gives those of the second ``[n]``."""
    if decision.ndim == 2 and decision.shape[1] == 1:
        decision = decision[:, 0]
    return np.stack([-decision / 2, decision / 2], axis=1) if decision.ndim == 1 else decision


def _prior(inputs: Inputs, labels: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.dummy import DummyClassifier

    model = DummyClassifier(strategy="prior").fit(inputs.seen, labels)
    for _ in strengths:
        yield model.predict_log_proba(inputs.wanted)


def _mean(inputs: Inputs, values: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.dummy import DummyRegressor

    model = DummyRegressor().fit(inputs.seen, values)
    for _ in strengths:
        yield model.predict(inputs.wanted)


def _scaled(inputs: Inputs) -> Inputs:
    """Scale features by the statistics of the training graphs; sparse ones are not shifted."""
    from scipy.sparse import issparse
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not issparse(inputs.seen)).fit(inputs.seen)
    return Inputs(scaler.transform(inputs.seen), scaler.transform(inputs.wanted))


def _logistic(inputs: Inputs, labels: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    seen, wanted, _ = _scaled(inputs)
    for c in strengths:
        model = LogisticRegression(C=c, max_iter=10_000).fit(seen, labels)
        yield by_class(model.decision_function(wanted))


def _ridge(inputs: Inputs, values: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.linear_model import Ridge

    seen, wanted, _ = _scaled(inputs)
    for c in strengths:
        yield Ridge(alpha=1 / c).fit(seen, values).predict(wanted)


def _linear_svm(inputs: Inputs, labels: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.svm import LinearSVC

    seen, wanted, _ = _scaled(inputs)
    for c in strengths:
        model = LinearSVC(C=c, max_iter=10_000, random_state=0).fit(seen, labels)
        yield by_class(model.decision_function(wanted))


def _linear_svr(inputs: Inputs, values: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.svm import LinearSVR

    return _each_target(_scaled(inputs), values, strengths, lambda c: LinearSVR(C=c, max_iter=10_000, random_state=0))


def _svm(inputs: Inputs, labels: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.svm import SVC

    unit = inputs.seen.trace() / len(labels) or 1.0
    for c in strengths:
        # The random state does not change the result; without one, scikit-learn uses NumPy's global generator.
        model = SVC(C=c / unit, kernel="precomputed", random_state=0).fit(inputs.seen, labels)
        yield by_class(model.decision_function(inputs.wanted))


def _kernel_ridge(inputs: Inputs, values: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.kernel_ridge import KernelRidge

    unit = inputs.seen.trace() / len(values) or 1.0
    mean = values.mean(0)
    for c in strengths:
        model = KernelRidge(alpha=unit / c, kernel="precomputed").fit(inputs.seen, values - mean)
        yield model.predict(inputs.wanted) + mean


def _rbf(inputs: Inputs, width: float) -> Inputs:
    """Return the Gaussian kernel; its width is in units of the root mean squared distance of two training graphs."""
    diagonal = inputs.seen.diagonal()
    assert inputs.own is not None
    seen = np.maximum(diagonal[:, None] + diagonal - 2 * inputs.seen, 0)
    wanted = np.maximum(inputs.own[:, None] + diagonal - 2 * inputs.wanted, 0)
    unit = 2 * width**2 * (seen.mean() or 1.0)
    return Inputs(np.exp(-seen / unit), np.exp(-wanted / unit), np.ones(len(wanted)))


def _svm_rbf(
    inputs: Inputs, labels: np.ndarray, strengths: Sequence[float], seed: int, width: float = 1.0
) -> Iterator[np.ndarray]:
    return _svm(_rbf(inputs, width), labels, strengths, seed)


def _svr_rbf(
    inputs: Inputs, values: np.ndarray, strengths: Sequence[float], seed: int, width: float = 1.0
) -> Iterator[np.ndarray]:
    from sklearn.svm import SVR

    return _each_target(_rbf(inputs, width), values, strengths, lambda c: SVR(C=c, kernel="precomputed"))


def _forest(inputs: Inputs, labels: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.ensemble import RandomForestClassifier

    seen, wanted = (_narrow(some) for some in inputs[:2])
    for leaf in strengths:
        model = RandomForestClassifier(TREES, min_samples_leaf=int(leaf), random_state=seed).fit(seen, labels)
        yield np.log(np.maximum(model.predict_proba(wanted), 0.5 / TREES))  # no tree may be for a class


def _forest_numbers(inputs: Inputs, values: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.ensemble import RandomForestRegressor

    seen, wanted = (_narrow(some) for some in inputs[:2])
    target = values[:, 0] if values.shape[1] == 1 else values
    for leaf in strengths:
        model = RandomForestRegressor(TREES, min_samples_leaf=int(leaf), max_features=1 / 3, random_state=seed)
        yield model.fit(seen, target).predict(wanted)


def _boosting(inputs: Inputs, labels: np.ndarray, strengths: Sequence[float], seed: int) -> Iterator[np.ndarray]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    seen, wanted = (_dense(some) for some in inputs[:2])
    model = HistGradientBoostingClassifier(max_iter=int(max(strengths)), early_stopping=False, random_state=0)
    stages = list(model.fit(seen, labels).staged_decision_function(wanted))
    for iterations in strengths:
        yield by_class(stages[int(iterations) - 1])


def _boosting_numbers(
    inputs: Inputs, values: np.ndarray, strengths: Sequence[float], seed: int
) -> Iterator[np.ndarray]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    seen, wanted = (_dense(some) for some in inputs[:2])
    targets = []
    for target in values.T:
        model = HistGradientBoostingRegressor(max_iter=int(max(strengths)), early_stopping=False, random_state=0)
        targets.append(list(model.fit(seen, target).staged_predict(wanted)))
    for iterations in strengths:
        yield np.stack([stages[int(iterations) - 1] for stages in targets], axis=1)


def _each_target(
    inputs: Inputs, values: np.ndarray, strengths: Sequence[float], make: Callable[[float], Any]
) -> Iterator[np.ndarray]:
    """Fit a model to each target, standardized over the training graphs, since the strength depends on its unit."""
    mean = values.mean(0)
    unit = values.std(0)
    unit = np.where(unit > 0, unit, 1.0)
    for strength in strengths:
        found = [make(strength).fit(inputs.seen, one).predict(inputs.wanted) for one in ((values - mean) / unit).T]
        yield np.stack(found, axis=1) * unit + mean


def _narrow(features: Any) -> Any:
    """Return features for trees, which accept no sparse matrix with 64-bit indices."""
    from scipy.sparse import csr_matrix, issparse

    if not issparse(features):
        return features
    features = features.tocsr()
    parts = (features.data, features.indices.astype(np.int32), features.indptr.astype(np.int32))
    return csr_matrix(parts, shape=features.shape)


def _dense(features: Any) -> Any:
    from scipy.sparse import issparse

    return features.toarray() if issparse(features) else features


def _same(classes: str, numbers: str) -> Mapping[Task, str]:
    return {"classification": classes, "multi-label": classes, "regression": numbers}


LEARNERS = {
    learner.name: learner
    for learner in (
        Learner(
            "prior",
            "nothing",
            {
                "classification": ": the most frequent class of the training graphs",
                "multi-label": ": the share of each label among the training graphs",
                "regression": ": the mean of the training graphs",
            },
            _prior,
            _mean,
            strength="",
            strengths=(1.0,),
        ),
        Learner(
            "logistic",
            "features",
            _same("; logistic regression", "; ridge regression"),
            _logistic,
            _ridge,
            strengths=(0.01, 0.1, 1.0, 10.0),
        ),
        Learner(
            "linear-svm",
            "features",
            _same("; linear SVM", "; linear SVM regression"),
            _linear_svm,
            _linear_svr,
            strengths=(0.001, 0.01, 0.1, 1.0),
        ),
        Learner("svm", "kernel", _same("; SVM", "; kernel ridge"), _svm, _kernel_ridge),
        Learner(
            "svm-rbf",
            "kernel",
            _same("; SVM with a Gaussian kernel", "; SVM regression with a Gaussian kernel"),
            _svm_rbf,
            _svr_rbf,
            options=("width",),
        ),
        Learner(
            "forest",
            "features",
            _same("; random forest", "; random forest"),
            _forest,
            _forest_numbers,
            strength="leaf",
            strengths=(1, 2, 4, 8),
            chance=True,
        ),
        Learner(
            "boosting",
            "features",
            _same("; gradient boosting", "; gradient boosting"),
            _boosting,
            _boosting_numbers,
            strength="iterations",
            strengths=(25, 50, 100, 200),
        ),
    )
}
"""The learners by name. ``C`` of a kernel is for one whose mean diagonal entry over the training graphs is 1; ``leaf``
is the least number of graphs in a leaf of a tree, and ``iterations`` the number of boosting rounds."""
