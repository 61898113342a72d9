"""Metrics by name: each scores the predictions of one target, a class or a number."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Weights = np.ndarray | None
BINS = 10
"""The number of bins of the expected calibration error."""


@dataclass(frozen=True)
class Metric:
    """A metric of predictions of one target.

    Examples:
        >>> from sopool.objectives import METRICS
        >>> METRICS["rmse"].lower_is_better, METRICS["accuracy"].tasks
        (True, ('classification', 'multi-label'))
    """

    name: str
    """The name in options and files."""
    title: str
    """The name in tables."""
    tasks: tuple[str, ...]
    """The tasks that it is for."""
    compute: Callable[[np.ndarray, np.ndarray, Weights], float | None]
    """The function of outputs, true values and weights: logits ``[n, C]`` and class numbers ``[n]``, or numbers ``[n]``
    and true numbers ``[n]``. None if the score is not defined for these graphs."""
    lower_is_better: bool = False
    """Whether a smaller score is better."""
    share: bool = True
    """Whether the score is a share that is shown in percent."""
    in_unit: bool = False
    """Whether the score has the unit of the target."""

    @property
    def sign(self) -> float:
        """1 if a larger score is better, -1 otherwise: ``sign * score`` is larger for the better one."""
        return -1.0 if self.lower_is_better else 1.0


def _accuracy(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float:
    return float(np.average(predicted_class(logits) == labels, weights=weights))


def _balanced_accuracy(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float:
    from sklearn.metrics import recall_score

    # Not balanced_accuracy_score, which warns if a class is predicted that does not occur.
    return _over_classes(recall_score, logits, labels, weights)


def _f1(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float:
    from sklearn.metrics import f1_score

    if logits.shape[1] == 2:  # of the second class, as in scikit-learn
        return float(
            f1_score(
                labels == 1, predicted_class(logits) == 1, sample_weight=weights, zero_division=0, average="binary"
            )
        )
    return _over_classes(f1_score, logits, labels, weights)


def _over_classes(score: Any, logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float:
    """Return a score of each class that occurs, averaged."""
    given = {"labels": np.unique(labels), "average": "macro", "zero_division": 0, "sample_weight": weights}
    return float(score(labels, predicted_class(logits), **given))


def _mcc(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float:
    from sklearn.metrics import matthews_corrcoef

    predicted = predicted_class(logits)
    if len(np.union1d(labels, predicted)) < 2:  # scikit-learn warns, and returns the same
        return 0.0
    return float(matthews_corrcoef(labels, predicted, sample_weight=weights))


def _roc_auc(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float | None:
    from sklearn.metrics import roc_auc_score

    return _one_against_rest(roc_auc_score, logits, labels, weights)


def _average_precision(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float | None:
    from sklearn.metrics import average_precision_score

    if logits.shape[1] != 2:
        return _one_against_rest(average_precision_score, logits, labels, weights)
    if not (labels == 1).any() or not np.isfinite(logits).all():
        return None
    return float(average_precision_score(labels == 1, logits[:, 1] - logits[:, 0], sample_weight=weights))


def _one_against_rest(score: Any, logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float | None:
    """Return a score of each class against the others, averaged; None if a class does not occur."""
    classes = logits.shape[1]
    if not np.isfinite(logits).all() or classes < 2 or len(np.unique(labels)) < classes:
        return None
    # Log-odds order graphs as the softmax does, but do not saturate at 1.0 for confident predictions.
    odds = [logits[:, i] - log_sum_exp(np.delete(logits, i, axis=1)) for i in range(classes)]
    if classes == 2 and weights is None:  # both areas are equal
        return float(score(labels == 1, odds[1]))
    return float(np.mean([score(labels == i, odds[i], sample_weight=weights) for i in range(classes)]))


def _log_loss(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float | None:
    return cross_entropy(logits, labels, weights) if np.isfinite(logits).all() else None


def _brier(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float | None:
    if not np.isfinite(logits).all():
        return None
    wrong = softmax(logits) - np.eye(logits.shape[1])[labels]
    return float(np.average(np.square(wrong).sum(1) / 2, weights=weights))


def _calibration_error(logits: np.ndarray, labels: np.ndarray, weights: Weights) -> float | None:
    if not np.isfinite(logits).all():
        return None
    shares = softmax(logits)
    sure = shares.max(1)
    each = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
    places = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(places, each * (sure - (shares.argmax(1) == labels)), BINS)
    return float(np.abs(gaps).sum() / each.sum())


def _mae(values: np.ndarray, truth: np.ndarray, weights: Weights) -> float | None:
    return _mean(np.abs(values - truth), weights)


def _rmse(values: np.ndarray, truth: np.ndarray, weights: Weights) -> float | None:
    mean = _mean(np.square(values - truth), weights)
    return None if mean is None else float(np.sqrt(mean))


def _mean(errors: np.ndarray, weights: Weights) -> float | None:
    return float(np.average(errors, weights=weights)) if np.isfinite(errors).all() else None


def _r2(values: np.ndarray, truth: np.ndarray, weights: Weights) -> float | None:
    from sklearn.metrics import r2_score

    if len(truth) < 2 or not np.isfinite(values).all():
        return None
    return float(r2_score(truth, values, sample_weight=weights))


def _spearman(values: np.ndarray, truth: np.ndarray, weights: Weights) -> float | None:
    """Return the rank correlation, which has no weights; None if all values of one side are equal."""
    from scipy.stats import spearmanr

    if len(truth) < 2 or not np.isfinite(values).all() or np.ptp(values) == 0 or np.ptp(truth) == 0:
        return None
    return float(spearmanr(values, truth).statistic)


def predicted_class(logits: np.ndarray) -> np.ndarray:
    """Return the class with the largest logit ``[n]``, the first of equal ones; -1 where logits are not finite."""
    return np.where(np.isfinite(logits).all(1), logits.argmax(1), -1)


def cross_entropy(logits: np.ndarray, labels: np.ndarray, weights: Weights = None) -> float:
    """Return the mean cross-entropy of graphs in double precision, weighted by ``weights`` ``[n]`` if given."""
    logits = logits.astype(np.float64)
    each = log_sum_exp(logits) - logits[np.arange(len(labels)), labels]
    return float(np.mean(each) if weights is None else np.average(each, weights=weights))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the probability of each class ``[n, C]``."""
    shares: np.ndarray = np.exp(logits - log_sum_exp(logits)[:, None])
    return shares


def log_sum_exp(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of the sum of exponentials of each row ``[n]``."""
    highest = x.max(1, keepdims=True)
    total: np.ndarray = highest[:, 0] + np.log(np.exp(x - highest).sum(1))
    return total


CLASSES = ("classification", "multi-label")
NUMBERS = ("regression",)
METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", CLASSES, _accuracy),
        Metric("balanced_accuracy", "balanced accuracy", CLASSES, _balanced_accuracy),
        Metric("roc_auc", "ROC-AUC", CLASSES, _roc_auc),
        Metric("average_precision", "average precision", CLASSES, _average_precision),
        Metric("f1", "F1", CLASSES, _f1),
        Metric("mcc", "MCC", CLASSES, _mcc, share=False),
        Metric("log_loss", "log loss", CLASSES, _log_loss, lower_is_better=True, share=False),
        Metric("brier", "Brier score", CLASSES, _brier, lower_is_better=True, share=False),
        Metric("calibration_error", "calibration error", CLASSES, _calibration_error, lower_is_better=True),
        Metric("mae", "MAE", NUMBERS, _mae, lower_is_better=True, share=False, in_unit=True),
        Metric("rmse", "RMSE", NUMBERS, _rmse, lower_is_better=True, share=False, in_unit=True),
        Metric("r2", "R2", NUMBERS, _r2, share=False),
        Metric("spearman", "Spearman", NUMBERS, _spearman, share=False),
    )
}
"""All metrics by name.

``balanced_accuracy`` averages the recall of the classes that occur; ``f1`` is that of the second of two classes, else
the average over the classes; ``roc_auc`` and ``average_precision`` are those of each class against the rest, averaged,
of two classes those of the second. ``brier`` is half the squared distance to the true class. ``calibration_error`` is
the expected calibration error of the predicted class's probability in ten bins of equal width.
"""
