"""A scikit-learn classifier of graphs: training, prediction, explanation and model files."""

from sopool._runtime.packages import EXTRAS, require

require("sopool.estimator", *EXTRAS["estimator"])

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
