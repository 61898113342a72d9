"""Run the requested measurements part by part."""

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
    """The measurements to run, the device and the data sets."""

    device: str
    stores: Sequence[PackedGraphs] = ()
    parts: Sequence[str] = PARTS
    scales: Sequence[str] = ("models",)
    models: Sequence[int] | None = None
    """The numbers of models; None for defaults that depend on the device."""
    effort: Effort = FULL
    profile: bool = False

    def __post_init__(self) -> None:
        for part in self.parts:
            check_name("part", part, PARTS)
        for scale in self.scales:
            check_name("scale", scale, SCALES)
        if any(count < 1 for count in self.models or ()):
            raise SettingError(f"--models {min(self.models or ())} is not possible: a bank has at least 1 model.")
        if self.profile and "bank" not in self.parts:
            raise SettingError("--profile needs the bank: add bank to --part.")

    @property
    def counts(self) -> Sequence[int]:
        """Return the numbers of models, if they are varied."""
        return self.models or MODELS[kind(self.device)]

    @property
    def beside(self) -> int:
        """Return the number of models if another quantity is varied: the largest requested number."""
        return max(self.models) if self.models else BESIDE[kind(self.device)]


def run(request: Request, report: Callable[[str], None]) -> Iterator[Results]:
    """Run the measurements, announce each by ``report``, and yield all results so far after each part."""
    results = Results(machine(request.device))
    device = request.device
    if ":" in device:
        torch.cuda.set_device(device)
    if "readouts" in request.parts:
        measure_readouts(results, device, request.effort, report)
        yield results
    if "bank" in request.parts:
        # One thread, as in each worker of an evaluation: small operators do not benefit from more.
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
