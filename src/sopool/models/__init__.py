"""Classifiers of graphs, assembled from the layers and readouts of :mod:`sopool.nn`."""

from sopool.models.config import ModelConfig
from sopool.models.flat import FlatClassifier
from sopool.models.stack import stack

__all__ = ["FlatClassifier", "ModelConfig", "stack"]
