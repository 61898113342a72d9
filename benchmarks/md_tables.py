"""Tables for the pages under docs/results."""

from collections.abc import Sequence

import numpy as np

from sopool.experiments.comparison import Comparison


def head(*names: str) -> tuple[str, str]:
    """The first two lines of a table."""
    return line(*names), "|" + "---|" * len(names)


def line(*cells: str) -> str:
    """One line of a table."""
    return "| " + " | ".join(cells) + " |"


def spread(mean: float, deviation: float) -> str:
    """Per cent."""
    return f"{100 * mean:.1f} ± {100 * deviation:.1f}"


def spread_of(folds: Sequence[float]) -> str:
    """Per cent: the mean of folds and their deviation, ddof = 0."""
    return spread(float(np.mean(folds)), float(np.std(folds)))


def gain(test: Comparison, bold: bool = False) -> str:
    """In points, with its interval; bold if asked for and the interval leaves out 0."""
    mark = "**" if bold and (test.low > 0 or test.high < 0) else ""
    return f"{mark}{100 * test.difference:+.1f}{mark} ({100 * test.low:+.1f} to {100 * test.high:+.1f})"
