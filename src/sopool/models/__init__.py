"""Classifiers of graphs, assembled from the layers and readouts of :mod:`sopool.nn`."""

from sopool.models.base import Classifier, Scored
from sopool.models.config import ModelConfig
from sopool.models.flat import FlatClassifier
from sopool.models.hierarchical import HierarchicalClassifier
from sopool.models.inference import prepare_for_inference
from sopool.models.make import extras_for, make_model
from sopool.models.stack import member_of, named_tensors, stack, stack_of

__all__ = [
    "Classifier",
    "FlatClassifier",
    "HierarchicalClassifier",
    "ModelConfig",
    "Scored",
    "extras_for",
    "make_model",
    "member_of",
    "named_tensors",
    "prepare_for_inference",
    "stack",
    "stack_of",
]
