"""Plan a reproduction: what would be trained, how much of it the store has, and about how long the rest takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sopool._runtime.threads import cores
from sopool.experiments.evaluation import Evaluator, SettingChoice
from sopool.experiments.reproduce.calibration import Calibration
from sopool.experiments.reproduce.reproducer import CellJob, Reproducer
from sopool.training.runs.config import RunConfig
from sopool.training.runs.info import RunInfo

InfosByKey = Mapping[str, RunInfo]


@dataclass(frozen=True)
class Planned:
    """The cells of one network on one data set, over all seeds."""

    dataset: str
    """The name of the data set."""
    network: str
    """The network, as text; a dash for systems."""
    pools: tuple[str, ...]
    """The names of the poolings or systems."""
    runs: int
    """The number of runs."""
    found: int
    """The number of these that are complete in the store."""
    model_epochs: int
    """The number of epochs of all runs."""
    left: int
    """The number of these that are still to train."""
    seconds: float
    """The estimated time to train them here with all workers; fixed systems are not timed."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return vars(self) | {"seconds": round(self.seconds, 1)}


def plan_reproduction(
    reproducer: Reproducer,
    device: str = "cpu",
    workers: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Planned]:
    """Return a plan for each network on each data set. A few steps are trained to estimate the time; none are stored.

    Args:
        reproducer: The reproduction to plan.
        device: ``"cpu"`` (default) or ``"cuda"``.
        workers: The number of processes on a CPU. Default: None, one for each core.
        say: Called with a message before each data set.
    """
    infos = {info.key: info for info in reproducer.runs.list()}
    side_by_side = (workers or cores()) if device == "cpu" else 1
    settings = sorted(reproducer.selection.settings)
    lines = []
    for number, (dataset, store) in enumerate(reproducer.stores.items(), 1):
        say(f"timing a few steps on {dataset} ({number} of {len(reproducer.stores)})")
        calibration = Calibration(store, settings[len(settings) // 2], device)
        networks: dict[tuple[str, ...], list[CellJob]] = {}
        for job in reproducer.jobs:
            if job.dataset == dataset:
                networks.setdefault(tuple(row.name for row in job.rows), []).append(job)
        lines += [_planned(jobs, infos, calibration, side_by_side) for jobs in networks.values()]
    return lines


def _planned(jobs: Sequence[CellJob], infos: InfosByKey, calibration: Calibration, side_by_side: int) -> Planned:
    first = jobs[0].evaluator
    request = first.request
    total = sum(job.evaluator.total_epochs for job in jobs)
    systems = bool(first.systems or first.trained)
    # Only networks are timed: kernels and other fixed systems have a path of strengths.
    waiting = [item for job in jobs for item in _waiting(job.evaluator, infos) if not item[0].path]
    known = [run for job in jobs for run in _known(job.evaluator, infos)]
    return Planned(
        dataset=jobs[0].dataset,
        network="-" if systems else request.gnn + (f", {request.blocks} blocks" if request.blocks else ""),
        pools=tuple(request.pools),
        runs=sum(job.evaluator.total_runs for job in jobs),
        found=sum(_left(run, infos) == 0 for run in known),
        model_epochs=total,
        left=total - sum(run.epochs - _left(run, infos) for run in known),
        seconds=sum(epochs * calibration.seconds(run) for run, epochs in waiting) / side_by_side,
    )


def _waiting(evaluator: Evaluator, infos: InfosByKey) -> list[tuple[RunConfig, float]]:
    """Return incomplete runs with the epochs they need.

    Final runs whose setting is not chosen yet are spread evenly over all settings.
    """
    waiting: list[tuple[RunConfig, float]] = [(run, _left(run, infos)) for run in _known(evaluator, infos)]
    for choice in evaluator.choices():
        if not _decided(choice, infos):
            share = choice.finals / len(choice.deciding)
            waiting += [(run, run.epochs * share) for run in choice.deciding]
    return [(run, epochs) for run, epochs in waiting if epochs]


def _known(evaluator: Evaluator, infos: InfosByKey) -> list[RunConfig]:
    """Return all runs whose setting is known."""
    final = [run for choice in evaluator.choices() if _decided(choice, infos) for run in choice.final()]
    return list({run.key: run for run in (*evaluator.first_runs(), *final)}.values())


def _decided(choice: SettingChoice, infos: InfosByKey) -> bool:
    return all(_left(run, infos) == 0 for run in choice.deciding)


def _left(run: RunConfig, infos: InfosByKey) -> int:
    """Return the number of epochs that a run still needs."""
    info = infos.get(run.key)
    if info is None:
        return run.epochs
    return 0 if info.is_complete else run.epochs - (info.epoch or 0)
