"""How good scores are, given the true classes."""

from typing import Any, TypedDict

import numpy as np


class Scores(TypedDict):
    """What :func:`score` gives: fractions, not percentages."""

    accuracy: float
    balanced_accuracy: float
    roc_auc: float | None
    loss: float | None


def score(logits: Any, labels: Any) -> Scores:
    """Scores of ``logits`` [n, classes] against ``labels`` [n] (numbers of classes), in float64.

    - ``accuracy``: the largest logit is the prediction; the first among equals.
    - ``balanced_accuracy``: the mean over the classes that occur of the fraction found of each.
    - ``roc_auc``: the mean over classes of the area under the curve of one class against the rest. With two classes it
      is the usual one. None where a class does not occur in ``labels``.
    - ``loss``: the mean cross-entropy, natural logarithm.

    A graph whose logits are not finite counts as wrongly predicted; ``roc_auc`` and ``loss`` are None then.
    """
    from sklearn.metrics import accuracy_score, recall_score

    logits, labels = _checked(logits, labels)
    finite = np.isfinite(logits).all(1)
    predicted = np.where(finite, logits.argmax(1), -1)
    present = np.unique(labels)
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        # Not balanced_accuracy_score: it warns where a class is predicted that does not occur.
        "balanced_accuracy": float(recall_score(labels, predicted, labels=present, average="macro", zero_division=0)),
        "roc_auc": _roc_auc(logits, labels) if finite.all() and 1 < logits.shape[1] == len(present) else None,
        "loss": cross_entropy(logits, labels) if finite.all() else None,
    }


def _checked(logits: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    logits = np.asarray(logits, np.float64)
    labels = np.asarray(labels)
    if logits.ndim != 2 or labels.ndim != 1 or len(logits) != len(labels) or logits.size == 0:
        shapes = f"logits {list(logits.shape)} and labels {list(labels.shape)}"
        raise ValueError(f"{shapes} were given, expected [n, classes] and [n] with at least one graph.")
    if labels.min() < 0 or labels.max() >= logits.shape[1]:
        given = f"from {labels.min()} to {labels.max()}"
        raise ValueError(f"labels {given} were given for logits of {logits.shape[1]} classes, counted from 0.")
    return logits, labels


def _roc_auc(logits: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    # By log-odds, which order graphs as the softmax does but do not all end at 1.0 where the network is sure.
    areas = []
    for i in range(logits.shape[1]):
        odds = logits[:, i] - _log_sum_exp(np.delete(logits, i, axis=1))
        areas.append(roc_auc_score(labels == i, odds))
    return float(np.mean(areas))


def cross_entropy(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The mean over graphs, by ``weights`` [n] if given; natural logarithm, in float64 whatever the logits are."""
    logits = logits.astype(np.float64)
    each = _log_sum_exp(logits) - logits[np.arange(len(labels)), labels]
    return float(np.mean(each) if weights is None else np.average(each, weights=weights))


def _log_sum_exp(x: np.ndarray) -> np.ndarray:
    highest = x.max(1, keepdims=True)
    total: np.ndarray = highest[:, 0] + np.log(np.exp(x - highest).sum(1))
    return total
