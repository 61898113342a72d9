"""Test whether one pooling is better than another on the same folds."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """The comparison of two poolings on the same folds."""

    difference: float
    """The mean of the first pooling minus that of the second."""
    t: float
    """The test statistic; infinite if all folds differ by the same non-zero amount."""
    p: float
    """The two-sided p-value of the hypothesis that the true difference is 0, not adjusted for other comparisons."""
    low: float
    """The lower end of the 95 % confidence interval of the difference."""
    high: float
    """The upper end of the interval."""
    folds: int
    """The number of folds."""

    @property
    def clear(self) -> bool:
        """Whether the difference is statistically significant: the interval does not contain 0."""
        return self.low > 0 or self.high < 0

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; an infinite ``t`` becomes None, since JSON has no infinity."""
        return asdict(self) | {"t": self.t if np.isfinite(self.t) else None}


def corrected_paired_test(a: Sequence[float], b: Sequence[float], folds: int = 10, repeats: int = 1) -> Comparison:
    r"""Compare two cross-validations by the corrected resampled t-test of Nadeau and Bengio.

    Any two training sets share most of their graphs, so the differences :math:`d_i` of the folds are correlated, and
    the ordinary paired test is significant too often. The correction increases the variance of their mean by the ratio
    of test to training size:

    .. math:: t = \frac{\bar d}{\sqrt{\left(\frac{1}{k} + \frac{1}{k - 1}\right) s^2_d}}

    with :math:`k - 1` degrees of freedom; :math:`s^2_d` has ``ddof=1``. A cross-validation that was repeated r times
    with other folds has :math:`r k` differences; then the first :math:`1 / k` is :math:`1 / (r k)`, and there are
    :math:`r k - 1` degrees of freedom. If all differences are equal, the interval is
    a point, and p is 1 if they are 0 and 0 otherwise.

    C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.

    Args:
        a: One score for each fold; average several seeds within the folds first.
        b: The scores of the other pooling, in the same order.
        folds: The number of folds. Default: 10.
        repeats: How often the cross-validations were repeated; the scores of all of them follow one another. Default:
            1.

    Examples:
        >>> from sopool.experiments import corrected_paired_test
        >>> test = corrected_paired_test([0.75, 0.5, 0.75], [0.5, 0.5, 0.5], folds=3)
        >>> round(test.difference, 4), test.clear
        (0.1667, False)
    """
    first = np.asarray(a, np.float64)
    second = np.asarray(b, np.float64)
    count = folds * repeats
    if folds < 2 or first.shape != (count,) or second.shape != (count,) or not count:
        given = f"scores of shapes {list(first.shape)} and {list(second.shape)}"
        times = f", {repeats} times" if repeats != 1 else ""
        raise ValueError(f"{given} were given for {folds} folds{times}; expected one for each of at least 2 folds.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a score is not finite; expected finite numbers.")
    differences = first - second
    mean = float(differences.mean())
    spread = float(differences.std(ddof=1))
    # Smaller differences are rounding errors: 0.9 - 0.8 is not 0.4 - 0.3 in binary.
    rounding = 8 * np.finfo(np.float64).eps * max(np.abs(first).max(), np.abs(second).max())
    if spread <= rounding:
        equal = abs(mean) <= rounding
        mean = 0.0 if equal else mean
        return Comparison(mean, 0.0 if equal else float(np.copysign(np.inf, mean)), float(equal), mean, mean, count)
    from scipy.stats import t as student  # imported here to keep the start of the command line fast

    error = spread * np.sqrt(1 / count + 1 / (folds - 1))
    t = mean / error
    margin = float(student.ppf(0.975, count - 1) * error)
    return Comparison(mean, float(t), float(2 * student.sf(abs(t), count - 1)), mean - margin, mean + margin, count)
