"""Objectives: what a model predicts of a graph, how its errors are counted, and which result is better."""

from sopool.objectives.base import LOSSES, TASKS, Combined, Loss, Objective, Task
from sopool.objectives.choose import objective_for, truth_of
from sopool.objectives.metrics import METRICS, Metric
from sopool.objectives.multi_label import MultiLabel
from sopool.objectives.regression import Regression
from sopool.objectives.single_label import SingleLabel

__all__ = [
    "LOSSES",
    "METRICS",
    "TASKS",
    "Combined",
    "Loss",
    "Metric",
    "MultiLabel",
    "Objective",
    "Regression",
    "SingleLabel",
    "Task",
    "objective_for",
    "truth_of",
]
