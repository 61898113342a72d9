"""Is one pooling better than another, on the same folds?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """Two poolings on the same folds."""

    difference: float
    """Of the means, the first less the second."""
    t: float
    """Infinite where every fold differs by the same amount, other than 0."""
    p: float
    """Two-sided, that the true difference is 0; not adjusted for other comparisons."""
    low: float
    """Where the 95 % confidence interval of the difference starts."""
    high: float
    folds: int

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    def to_json(self) -> dict[str, Any]:
        """All of it; an infinite ``t`` is None, for JSON knows none."""
        return asdict(self) | {"t": self.t if np.isfinite(self.t) else None}


def corrected_paired_test(a: Sequence[float], b: Sequence[float], folds: int = 10) -> Comparison:
    r"""Nadeau and Bengio's corrected resampled t-test for one cross-validation of ``folds`` folds.

    ``a``, ``b``: one score for each fold, in the same order; several seeds are averaged within folds beforehand. Any
    two training sets share most of their graphs, so the folds' differences :math:`d_i` are correlated and the plain
    paired test finds too much. The correction widens the variance of their mean by the ratio of test to training size:

    .. math:: t = \frac{\bar d}{\sqrt{\left(\frac{1}{k} + \frac{1}{k - 1}\right) s^2_d}}

    with :math:`k - 1` degrees of freedom; :math:`s^2_d` has ``ddof=1``. Where all differences are equal the interval is
    a point, p is 1 if they are 0 and 0 if not.

    C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.
    """
    first = np.asarray(a, np.float64)
    second = np.asarray(b, np.float64)
    if folds < 2 or first.shape != (folds,) or second.shape != (folds,):
        given = f"scores of shapes {list(first.shape)} and {list(second.shape)}"
        raise ValueError(f"{given} were given for {folds} folds: one for each of at least 2 folds is needed.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a score is not finite: nothing can be compared with it.")
    differences = first - second
    mean = float(differences.mean())
    spread = float(differences.std(ddof=1))
    # Below this a difference is what rounding leaves of equal ones: 0.9 - 0.8 is not 0.4 - 0.3 in binary.
    rounding = 8 * np.finfo(np.float64).eps * max(np.abs(first).max(), np.abs(second).max())
    if spread <= rounding:
        equal = abs(mean) <= rounding
        mean = 0.0 if equal else mean
        return Comparison(mean, 0.0 if equal else float(np.copysign(np.inf, mean)), float(equal), mean, mean, folds)
    from scipy.stats import t as student  # here: the command line need not wait for it

    error = spread * np.sqrt(1 / folds + 1 / (folds - 1))
    t = mean / error
    margin = float(student.ppf(0.975, folds - 1) * error)
    return Comparison(mean, float(t), float(2 * student.sf(abs(t), folds - 1)), mean - margin, mean + margin, folds)
