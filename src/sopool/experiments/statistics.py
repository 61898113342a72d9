"""Across data sets: ranks, their critical difference, and the comparisons that were declared beforehand.

J. Demsar. Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from sopool._files.schema import SHARE, mapping_of, number, optional, record, text, tuple_of, whole

LEVEL = 0.05
FEW = 5
"""Data sets up to which the Friedman test's chi-squared approximation is too rough to be read."""
ALL_SIGNS = 13
"""Differences up to which all their signs are tried."""

ScoresByName = Mapping[str, Mapping[str, float]]
"""Accuracy by line and data set."""


class Declared(NamedTuple):
    """Wilcoxon's signed-rank test of one line against another, over data sets."""

    row: str
    against: str
    datasets: int
    median: float
    """Of the differences, the first less the second."""
    p: float
    """Two-sided."""
    holm: float
    """The same, adjusted for all declared comparisons of the table."""
    lowest: float
    """The smallest p that so many data sets can give."""


@dataclass(frozen=True)
class Across:
    """Lines compared over data sets under one protocol."""

    protocol: str
    datasets: tuple[str, ...]
    """Those where every line has a figure."""
    ranks: Mapping[str, float]
    """Mean rank of each line, 1 the best; lines that are equal share theirs."""
    friedman: float | None
    """p of the hypothesis that all lines are equally good; None for fewer than three lines or two data sets."""
    critical_difference: float | None
    """Nemenyi's, at 5 %: mean ranks that are closer cannot be told apart."""
    declared: tuple[Declared, ...]
    notes: tuple[str, ...] = ()
    """What these tests cannot tell, and why."""

    def to_json(self) -> dict[str, Any]:
        """All of it, plain."""
        return asdict(self) | {"declared": [one._asdict() for one in self.declared]}

    @classmethod
    def from_json(cls, saved: Any, where: str = "across") -> "Across":
        """Return what :meth:`to_json` gave; ``DataError`` if this is something else."""
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
    """Ranks of all lines, and tests of the declared ``pairs``, each over the data sets that both lines have."""
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
    """``table`` [data sets, lines] -> the mean rank of each line."""
    from scipy.stats import rankdata  # here: the command line need not wait for it

    ranks = rankdata(-table.round(12), axis=1).mean(0)
    return dict(zip(names, (float(rank) for rank in ranks), strict=True))


def friedman(table: np.ndarray) -> float:
    """p of Friedman's test for ``table`` [data sets, lines]; 1 where all lines are equal everywhere."""
    from scipy.stats import friedmanchisquare

    table = table.round(12)
    if (table == table[:, :1]).all():
        return 1.0
    return float(friedmanchisquare(*table.T).pvalue)


def critical_difference(lines: int, datasets: int) -> float:
    r"""Nemenyi's: :math:`q \sqrt{k (k + 1) / 6 N}` for k lines and N data sets, q from the studentised range."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - LEVEL, lines, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(lines * (lines + 1) / (6 * datasets)))


def declared_tests(scores: ScoresByName, pairs: Sequence[tuple[str, str]]) -> tuple[Declared, ...]:
    """Wilcoxon's test for each pair, with Holm's adjustment for their number."""
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
    """Wilcoxon's, two-sided. Differences of 0 do not count.

    Exact also where ranks are shared, for all signs are tried; but their number doubles with each difference, so with
    many it is scipy's, which is exact where no ranks are shared.
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
    """S. Holm's step-down adjustment of p values (Scandinavian Journal of Statistics 6, 1979)."""
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.asarray(values, np.float64)[order] * factors))
    return [float(p) for p in adjusted]


def _notes(every: Sequence[str], shared: Sequence[str]) -> list[str]:
    notes = []
    left_out = [dataset for dataset in every if dataset not in shared]
    if left_out:
        notes.append(f"Ranks leave out {', '.join(left_out)}: not every line has a figure there.")
    if len(shared) < 2:
        notes.append("Over fewer than two data sets ranks tell no more than the table does, and nothing can be tested.")
    elif len(shared) <= FEW:
        notes.append(f"{len(shared)} data sets are too few for the Friedman test and the critical difference.")
    if every and 2.0 ** (1 - len(every)) > LEVEL:
        notes.append(
            f"Wilcoxon's test cannot reach p = {LEVEL:g} on {len(every)} data set{'s' if len(every) > 1 else ''}: its "
            f"smallest p there is {2.0 ** (1 - len(every)):.3g}. It takes at least 6."
        )
    return notes
