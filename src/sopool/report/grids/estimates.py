"""What a classifier is expected to reach."""

from collections.abc import Mapping
from typing import Any

from sopool.report.grid import NONE, Cell, Grid, accuracy_cell

ROUNDING = 1e-9
NAMES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "roc_auc": "ROC-AUC"}


def estimate_grid(figures: Mapping[str, Any]) -> Grid:
    """Show the figures that cross-validation gave: means and deviations over the folds, in per cent."""
    rows = []
    for measure, name in NAMES.items():
        mean, std = (figures[measure][what] for what in ("mean", "std"))
        rows.append([Cell(name), NONE if mean is None else accuracy_cell(mean, std)])
    rows.append([Cell("accuracy of the most frequent class"), accuracy_cell(figures["largest_class"], None)])
    return Grid(
        f"Estimate by {figures['folds']}-fold cross-validation, per cent",
        ["", "on unseen graphs"],
        rows,
        notes=[
            "Mean ± standard deviation (ddof=0) over the test folds. Balanced accuracy: the mean over classes of the "
            "share found of each. ROC-AUC: 50 is chance; with several classes the mean of one against the rest."
        ],
    )


def no_better(figures: Mapping[str, Any], balanced: bool) -> str:
    """Say that a model is no better than one that knows nothing; return nothing where it is better.

    ``balanced``: all classes count alike, so accuracy is not what was sought; naming one class finds all of it, and
    none of the others.
    """
    measure = "balanced_accuracy" if balanced else "accuracy"
    mean = figures[measure]["mean"]
    least = 1 / figures["classes"] if balanced else figures["largest_class"]
    if mean is None or mean > least + ROUNDING:
        return ""
    return (
        "This model has not been shown to be better than always naming the most frequent class: its "
        f"{NAMES[measure]} is {100 * mean:.1f} % against {100 * least:.1f} %."
    )
