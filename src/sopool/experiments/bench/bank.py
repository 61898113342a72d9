"""The bank beside PyG's way and the padded one: seconds per model-epoch, and memory.

A model-epoch: 50 steps of 32 graphs, hidden 32, bimap at the preset of the paper, then the scores of all graphs.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Protocol

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from sopool.data import PackedGraphs
from sopool.experiments.bench.jobs import Job, Point, plan
from sopool.experiments.bench.padded import PaddedBank
from sopool.experiments.bench.results import BankRow, Results
from sopool.experiments.bench.rivals import LAYERS, PygTrainer
from sopool.experiments.bench.timing import Effort, clean_up, kind, peak_bytes, product_speed, seconds
from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import GraphTables

TABLE = {"cpu": 1 << 30, "cuda": 1 << 34}
"""Bytes of dense adjacency from which on padding is not tried."""
PATIENCE = 2e11
"""Operations on it in an epoch from which on padding is not tried on a CPU: some ten seconds."""


class Contender(Protocol):
    """Trains for an epoch, then scores all graphs; both end with numbers on the host."""

    def train(self) -> object:
        """One epoch."""

    def score(self) -> object:
        """All graphs."""


class SopoolBank:
    """All models, in a bank."""

    def __init__(self, job: Job, point: Point) -> None:
        tables = GraphTables.build(job.store, job.features).to(job.device)
        self.bank = Bank(tables, job.configs(point), job.splits(point))
        self.graphs = [np.arange(len(tables))] * point.models

    def train(self) -> object:
        """One epoch of each model."""
        return self.bank.run_epoch()

    def score(self) -> object:
        """All graphs by each model."""
        return self.bank.scores(self.graphs)


def pyg_way(job: Job, point: Point) -> Contender:
    """One model, the first."""
    assert job.store.labels is not None
    train, _, test = job.splits(point)[0]
    sizes = {"hidden": point.width, "batch": point.graphs, "steps": point.steps}
    return PygTrainer(job.store, job.features, job.store.labels, train, test, 0, job.device, **sizes)


def padded_way(job: Job, point: Point) -> Contender:
    """All models, in dense arrays."""
    trains = [split.train for split in job.splits(point)]
    return PaddedBank(job.store, job.features, trains, point.width, point.graphs, point.steps, job.device)


WAYS: dict[str, Callable[[Job, Point], Contender]] = {"sopool": SopoolBank, "PyG": pyg_way, "padded": padded_way}


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
    """One scale, all ways, into ``results``. PyG's way does not depend on the number of models: once is enough."""
    if results.product_speed is None:
        report("bank: speed of a large product")
        results.product_speed = product_speed(device, effort.repeats)
    seen: set[str] = set()
    for job, point in plan(stores, scale, models, beside, device, effort.steps):
        for way in WAYS:
            if not (way == "PyG" and scale == "models" and job.store.name in seen):
                _try(results, way, job, point, scale, effort.epochs, report)
        seen.add(job.store.name)


def _try(
    results: Results, way: str, job: Job, point: Point, scale: str, epochs: int, report: Callable[[str], None]
) -> None:
    """Measure, or note why not; but our own way must work."""
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
    """One way at one point. The first epoch shows the memory; on a GPU it captures, as the second still does."""
    made: list[Contender] = []

    def first() -> None:
        made.append(WAYS[way](job, point))
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
    """Why padding makes no sense here; None if it does."""
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
    """Where the time of a training epoch goes: operators, the slowest first."""
    bank = SopoolBank(job, point)
    bank.train()
    on_gpu = kind(job.device) == "cuda"
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]) as seen:
        bank.train()
    by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    table: str = seen.key_averages().table(sort_by=by, row_limit=rows, max_name_column_width=50)
    return f"{job.store.name}, {point.models} models, one epoch of training\n{table}"
