"""The estimated accuracy of a classifier."""

from collections.abc import Mapping
from typing import Any

from sopool.report.grid import NONE, Cell, Grid, accuracy_cell

ROUNDING = 1e-9
NAMES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "roc_auc": "ROC-AUC"}


def estimate_grid(figures: Mapping[str, Any]) -> Grid:
    """Show the means and standard deviations over the folds of a cross-validation, in percent."""
    rows = []
    for measure, name in NAMES.items():
        mean, std = (figures[measure][what] for what in ("mean", "std"))
        rows.append([Cell(name), NONE if mean is None else accuracy_cell(mean, std)])
    rows.append([Cell("accuracy of the most frequent class"), accuracy_cell(figures["largest_class"], None)])
    return Grid(
        f"Estimate by {figures['folds']}-fold cross-validation, percent",
        ["", "on unseen graphs"],
        rows,
        notes=[
            "Mean ± standard deviation (ddof=0) over the test folds. Balanced accuracy is the mean recall over the "
            "classes. A ROC-AUC of 50 means random guessing; with several classes it is the mean over one-vs-rest."
        ],
    )


def no_better(figures: Mapping[str, Any], balanced: bool) -> str:
    """Return a sentence if a model is no better than always predicting the most frequent class, else nothing.

    With ``balanced`` class weights, balanced accuracy is compared instead of accuracy.
    """
    measure = "balanced_accuracy" if balanced else "accuracy"
    mean = figures[measure]["mean"]
    least = 1 / figures["classes"] if balanced else figures["largest_class"]
    if mean is None or mean > least + ROUNDING:
        return ""
    return (
        "This model has not been shown to be better than always predicting the most frequent class: its "
        f"{NAMES[measure]} is {100 * mean:.1f} % against {100 * least:.1f} %."
    )
