"""The scikit-learn face: a classifier of graphs, its model files, an honest estimate, predictions in a stream."""

from sopool.estimator.classifier import GraphClassifier, Prediction
from sopool.estimator.fitting import FitProgress
from sopool.estimator.validation import SingleGraphWarning, UnseenWarning
from sopool.models.explain.explanation import Explanation, Margin, NamedPair

__all__ = [
    "Explanation",
    "FitProgress",
    "GraphClassifier",
    "Margin",
    "NamedPair",
    "Prediction",
    "SingleGraphWarning",
    "UnseenWarning",
]
