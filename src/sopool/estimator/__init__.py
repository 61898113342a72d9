"""The scikit-learn face: a classifier of graphs, its model files, an honest estimate, predictions in a stream."""

from sopool.estimator.classifier import GraphClassifier, Prediction
from sopool.estimator.fitting import FitProgress
from sopool.estimator.settings import UnseenWarning

__all__ = ["FitProgress", "GraphClassifier", "Prediction", "UnseenWarning"]
