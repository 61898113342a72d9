"""Scikit-learn estimators of graphs: training, prediction, explanation and model files."""

from sopool._runtime.packages import EXTRAS, require

require("sopool.estimator", *EXTRAS["estimator"])

from sopool.estimator.base import GraphEstimator
from sopool.estimator.classifier import GraphClassifier, Prediction
from sopool.estimator.fitting import FitProgress
from sopool.estimator.model_file import load_model
from sopool.estimator.regressor import GraphRegressor, NumberPrediction
from sopool.estimator.validation import SingleGraphWarning, UnseenWarning
from sopool.models.explain.explanation import Decomposition, Explanation, NamedPair, TargetExplanation
from sopool.models.presets import UnusedWarning

__all__ = [
    "Decomposition",
    "Explanation",
    "FitProgress",
    "GraphClassifier",
    "GraphEstimator",
    "GraphRegressor",
    "NamedPair",
    "NumberPrediction",
    "Prediction",
    "SingleGraphWarning",
    "TargetExplanation",
    "UnseenWarning",
    "UnusedWarning",
    "load_model",
]
