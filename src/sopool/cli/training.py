"""Functions that ``evaluate``, ``demo`` and ``reproduce`` share to train models and to print results."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.console import Console

from sopool._runtime.visible import on_one_line
from sopool.cli.options import names, with_flags
from sopool.cli.output import print_message
from sopool.cli.progress import Interruption, Tally, training_progress
from sopool.errors import DataError, SettingError

if TYPE_CHECKING:
    from sopool.experiments.evaluation import Evaluator
    from sopool.experiments.executors.local import Train
    from sopool.experiments.results import EvaluationResults
    from sopool.objectives import Objective, Task
    from sopool.training.trainer import Report

Found = TypeVar("Found")
TOLD = 3
"""The largest number of targets that are named in one line."""


def task_line(task: str, names: Sequence[object], most: int = 20) -> str:
    """Say in one line what is predicted, so that a task that was not meant is noticed."""
    if task == "classification":
        return "Task: classification."
    kind, what = ("multi-label classification", "label") if task == "multi-label" else ("regression", "target")
    listed = ", ".join(on_one_line(str(name)) for name in names[:most]) + ", ..." * (len(names) > most)
    return f"Task: {kind} of {len(names):,} {what}{'s' * (len(names) > 1)}: {listed}."


def training_device(wanted: str, executor: str = "local") -> str:
    """Return the device to train on; ``auto`` selects a GPU if this machine or the cluster has one."""
    if executor == "ray":
        from sopool.experiments.executors.ray_cluster import device_for

        return device_for(wanted)
    from sopool._runtime.devices import choose_device

    return choose_device(wanted)


def training_executor(executor: str = "local", address: str | None = None) -> "Train":
    """Return the function that trains, on this machine or on the Ray cluster at ``address``, which is joined."""
    from sopool.experiments.executors.local import train_all

    if executor == "local":
        if address is not None:
            raise SettingError(f"--address {address} needs --executor ray: it is the address of a Ray cluster.")
        return train_all
    from sopool.experiments.executors.ray_cluster import connect, hush
    from sopool.experiments.executors.ray_executor import train_on_ray

    hush()
    connect(address or "auto")
    return partial(train_on_ray, address=address or "auto")


def train(
    evaluator: "Evaluator", device: str, workers: int | None, executor: "Train"
) -> tuple["EvaluationResults", Tally]:
    """Train the missing runs with a progress display, and warn about protocols without a result.

    Exits the program with a message if training fails or is interrupted.
    """
    tally = Tally(evaluator.total_epochs, evaluator.total_runs, metric=evaluator.objective.metric)
    work = partial(evaluator.evaluate, device, workers, train=executor)
    found = watched(work, tally, evaluator.runs.folder)
    for one in found:
        for why in dict.fromkeys(one.missing.values()):
            print_message("warning", f"{one.pool}: {why}")
    if not found.results():
        raise DataError("there are no results: no pooling could be evaluated.")
    return found, tally


def watched(work: "Callable[[Report, Interruption], Found | None]", tally: Tally, folder: Path) -> Found:
    """Run ``work`` with a progress display; exit the program with a message if it fails or is interrupted."""
    from sopool._runtime.processes import WorkerDiedError

    kept = "The finished training"
    with Interruption() as interruption:
        try:
            with training_progress(tally) as report:
                found = work(report, interruption)
        except WorkerDiedError as error:
            if not interruption():
                print_message("error", with_flags(str(error)))
                raise typer.Exit(1) from error
            found, kept = None, "Work saved earlier"  # the signal went to the workers, too, and ended them
        except KeyboardInterrupt:
            found, kept = None, "Work saved earlier"
    if found is None:
        print_message("note", f"stopped. {kept} is in {folder}; run the same command again to continue.")
        raise typer.Exit(interruption.exit_code)
    return found


def print_task(objective: "Objective") -> None:
    """Print what is predicted if it is not one class per graph, since it may have been found from the values."""
    from sopool.report.scores import title_of

    if objective.task != "classification":
        line = task_line(objective.task, objective.names, TOLD)
        print_message("note", f"{line} Chosen and compared by {title_of(objective.metric)}.")


def shown_metrics(text: str | None, task: "Task | None" = None) -> list[str]:
    """Return the metrics of ``--metrics``, checked to be known and to be for the task."""
    from sopool.errors import check_name
    from sopool.objectives import METRICS
    from sopool.objectives.choose import check_metric

    metrics = [] if text is None else names("--metrics", text)
    for metric in metrics:
        check_name("metric", metric, METRICS) if task is None else check_metric(task, metric)
    return metrics


def show_results(
    found: "EvaluationResults",
    reference: str | None,
    console: Console,
    said: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> None:
    """Print the results, with the notes ``said`` below, those of each target, and the comparisons if there are any."""
    from sopool.report.grids.results import comparison_grid, results_grid, targets_grid

    rows = found.results()
    console.print(results_grid(rows, said, metrics))
    for protocol in dict.fromkeys(row.outcome.protocol for row in rows):
        grid = targets_grid([row for row in rows if row.outcome.protocol == protocol])
        if grid is not None:
            console.print()
            console.print(grid)
    if compared := found.compare(reference):
        console.print()
        console.print(comparison_grid(compared))


def summary(tally: Tally, folder: Path) -> str:
    """Return a sentence on how much was trained, how fast, and where the runs are stored."""
    if not tally.trained:
        return f"Nothing to train: all {tally.runs:,} runs are stored in {folder}."
    speed = tally.trained / max(tally.elapsed, 1e-9)
    text = f"Trained {tally.trained:,} model-epochs in {tally.elapsed:,.0f} s ({speed:,.1f} per second)."
    return f"{text} All {tally.runs:,} runs are stored in {folder}."
