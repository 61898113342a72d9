"""What a classifier is expected to reach, as text for the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

ROUNDING = 1e-9
NAMES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "roc_auc": "ROC-AUC"}


def estimate_table(figures: Mapping[str, Any]) -> Table:
    """The figures that cross-validation gave: means and deviations over the folds, in per cent."""
    table = Table(title=f"Estimate by {figures['folds']}-fold cross-validation, per cent", caption_justify="left")
    table.add_column("")
    table.add_column("on unseen graphs", justify="right")
    for measure, name in NAMES.items():
        mean, std = (figures[measure][what] for what in ("mean", "std"))
        table.add_row(name, "-" if mean is None else f"{100 * mean:.1f} +- {100 * std:.1f}")
    table.add_row("accuracy of the most frequent class", f"{100 * figures['largest_class']:.1f}")
    table.caption = (
        "Mean +- standard deviation (ddof=0) over the test folds. Balanced accuracy: the mean over classes of the "
        "share found of each. ROC-AUC: 50 is chance; with several classes the mean of one against the rest."
    )
    return table


def no_better(figures: Mapping[str, Any], balanced: bool) -> str:
    """What to say of a model that is no better than one that knows nothing; nothing where it is.

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
