"""The results of an evaluation: what each pooling reached, and how the poolings compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sopool.errors import DataError, SettingError
from sopool.experiments.comparison import Comparison, corrected_paired_test
from sopool.models.presets import FIRST_ORDER
from sopool.training.protocols.outcome import Outcome
from sopool.training.protocols.protocols import PROTOCOLS
from sopool.training.runs.record import Run

if TYPE_CHECKING:
    from sopool.experiments.evaluation import Evaluation


@dataclass(frozen=True)
class Result:
    """One pooling under one protocol."""

    dataset: str
    network: str
    """What stands before the pooling."""
    pool: str
    outcome: Outcome
    seconds: float | None = None
    """The training time of its runs."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Data set, network and protocol: results can be compared where these are the same."""
        return self.dataset, self.network, self.outcome.protocol


class ComparedResult(NamedTuple):
    """A result beside that of the reference pooling on the same data, with the same network and protocol."""

    result: Result
    reference: Result
    comparison: Comparison
    """The corrected paired test; positive differences mean that ``result`` is better."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; accuracies are fractions."""
        dataset, network, protocol = self.result.place
        names = {"dataset": dataset, "network": network, "protocol": protocol}
        pools = {"pool": self.result.pool, "reference": self.reference.pool}
        return names | pools | self.comparison.to_json()


class EvaluationResults(tuple["Evaluation", ...]):
    """What :meth:`~sopool.experiments.Evaluator.evaluate` found: an :class:`Evaluation` for each pooling, in order."""

    __slots__ = ()

    def results(self) -> list[Result]:
        """Return one result for each pooling and each protocol that it could be judged by."""
        return [
            Result(one.dataset, one.network, one.pool, outcome, _seconds(one, protocol))
            for one in self
            for protocol, outcome in one.outcomes.items()
        ]

    def compare(self, reference: str | None = None) -> list[ComparedResult]:
        """Test each pooling against a reference pooling on the same folds.

        Args:
            reference: One of the evaluated poolings; if left out, the first first-order pooling, else the first of all.

        Returns:
            One comparison for each other pooling and each protocol that the reference has a result under.
        """
        pools = [one.pool for one in self]
        if reference is not None and reference not in pools:
            raise SettingError(f"reference {reference!r} is not among the evaluated poolings: {', '.join(pools)}.")
        if not pools:
            return []
        against = reference or default_reference(pools)
        rows = self.results()
        judged = {row.outcome.protocol for row in rows if row.pool == against}
        return compare([row for row in rows if row.outcome.protocol in judged], against)

    def reported_runs(self, protocol: str) -> dict[str, Sequence[Run]]:
        """Return the runs that a protocol reports, by pooling: the final ones, or those of the best setting."""
        looks = PROTOCOLS[protocol].looks[-1]
        found: dict[str, Sequence[Run]] = {}
        for one in self:
            if protocol not in one.outcomes:
                continue
            setting = one.outcomes[protocol].setting
            runs = one.runs[looks]
            found[one.pool] = runs if looks == "chosen" else [run for run in runs if run.config.setting == setting]
        return found

    def to_json(self) -> list[dict[str, Any]]:
        """Return a JSON object for each pooling; accuracies are fractions."""
        return [one.to_json() for one in self]


def default_reference(pools: Sequence[str]) -> str:
    """Return the pooling that the others are compared with: the first first-order pooling, else the first of all."""
    return next((pool for pool in pools if pool in (*FIRST_ORDER, "sum-avg")), pools[0])


def compare(rows: Sequence[Result], reference: str) -> list[ComparedResult]:
    """Test each result of another pooling against that of ``reference`` where all else is the same."""
    against = {row.place: row for row in rows if row.pool == reference}
    found = []
    for row in rows:
        if row.pool == reference:
            continue
        place = ", ".join(row.place)
        if row.place not in against:
            raise DataError(f"{row.pool} cannot be compared with {reference}: there is no result of it on {place}.")
        other = against[row.place]
        folds = len(row.outcome.folds)
        if len(other.outcome.folds) != folds:
            counts = f"{folds} and {len(other.outcome.folds)}"
            raise DataError(f"{row.pool} and {reference} have {counts} folds on {place}: they must be the same.")
        found.append(ComparedResult(row, other, corrected_paired_test(row.outcome.folds, other.outcome.folds, folds)))
    return found


def _seconds(evaluation: "Evaluation", protocol: str) -> float:
    runs = [run for looks in PROTOCOLS[protocol].looks for run in evaluation.runs.get(looks, [])]
    return float(sum(np.nansum(run.curves["seconds"]) for run in runs))
