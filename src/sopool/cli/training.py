"""Training and showing an evaluation: what ``evaluate`` and ``demo`` have in common."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.console import Console

from sopool.cli.interruption import Interruption
from sopool.cli.output import say
from sopool.cli.progress import Tally, training_progress

if TYPE_CHECKING:
    from sopool.experiments.evaluation import Evaluation, Evaluator
    from sopool.experiments.executors.local import Train
    from sopool.report.terminal.results import Result
    from sopool.training.runs.record import Run
    from sopool.training.trainer import Report

Found = TypeVar("Found")


def choose_device(wanted: str, executor: str = "local") -> str:
    """``auto`` is the GPU if there is one; a ``DataError`` for a device that is not there, or not in the cluster."""
    if executor == "ray":
        from sopool.experiments.executors.ray_cluster import device_for

        return device_for(wanted)
    from sopool._runtime import devices

    return devices.choose_device(wanted)


def train(
    evaluator: "Evaluator", device: str, workers: int | None, executor: "Train"
) -> tuple[list["Evaluation"], Tally]:
    """Train what is missing, with progress. Interrupted or failed, it says so and leaves the program."""
    tally = Tally(evaluator.total_epochs, evaluator.total_epochs // evaluator.request.epochs)
    work = partial(evaluator.evaluate, device, workers, train=executor)
    return watched(work, tally, evaluator.runs.folder), tally


def watched(work: "Callable[[Report, Interruption], Found | None]", tally: Tally, folder: Path) -> Found:
    """What ``work`` finds, with progress. Interrupted (it gives None) or failed, it says so and leaves the program."""
    from sopool._runtime.processes import WorkerDiedError

    kept = "What was trained"
    with Interruption() as interruption:
        try:
            with training_progress(tally) as report:
                found = work(report, interruption)
        except WorkerDiedError as error:
            if not interruption():
                say("error", str(error))
                raise typer.Exit(1) from error
            found, kept = None, "What was saved before"  # a signal to all processes: they just went
        except KeyboardInterrupt:
            found, kept = None, "What was saved before"
    if found is None:
        say("note", f"stopped. {kept} is in {folder}: run the same command again to go on.")
        raise typer.Exit(interruption.exit_code)
    return found


def choose_executor(executor: str = "local", address: str | None = None) -> "Train":
    """``local``: this machine. ``ray``: the cluster at ``address``, joined now; a ``DataError`` if it cannot be."""
    from sopool.errors import DataError
    from sopool.experiments.executors.local import train_all

    if executor == "local":
        if address is not None:
            raise DataError(f"--address {address} is that of a Ray cluster: say --executor ray, too.")
        return train_all
    from sopool.experiments.executors.cluster import train_on_ray
    from sopool.experiments.executors.ray_cluster import connect, hush

    hush()
    connect(address or "auto")
    return partial(train_on_ray, address=address or "auto")


def results_of(evaluations: Sequence["Evaluation"]) -> list["Result"]:
    """One for each pooling and protocol, with the time that its runs took; a warning for each that there is none of."""
    from sopool.errors import DataError
    from sopool.report.terminal.results import Result

    for one in evaluations:
        for why in one.missing.values():
            say("warning", f"{one.pool}: {why}")
    if not any(one.outcomes for one in evaluations):
        raise DataError("there is no result to show: no pooling could be judged.")
    return [
        Result(one.dataset, one.network, one.pool, outcome, _seconds(one, protocol))
        for one in evaluations
        for protocol, outcome in one.outcomes.items()
    ]


def show_results(results: Sequence["Result"], reference: str, console: Console, said: Sequence[str] = ()) -> None:
    """The tables, with what is to be ``said`` below; the second one only of what has something to compare with."""
    from sopool.report.terminal.results import comparison_table, results_table

    console.print(results_table(results, said))
    known = {result.outcome.protocol for result in results if result.pool == reference}
    compared = [result for result in results if result.outcome.protocol in known]
    if len({result.pool for result in compared}) > 1:
        console.print(comparison_table(compared, reference))


def summary(tally: Tally, folder: Path) -> str:
    """How much was trained, how fast, and where it is."""
    if not tally.trained:
        return f"Nothing was left to train: all {tally.runs:,} runs are in {folder}."
    speed = tally.trained / max(tally.elapsed, 1e-9)
    text = f"Trained {tally.trained:,} model-epochs in {tally.elapsed:,.0f} s: {speed:,.1f} per second."
    return f"{text} All {tally.runs:,} runs are in {folder}."


def default_reference(pools: Sequence[str]) -> str:
    """What the others are compared with: the first first-order pooling, else the first of all."""
    from sopool.models.presets import FIRST_ORDER

    return next((pool for pool in pools if pool in (*FIRST_ORDER, "sum-avg")), pools[0])


def curves_of(evaluations: Sequence["Evaluation"], protocol: str) -> dict[str, Sequence["Run"]]:
    """The runs that a protocol reports, for a picture: the final ones, or those of the setting that was best."""
    from sopool.training.protocols.protocols import PROTOCOLS

    looks = PROTOCOLS[protocol].looks[-1]
    series: dict[str, Sequence[Run]] = {}
    for one in evaluations:
        if protocol not in one.outcomes:
            continue
        setting = one.outcomes[protocol].setting
        runs = one.runs[looks]
        series[one.pool] = runs if looks == "chosen" else [run for run in runs if run.config.setting == setting]
    return series


def _seconds(evaluation: "Evaluation", protocol: str) -> float:
    import numpy as np

    from sopool.training.protocols.protocols import PROTOCOLS

    runs = [run for looks in PROTOCOLS[protocol].looks for run in evaluation.runs.get(looks, [])]
    return float(sum(np.nansum(run.curves["seconds"]) for run in runs))
