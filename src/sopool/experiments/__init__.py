"""Experiments: cross-validation of poolings, grids of hyperparameters, comparisons and statistics."""

from sopool._runtime.packages import EXTRAS, require

require("sopool.experiments", *EXTRAS["estimator"])

from sopool.experiments.comparison import corrected_paired_test
from sopool.experiments.evaluation import Evaluation, Evaluator, Request, make_grid
from sopool.experiments.results import ComparedResult, EvaluationResults, Result
from sopool.models.presets import POOLS, model_config

__all__ = [
    "POOLS",
    "ComparedResult",
    "Evaluation",
    "EvaluationResults",
    "Evaluator",
    "Request",
    "Result",
    "corrected_paired_test",
    "make_grid",
    "model_config",
]
