"""Compare the bank with a PyG trainer and a padded bank: seconds per model-epoch, and memory.

A model-epoch has 50 steps of 32 graphs (hidden 32, bimap, preset `paper`), followed by scoring all graphs.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Protocol

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.common import seconds
from benchmarks.rivals import LAYERS
from benchmarks.rivals.padded import PaddedBank
from benchmarks.rivals.pyg import PygTrainer
from benchmarks.speed.jobs import Job, Point, plan_points
from benchmarks.speed.results import BankRow, Results
from benchmarks.speed.timing import Effort, clean_up, kind, peak_bytes, product_speed
from sopool.data import PackedGraphs
from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import GraphTables

TABLE = {"cpu": 1 << 30, "cuda": 1 << 34}
"""The size of the dense adjacency matrices, in bytes, from which padding is not run."""
PATIENCE = 2e11
"""The number of operations per epoch from which padding is not run on a CPU: about ten seconds."""


class Contender(Protocol):
    """An implementation that trains for an epoch and scores all graphs; both return numbers on the host."""

    def train(self) -> object:
        """Train for an epoch."""

    def score(self) -> object:
        """Score all graphs."""


class SopoolBank:
    """Train all models in a bank."""

    def __init__(self, job: Job, point: Point) -> None:
        tables = GraphTables.build(job.store, job.features).to(job.device)
        self.bank = Bank(tables, job.configs(point), job.splits(point))
        self.graphs = [np.arange(len(tables))] * point.models

    def train(self) -> object:
        """Train each model for an epoch."""
        return self.bank.run_epoch()

    def score(self) -> object:
        """Score all graphs with each model."""
        return self.bank.scores(self.graphs)


def pyg_trainer(job: Job, point: Point) -> PygTrainer:
    """Return a PyG trainer of the first model."""
    assert job.store.labels is not None
    train, _, test = job.splits(point)[0]
    sizes = {"hidden": point.width, "batch": point.graphs, "steps": point.steps}
    return PygTrainer(job.store, job.features, job.store.labels, train, test, 0, job.device, **sizes)


def padded_bank(job: Job, point: Point) -> PaddedBank:
    """Return a bank of all models in dense arrays."""
    trains = [split.train for split in job.splits(point)]
    return PaddedBank(job.store, job.features, trains, point.width, point.graphs, point.steps, job.device)


CONTENDERS: dict[str, Callable[[Job, Point], Contender]] = {
    "sopool": SopoolBank,
    "PyG": pyg_trainer,
    "padded": padded_bank,
}


def measure_bank(
    results: Results,
    stores: Sequence[PackedGraphs],
    scale: str,
    models: Sequence[int],
    beside: int,
    device: str,
    effort: Effort,
    report: Callable[[str], None],
) -> None:
    """Measure all implementations along one scale and add them to ``results``; PyG once for any number of models."""
    if results.product_speed is None:
        report("bank: speed of a large product")
        results.product_speed = product_speed(device, effort.repeats)
    seen: set[str] = set()
    for job, point in plan_points(stores, scale, models, beside, device, effort.steps):
        for way in CONTENDERS:
            if not (way == "PyG" and scale == "models" and job.store.name in seen):
                _try(results, way, job, point, scale, effort.epochs, report)
        seen.add(job.store.name)


def _try(
    results: Results, way: str, job: Job, point: Point, scale: str, epochs: int, report: Callable[[str], None]
) -> None:
    """Measure, or record why that failed; only other implementations may be skipped."""
    models = 1 if way == "PyG" else point.models
    where = f"{job.store.name}, {job.nodes:.0f} nodes per graph"
    name = f"{way}, {where}, models: {models}, graphs per batch: {point.graphs}, width: {point.width}"
    reason = reason_against(job, point) if way == "padded" else None
    if reason is None:
        report(f"bank: {name}")
        try:
            results.bank.append(measure(way, job, point, scale, results.product_speed or 0.0, epochs))
            return
        except torch.OutOfMemoryError:
            if way == "sopool":
                raise
            reason = "more memory than there is"
    results.notes.append(f"{name}: left out, {reason}")


def measure(way: str, job: Job, point: Point, scale: str, speed: float, epochs: int) -> BankRow:
    """Measure one implementation at one point.

    The first epoch determines the memory. On a GPU, steps are captured during the first two epochs.
    """
    made: list[Contender] = []

    def first() -> None:
        made.append(CONTENDERS[way](job, point))
        made[0].train()
        made[0].score()

    clean_up()
    memory = peak_bytes(first, job.device)
    times = [(seconds(made[0].train), seconds(made[0].score)) for _ in range(1 + epochs)]
    models = 1 if way == "PyG" else point.models
    trained, scored = (median(part) / models for part in zip(*times[1:], strict=True))
    return BankRow(
        scale=scale,
        data=job.store.name,
        way=way,
        models=models,
        graphs=point.graphs,
        width=point.width,
        nodes=job.nodes,
        steps=point.steps,
        threads=torch.get_num_threads(),
        train_seconds=trained,
        score_seconds=scored,
        floor_seconds=job.operations(point) / speed,
        memory_bytes=memory,
    )


def reason_against(job: Job, point: Point) -> str | None:
    """Return the reason why padding is not feasible here, or None."""
    graphs = len(job.store)
    most = int(job.store.sizes.max())
    table = 4 * graphs * most**2
    if table > TABLE[kind(job.device)]:
        return f"the dense adjacency of {graphs:,} graphs padded to {most:,} nodes would take {table / 1e9:,.0f} GB"
    visits = point.models * (3 * point.steps * point.graphs + graphs)
    if kind(job.device) == "cpu" and 2 * LAYERS * point.width * most**2 * visits > PATIENCE:
        return f"padded to {most:,} nodes, an epoch would take too long on a CPU"
    return None


def profile_epoch(job: Job, point: Point, rows: int = 25) -> str:
    """Return a table of the operators of a training epoch, the slowest first."""
    bank = SopoolBank(job, point)
    bank.train()
    on_gpu = kind(job.device) == "cuda"
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]) as seen:
        bank.train()
    by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    table: str = seen.key_averages().table(sort_by=by, row_limit=rows, max_name_column_width=50)
    return f"{job.store.name}, {point.models} models, one epoch of training\n{table}"
