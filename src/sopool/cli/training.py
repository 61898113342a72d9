"""Training and showing an evaluation: what ``evaluate``, ``demo`` and ``reproduce`` have in common."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.console import Console

from sopool.cli.output import print_message
from sopool.cli.progress import Interruption, Tally, training_progress
from sopool.errors import DataError, SettingError

if TYPE_CHECKING:
    from sopool.experiments.evaluation import Evaluator
    from sopool.experiments.executors.local import Train
    from sopool.experiments.results import EvaluationResults
    from sopool.training.trainer import Report

Found = TypeVar("Found")


def training_device(wanted: str, executor: str = "local") -> str:
    """Return the device to train on: ``auto`` is the GPU if there is one, on this machine or in the cluster."""
    if executor == "ray":
        from sopool.experiments.executors.ray_cluster import device_for

        return device_for(wanted)
    from sopool._runtime.devices import choose_device

    return choose_device(wanted)


def training_executor(executor: str = "local", address: str | None = None) -> "Train":
    """Return what trains: ``local`` is this machine, ``ray`` the cluster at ``address``, which is joined now."""
    from sopool.experiments.executors.local import train_all

    if executor == "local":
        if address is not None:
            raise SettingError(f"--address {address} is that of a Ray cluster: say --executor ray, too.")
        return train_all
    from sopool.experiments.executors.ray_cluster import connect, hush
    from sopool.experiments.executors.ray_executor import train_on_ray

    hush()
    connect(address or "auto")
    return partial(train_on_ray, address=address or "auto")


def train(
    evaluator: "Evaluator", device: str, workers: int | None, executor: "Train"
) -> tuple["EvaluationResults", Tally]:
    """Train what is missing, with progress, and warn of what could not be judged.

    Interrupted or failed, it says so and leaves the program.
    """
    tally = Tally(evaluator.total_epochs, evaluator.total_epochs // evaluator.request.epochs)
    work = partial(evaluator.evaluate, device, workers, train=executor)
    found = watched(work, tally, evaluator.runs.folder)
    for one in found:
        for why in one.missing.values():
            print_message("warning", f"{one.pool}: {why}")
    if not found.results():
        raise DataError("there is no result to show: no pooling could be judged.")
    return found, tally


def watched(work: "Callable[[Report, Interruption], Found | None]", tally: Tally, folder: Path) -> Found:
    """Return what ``work`` finds, with progress; leave the program, and say why, if it failed or was interrupted."""
    from sopool._runtime.processes import WorkerDiedError

    kept = "What was trained"
    with Interruption() as interruption:
        try:
            with training_progress(tally) as report:
                found = work(report, interruption)
        except WorkerDiedError as error:
            if not interruption():
                print_message("error", str(error))
                raise typer.Exit(1) from error
            found, kept = None, "What was saved before"  # a signal to all processes: they just went
        except KeyboardInterrupt:
            found, kept = None, "What was saved before"
    if found is None:
        print_message("note", f"stopped. {kept} is in {folder}: run the same command again to go on.")
        raise typer.Exit(interruption.exit_code)
    return found


def show_results(found: "EvaluationResults", reference: str | None, console: Console, said: Sequence[str] = ()) -> None:
    """Print the tables, with what is to be ``said`` below; the second one only if there is something to compare."""
    from sopool.report.grids.results import comparison_grid, results_grid

    console.print(results_grid(found.results(), said))
    if compared := found.compare(reference):
        console.print(comparison_grid(compared))


def summary(tally: Tally, folder: Path) -> str:
    """Say how much was trained, how fast, and where it is."""
    if not tally.trained:
        return f"Nothing was left to train: all {tally.runs:,} runs are in {folder}."
    speed = tally.trained / max(tally.elapsed, 1e-9)
    text = f"Trained {tally.trained:,} model-epochs in {tally.elapsed:,.0f} s: {speed:,.1f} per second."
    return f"{text} All {tally.runs:,} runs are in {folder}."
