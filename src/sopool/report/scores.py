"""How scores are written: shares in percent, and other scores with as many digits as their spread justifies."""

import math
from collections.abc import Iterable

from sopool.experiments.comparison import Comparison
from sopool.objectives import METRICS
from sopool.report.grid import Cell, accuracy_cell, interval_words, p_cell, points, points_cell
from sopool.training.protocols.outcome import Outcome

OF_SPREAD, ALONE, MOST = 2, 3, 6
"""The significant digits of a spread, of a number without one, and at most of a number."""
OVER_FOLDS = "mean ± standard deviation (ddof=0) over the test folds; the runs of a fold are averaged first."


def title_of(metric: str) -> str:
    """Return the name of a metric as the title of a column, such as ``ROC-AUC``."""
    return METRICS[metric].title


def axis_of(metric: str) -> str:
    """Return the title of an axis, with the unit of what :func:`scaled` returns."""
    return f"{title_of(metric)}{', %' * METRICS[metric].share}"


def scaled(metric: str) -> float:
    """Return by what a score is multiplied before it is shown: 100 for shares, which are shown in percent."""
    return 100.0 if METRICS[metric].share else 1.0


def score_cell(metric: str, mean: float, std: float | None = None) -> Cell:
    """Show a score by a metric, with its spread if that is known."""
    return accuracy_cell(mean, std) if METRICS[metric].share else Cell(number_text(mean, std), mean)


def mean_cell(outcome: Outcome) -> Cell:
    """Show the mean score over the folds with its spread, which a single test set does not have."""
    return score_cell(outcome.metric, outcome.mean, outcome.std if len(outcome.folds) > 1 else None)


def score_text(metric: str, mean: float) -> str:
    """Write a score by a metric without a spread, with its unit."""
    return f"{score_cell(metric, mean).text}{' %' * METRICS[metric].share}"


def number_text(mean: float, std: float | None = None) -> str:
    """Write a number, and its spread with the same number of decimals.

    Examples:
        >>> from sopool.report.scores import number_text
        >>> number_text(0.65432, 0.03123), number_text(123.4, 5.67), number_text(0.65432)
        ('0.654 ± 0.031', '123.4 ± 5.7', '0.654')
    """
    size = max(abs(mean), std or 0.0)
    if size and not 1e-4 <= size < 1e6:
        return f"{mean:.2e}" + ("" if std is None else f" ± {std:.2e}")
    digits = decimals(mean, std)
    return f"{_written(mean, digits)}" + ("" if std is None else f" ± {_written(std, digits)}")


def decimals(number: float, spread: float | None = None) -> int:
    """Return the decimals with which a number is written, such that its spread has two significant digits."""
    own = _place(number)
    wanted = OF_SPREAD - 1 - _place(spread) if spread else ALONE - 1 - own
    return max(0, min(wanted, MOST - 1 - own))


def difference_cell(metric: str, difference: float, spread: float | None = None, strong: bool = False) -> Cell:
    """Show a difference of two scores with its sign: in points, or with digits that fit the spread."""
    if METRICS[metric].share:
        return points_cell(difference, strong)
    return Cell(_signed(difference, decimals(difference, spread)), difference, strong)


def gain_cells(metric: str, test: Comparison) -> list[Cell]:
    """Show what a paired test found; the gain is strong where the interval does not contain 0."""
    if METRICS[metric].share:
        gain = points(test.difference)
        interval = interval_words(test)
    else:
        digits = decimals(test.difference, (test.high - test.low) / 2)
        gain = _signed(test.difference, digits)
        interval = f"{test.low:+,.{digits}f} to {test.high:+,.{digits}f}"
    return [Cell(gain, test.difference, test.clear), Cell(interval, test.low), p_cell(test.p)]


def gain_columns(metrics: Iterable[str]) -> list[str]:
    """Return the titles of the columns of :func:`gain_cells`."""
    return [f"gain{in_points(metrics, ',' + chr(10))}", "95 % interval", "p"]


def in_points(metrics: Iterable[str], before: str = ", in ") -> str:
    """Return the unit of differences for a title, if all of them are in points."""
    return f"{before}points" if all(METRICS[metric].share for metric in metrics) else ""


def gain_of(metric: str) -> str:
    """Return what a gain is for metrics where a lower score is better, for a title; otherwise nothing."""
    return f"reduction of the {title_of(metric)}" if METRICS[metric].lower_is_better else ""


def spread_note(metrics: Iterable[str]) -> str:
    """Return the note that says what the scores of a table are."""
    shares = {METRICS[metric].share for metric in metrics}
    if False not in shares:
        return f"Percent: {OVER_FOLDS}"
    return f"{'Shares in percent, ' if True in shares else ''}{OVER_FOLDS}".capitalize()


def _written(number: float, digits: int) -> str:
    """Write a number; what rounds to 0 has no minus."""
    return f"{round(number, digits) + 0.0:,.{digits}f}"


def _signed(number: float, digits: int) -> str:
    return f"{round(number, digits) + 0.0:+,.{digits}f}"


def _place(number: float) -> int:
    """Return the decimal place of the first digit of a number: 0 for 1 to 9, -1 for 0.1; 0 for 0."""
    return math.floor(math.log10(abs(number))) if number else 0
