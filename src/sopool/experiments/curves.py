"""Learning curves over folds, as numbers."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sopool.training.runs.record import Run


class Band(NamedTuple):
    """A score over epochs: the mean over the folds and the 10 % and 90 % quantiles."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def band(runs: Sequence[Run], curve: str) -> Band:
    """Return the mean and the spread over folds of one of the runs' curves; NaN where no fold reached an epoch."""
    longest = max(len(run.curves[curve]) for run in runs)
    folds: dict[int, list[np.ndarray]] = {}
    for run in runs:
        values = np.full(longest, np.nan)
        values[: len(run.curves[curve])] = run.curves[curve]
        folds.setdefault(run.config.fold, []).append(values)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice|All-NaN slice", RuntimeWarning)
        table = np.stack([np.nanmean(same, axis=0) for same in folds.values()])
        low, high = np.nanquantile(table, (0.1, 0.9), axis=0)
        return Band(np.nanmean(table, axis=0), low, high)
