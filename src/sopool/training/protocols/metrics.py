"""Score predictions against the true classes."""

from typing import Any, TypedDict

import numpy as np


class Scores(TypedDict):
    """The result of :func:`score`, as fractions."""

    accuracy: float
    balanced_accuracy: float
    roc_auc: float | None
    loss: float | None


def score(logits: Any, labels: Any) -> Scores:
    """Score ``logits`` ``[n, classes]`` against class numbers ``labels`` ``[n]``, in double precision.

    - ``accuracy``: the prediction is the largest logit, the first one if several are equal.
    - ``balanced_accuracy``: the recall of each class that occurs, averaged.
    - ``roc_auc``: the area under the curve of each class against the rest, averaged over the classes. With two classes
      it is the usual area. None if a class does not occur in ``labels``.
    - ``loss``: the mean cross-entropy, with the natural logarithm.

    A graph whose logits are not finite counts as predicted wrongly; ``roc_auc`` and ``loss`` are None then.
    """
    from sklearn.metrics import accuracy_score, recall_score

    logits, labels = _checked(logits, labels)
    finite = np.isfinite(logits).all(1)
    predicted = np.where(finite, logits.argmax(1), -1)
    present = np.unique(labels)
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        # Not balanced_accuracy_score, which warns if a class is predicted that does not occur.
        "balanced_accuracy": float(recall_score(labels, predicted, labels=present, average="macro", zero_division=0)),
        "roc_auc": _roc_auc(logits, labels) if finite.all() and 1 < logits.shape[1] == len(present) else None,
        "loss": cross_entropy(logits, labels) if finite.all() else None,
    }


def _checked(logits: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    logits = np.asarray(logits, np.float64)
    labels = np.asarray(labels)
    if logits.ndim != 2 or labels.ndim != 1 or len(logits) != len(labels) or logits.size == 0:
        shapes = f"logits {list(logits.shape)} and labels {list(labels.shape)}"
        raise ValueError(f"{shapes} were given; expected [n, classes] and [n] with at least one graph.")
    if labels.min() < 0 or labels.max() >= logits.shape[1]:
        given = f"from {labels.min()} to {labels.max()}"
        raise ValueError(f"labels {given} were given for {logits.shape[1]} classes, which are numbered from 0.")
    return logits, labels


def _roc_auc(logits: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    # Log-odds order graphs as the softmax does, but do not saturate at 1.0 for confident predictions.
    areas = []
    for i in range(logits.shape[1]):
        odds = logits[:, i] - _log_sum_exp(np.delete(logits, i, axis=1))
        areas.append(roc_auc_score(labels == i, odds))
    return float(np.mean(areas))


def cross_entropy(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the mean cross-entropy of graphs in double precision, weighted by ``weights`` ``[n]`` if given."""
    logits = logits.astype(np.float64)
    each = _log_sum_exp(logits) - logits[np.arange(len(labels)), labels]
    return float(np.mean(each) if weights is None else np.average(each, weights=weights))


def _log_sum_exp(x: np.ndarray) -> np.ndarray:
    highest = x.max(1, keepdims=True)
    total: np.ndarray = highest[:, 0] + np.log(np.exp(x - highest).sum(1))
    return total
