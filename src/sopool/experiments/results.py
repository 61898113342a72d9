"""The results of an evaluation, and comparisons of the poolings and other systems."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sopool.data.division import split_title
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
    """The result of one pooling under one protocol.

    Examples:
        >>> from sopool.experiments import Result
        >>> from sopool.models.config import Setting
        >>> from sopool.training.protocols.protocols import Outcome
        >>> outcome = Outcome("fair", "", (0.75, 0.25), ((3,), (8,)), (Setting(),) * 2)
        >>> Result("toy", "gin-0", "sum", outcome).place
        ('toy', 'gin-0', 'fair')
    """

    dataset: str
    """The name of the data set."""
    network: str
    """The network before the pooling, as text; empty for systems that are not one."""
    pool: str
    """The name of the pooling, or of another system."""
    outcome: Outcome
    """The scores."""
    seconds: float | None = None
    """The training time of its runs in seconds."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Data set, network and protocol, which tell apart results of a pooling."""
        return self.dataset, self.network, self.outcome.protocol


class ComparedResult(NamedTuple):
    """A result and that of the reference pooling on the same data set, with the same network and protocol.

    Examples:
        >>> from sopool.experiments import ComparedResult, Result, corrected_paired_test
        >>> from sopool.models.config import Setting
        >>> from sopool.training.protocols.protocols import Outcome
        >>> def result(pool, folds):
        ...     outcome = Outcome("fair", "", folds, ((3,), (8,)), (Setting(),) * 2)
        ...     return Result("toy", "gin-0", pool, outcome)
        >>> ours, theirs = result("sopool", (0.75, 0.5)), result("sum", (0.25, 0.25))
        >>> test = corrected_paired_test(ours.outcome.folds, theirs.outcome.folds, folds=2)
        >>> ComparedResult(ours, theirs, test).to_json()["difference"]
        0.375
    """

    result: Result
    """The result."""
    reference: Result
    """The result of the reference pooling."""
    comparison: Comparison
    """The corrected paired test; a positive difference means that ``result`` is better, e.g. a lower error."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; shares such as accuracies are fractions."""
        dataset, network, protocol = self.result.place
        names = {"dataset": dataset, "network": network, "protocol": protocol}
        pools = {"pool": self.result.pool, "reference": self.reference.pool, "metric": self.result.outcome.metric}
        return names | pools | self.comparison.to_json()


class EvaluationResults(tuple["Evaluation", ...]):
    """The result of :meth:`~sopool.experiments.Evaluator.evaluate`: an :class:`Evaluation` for each pooling, in order.

    Examples:
        >>> from sopool.experiments import Evaluation, EvaluationResults, Request
        >>> from sopool.models.config import Setting
        >>> from sopool.training.protocols.protocols import Outcome
        >>> request = Request(["sopool", "sum"])
        >>> def evaluation(pool, folds):
        ...     outcome = Outcome("fair", "", folds, ((3,), (8,)), (Setting(),) * 2)
        ...     return Evaluation("toy", request, pool, {"fair": outcome}, missing={}, runs={})
        >>> found = EvaluationResults([evaluation("sopool", (0.75, 0.5)), evaluation("sum", (0.25, 0.25))])
        >>> [(one.result.pool, one.reference.pool, one.comparison.difference) for one in found.compare("sum")]
        [('sopool', 'sum', 0.375)]
    """

    __slots__ = ()

    def results(self) -> list[Result]:
        """Return one result for each pooling and each protocol that it has a result under."""
        return [
            Result(split_title(one.dataset, one.split), one.network, one.pool, outcome, _seconds(one, protocol))
            for one in self
            for protocol, outcome in one.outcomes.items()
        ]

    def compare(self, reference: str | None = None) -> list[ComparedResult]:
        """Test each pooling against a reference pooling on the same folds.

        Args:
            reference: One of the evaluated poolings. Default: None, the first first-order pooling, or the first pooling
                if
                there is none.

        Returns:
            One comparison for each other pooling and each protocol that the reference has a result under; none if there
            is a single fold.
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
        """Return the runs that a protocol reports, by pooling: the final runs, or those of the best setting."""
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
        """Return a JSON object for each pooling; shares such as accuracies are fractions."""
        return [one.to_json() for one in self]


def default_reference(pools: Sequence[str]) -> str:
    """Return the first first-order pooling, or the first pooling if there is none."""
    return next((pool for pool in pools if pool.rpartition("+")[2] in (*FIRST_ORDER, "sum-avg")), pools[0])


def compare(rows: Sequence[Result], reference: str) -> list[ComparedResult]:
    """Test each result against that of the pooling ``reference`` with the same data set, network and protocol.

    If the reference has a single result on a data set under a protocol, every result there is tested against it,
    whatever its network.
    """
    against = {row.place: row for row in rows if row.pool == reference}
    alone: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for row in against.values():
        alone[row.dataset, row.outcome.protocol].append(row)
    found = []
    for row in rows:
        if row.pool == reference:
            continue
        place = ", ".join(filter(None, row.place))
        there = alone[row.dataset, row.outcome.protocol]
        other = against.get(row.place) or (there[0] if len(there) == 1 else None)
        if other is None:
            raise DataError(
                f"{row.pool} cannot be compared with {reference}, which has no result on {place}. Evaluate both there."
            )
        folds = len(row.outcome.folds)
        if other.outcome.metric != row.outcome.metric:
            raise DataError(
                f"{row.pool} and {reference} were evaluated by {row.outcome.metric} and {other.outcome.metric} on "
                f"{place}; a comparison needs the same metric."
            )
        if len(other.outcome.folds) != folds:
            counts = f"{folds} and {len(other.outcome.folds)}"
            raise DataError(
                f"{row.pool} and {reference} have {counts} folds on {place}; a comparison needs the same folds."
            )
        if folds < 2:
            continue  # a difference on one test set has no spread to compare it with
        test = corrected_paired_test(row.outcome.signed, other.outcome.signed, folds)
        found.append(ComparedResult(row, other, test))
    return found


def _seconds(evaluation: "Evaluation", protocol: str) -> float:
    runs = [run for looks in PROTOCOLS[protocol].looks for run in evaluation.runs.get(looks, [])]
    return float(sum(np.nansum(run.curves["seconds"]) for run in runs))
