"""Compare poolings across data sets: ranks, their critical difference, and tests that were declared beforehand.

J. Demsar. Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from sopool._files.schema import SHARE, mapping_of, number, optional, record, text, tuple_of, whole

LEVEL = 0.05
"""The significance level."""
FEW = 5
"""The largest number of data sets for which the Friedman test's chi-squared approximation is too inaccurate."""
ALL_SIGNS = 13
"""The largest number of differences for which all combinations of signs are tried."""

ScoresByName = Mapping[str, Mapping[str, float]]
"""Accuracies by row and data set."""


class Declared(NamedTuple):
    """Wilcoxon's signed-rank test of one row against another, over data sets."""

    row: str
    """The name of the row."""
    against: str
    """The name of the row it is compared with."""
    datasets: int
    """The number of data sets."""
    median: float
    """The median of the differences, first row minus second."""
    p: float
    """The two-sided p-value."""
    holm: float
    """The p-value adjusted for all declared comparisons of the table."""
    lowest: float
    """The smallest p-value that is possible with so many data sets."""


@dataclass(frozen=True)
class Across:
    """A comparison of rows over data sets under one protocol."""

    protocol: str
    """The name of the protocol."""
    datasets: tuple[str, ...]
    """The data sets on which every row has a result."""
    ranks: Mapping[str, float]
    """The mean rank of each row, 1 for the best; equal rows share theirs."""
    friedman: float | None
    """The p-value of the hypothesis that all rows are equally good; None for fewer than three rows or two data sets."""
    critical_difference: float | None
    """Nemenyi's critical difference at 5 %: the difference of mean ranks that is statistically significant."""
    declared: tuple[Declared, ...]
    """The declared comparisons."""
    notes: tuple[str, ...] = ()
    """The limits of these tests."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self) | {"declared": [one._asdict() for one in self.declared]}

    @classmethod
    def from_json(cls, saved: Any, where: str = "across") -> "Across":
        """Return the comparison that :meth:`to_json` wrote; raise ``DataError`` if ``saved`` is not one."""
        found = SAVED(saved, where)
        return cls(**found | {"declared": tuple(Declared(**one) for one in found["declared"])})


DECLARED = record(
    {
        "row": text(),
        "against": text(),
        "datasets": whole(),
        "median": number(-1, 1),
        "p": SHARE,
        "holm": SHARE,
        "lowest": SHARE,
    }
)
SAVED = record(
    {
        "protocol": text(),
        "datasets": tuple_of(text()),
        "ranks": mapping_of(number(0)),
        "friedman": optional(SHARE),
        "critical_difference": optional(number(0)),
        "declared": tuple_of(DECLARED),
        "notes": tuple_of(text()),
    }
)


def compare_across(protocol: str, scores: ScoresByName, pairs: Sequence[tuple[str, str]]) -> Across:
    """Rank all rows, and test the declared ``pairs``, each over the data sets that both rows have.

    Args:
        protocol: The name of the protocol.
        scores: The accuracy of each row on each data set.
        pairs: The rows to test against each other.

    Examples:
        >>> from sopool.experiments.statistics import compare_across
        >>> scores = {"sum": {"A": 0.5, "B": 0.6, "C": 0.7}, "sopool": {"A": 0.6, "B": 0.7, "C": 0.6}}
        >>> found = compare_across("fair", scores, pairs=[("sopool", "sum")])
        >>> {name: round(rank, 2) for name, rank in found.ranks.items()}
        {'sum': 1.67, 'sopool': 1.33}
    """
    every = list(dict.fromkeys(dataset for row in scores.values() for dataset in row))
    shared = [dataset for dataset in every if all(dataset in row for row in scores.values())]
    table = np.array([[row[dataset] for row in scores.values()] for dataset in shared])
    usable = len(shared) >= 2
    return Across(
        protocol=protocol,
        datasets=tuple(shared),
        ranks=mean_ranks(table, list(scores)) if shared else {},
        friedman=friedman(table) if usable and len(scores) >= 3 else None,
        critical_difference=critical_difference(len(scores), len(shared)) if usable and len(scores) >= 2 else None,
        declared=declared_tests(scores, [pair for pair in pairs if set(pair) <= set(scores)]),
        notes=tuple(_notes(every, shared)),
    )


def mean_ranks(table: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Return the mean rank of each row of ``table`` ``[data sets, rows]``."""
    from scipy.stats import rankdata  # imported here to keep the start of the command line fast

    ranks = rankdata(-table.round(12), axis=1).mean(0)
    return dict(zip(names, (float(rank) for rank in ranks), strict=True))


def friedman(table: np.ndarray) -> float:
    """Return the p-value of Friedman's test for ``table`` ``[data sets, rows]``; 1 if all rows are equal everywhere."""
    from scipy.stats import friedmanchisquare

    table = table.round(12)
    if (table == table[:, :1]).all():
        return 1.0
    return float(friedmanchisquare(*table.T).pvalue)


def critical_difference(lines: int, datasets: int) -> float:
    r"""Return Nemenyi's critical difference :math:`q \sqrt{k (k + 1) / 6 N}` for k rows and N data sets.

    q is a quantile of the studentized range distribution.
    """
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - LEVEL, lines, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(lines * (lines + 1) / (6 * datasets)))


def declared_tests(scores: ScoresByName, pairs: Sequence[tuple[str, str]]) -> tuple[Declared, ...]:
    """Apply Wilcoxon's test to each pair, with Holm's adjustment for the number of pairs."""
    differences = {}
    for row, against in pairs:
        both = [dataset for dataset in scores[row] if dataset in scores[against]]
        if both:
            found = np.array([scores[row][one] - scores[against][one] for one in both])
            differences[row, against] = found.round(12)
    values = [signed_rank_test(some) for some in differences.values()]
    return tuple(
        Declared(row, against, len(some), float(np.median(some)), p, adjusted, 2.0 ** (1 - len(some)))
        for ((row, against), some), p, adjusted in zip(differences.items(), values, holm(values), strict=True)
    )


def signed_rank_test(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, without differences of 0.

    It is exact even if ranks are shared, since all signs are tried. Their number doubles with each difference, so for
    many
    differences scipy's test is used, which is exact if no ranks are shared.
    """
    from scipy.stats import permutation_test, rankdata, wilcoxon

    counted = differences[differences != 0]
    if len(counted) < 2:
        return 1.0
    if len(counted) > ALL_SIGNS:
        return float(wilcoxon(counted).pvalue)
    signed = np.sign(counted) * rankdata(np.abs(counted))
    found = permutation_test(
        (signed,), lambda x, axis: x.sum(axis), permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    return float(found.pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down adjustment (Scandinavian Journal of Statistics 6, 1979)."""
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.asarray(values, np.float64)[order] * factors))
    return [float(p) for p in adjusted]


def _notes(every: Sequence[str], shared: Sequence[str]) -> list[str]:
    notes = []
    left_out = [dataset for dataset in every if dataset not in shared]
    if left_out:
        notes.append(f"Ranks do not include {', '.join(left_out)}, where some poolings have no result.")
    if len(shared) < 2:
        notes.append("Ranks and tests over data sets need at least two data sets with results of all poolings.")
    elif len(shared) <= FEW:
        notes.append(f"{len(shared)} data sets are too few for the Friedman test and the critical difference.")
    if every and 2.0 ** (1 - len(every)) > LEVEL:
        notes.append(
            f"Wilcoxon's test cannot reach p = {LEVEL:g} on {len(every)} data set{'s' if len(every) > 1 else ''}: its "
            f"smallest p there is {2.0 ** (1 - len(every)):.3g}. At least 6 data sets are needed."
        )
    return notes
