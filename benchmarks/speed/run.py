"""Measure what was asked for, piece by piece."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from benchmarks.speed.bank import measure_bank, profile_epoch
from benchmarks.speed.jobs import BESIDE, MODELS, SCALES, Point, prepare
from benchmarks.speed.readouts import measure_readouts
from benchmarks.speed.results import Results, machine
from benchmarks.speed.timing import FULL, Effort, kind
from sopool._runtime.threads import threads
from sopool.data import PackedGraphs
from sopool.errors import SettingError, check_name

PARTS = ("readouts", "bank")


@dataclass(frozen=True)
class Request:
    """What to measure, where, on which data sets."""

    device: str
    stores: Sequence[PackedGraphs] = ()
    parts: Sequence[str] = PARTS
    scales: Sequence[str] = ("models",)
    models: Sequence[int] | None = None
    """None for what suits the device."""
    effort: Effort = FULL
    profile: bool = False

    def __post_init__(self) -> None:
        for part in self.parts:
            check_name("part", part, PARTS)
        for scale in self.scales:
            check_name("scale", scale, SCALES)
        if any(count < 1 for count in self.models or ()):
            raise SettingError(f"a bank of {min(self.models or ())} models is not possible: it has at least 1.")
        if self.profile and "bank" not in self.parts:
            raise SettingError("the profile is that of the bank, which is not among the parts to measure.")

    @property
    def counts(self) -> Sequence[int]:
        """The numbers of models, where they are varied."""
        return self.models or MODELS[kind(self.device)]

    @property
    def beside(self) -> int:
        """The number of models where something else is varied: the most that were asked for."""
        return max(self.models) if self.models else BESIDE[kind(self.device)]


def run(request: Request, report: Callable[[str], None]) -> Iterator[Results]:
    """Measure, say what comes next by ``report``, and yield all results so far after each piece."""
    results = Results(machine(request.device))
    device = request.device
    if ":" in device:
        torch.cuda.set_device(device)
    if "readouts" in request.parts:
        measure_readouts(results, device, request.effort, report)
        yield results
    if "bank" in request.parts:
        # As each worker of an evaluation trains: small operators gain nothing from more.
        with threads(1 if kind(device) == "cpu" else torch.get_num_threads()):
            yield from _bank(request, results, report)


def _bank(request: Request, results: Results, report: Callable[[str], None]) -> Iterator[Results]:
    device = request.device
    effort = request.effort
    for scale in request.scales:
        for stores in [[]] if scale == "nodes" else [[store] for store in request.stores]:
            measure_bank(results, stores, scale, request.counts, request.beside, device, effort, report)
            yield results
    if request.profile:
        for store in request.stores:
            point = Point(max(request.counts), steps=effort.steps)
            report(f"bank: profile, {store.name}, {point.models} models")
            results.profiles.append(profile_epoch(prepare(store, device), point))
            yield results
