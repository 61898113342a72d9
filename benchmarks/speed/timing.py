"""Time, memory, and the two speeds of a machine that floors are made of. All of it is measured, nothing looked up."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.common import seconds

COPIED = {"cpu": 1 << 28, "cuda": 1 << 30}
"""Bytes that are copied to measure the bandwidth: more than any cache holds."""
QUEUEING = 20_000_000
"""Cycles for which a GPU waits while calls are queued: so their time is the device's, not the host's."""
PRODUCT = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the product that the speed of arithmetic is measured by."""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    share: float
    """Of the graphs that the readouts are given."""
    repeats: int
    """Timed calls of a readout."""
    epochs: int
    """Timed epochs of a bank."""
    steps: int = 50
    """Batches in an epoch."""


FULL = Effort(share=1.0, repeats=15, epochs=5)
QUICK = Effort(share=0.25, repeats=5, epochs=1)


def kind(device: str) -> str:
    """Return ``cpu`` or ``cuda``."""
    return torch.device(device).type


def median_seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """Return the median time of a call, after one to warm up.

    On a GPU calls follow each other without a wait, as they do in training.
    """
    work()
    if kind(device) != "cuda":
        return median(seconds(work) for _ in range(repeats))
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    torch.cuda.synchronize()
    torch.cuda._sleep(QUEUEING)
    for start, end in marks:
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return median(float(start.elapsed_time(end)) for start, end in marks) / 1e3


def peak_bytes(work: Callable[[], object], device: str) -> int:
    """Return the peak of the memory that the tensors made by ``work`` take."""
    if kind(device) == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    assert watched.profiler is not None
    events = [event for event in watched.profiler.kineto_results.events() if event.name() == "[memory]"]
    most = now = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def copy_bandwidth(device: str, repeats: int) -> float:
    """Return the bytes per second, read and written ones added up, of a large copy."""
    source = torch.zeros(COPIED[kind(device)] // 4, device=device)
    target = torch.empty_like(source)
    return 2 * COPIED[kind(device)] / median_seconds(lambda: target.copy_(source), device, repeats)


def product_speed(device: str, repeats: int) -> float:
    """Return the operations per second of a large product that is as exact as float32.

    On a GPU that may be three passes in the shorter TF32, which is how the kernels multiply; the faster way counts.
    """
    rows = PRODUCT[kind(device)]
    x = torch.rand(rows, rows, device=device)
    out = torch.empty_like(x)

    def rate() -> float:
        return 2 * rows**3 / median_seconds(lambda: torch.mm(x, x, out=out), device, repeats)

    plain = rate()
    if kind(device) != "cuda":
        return plain
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        return max(plain, rate() / 3)
    finally:
        torch.set_float32_matmul_precision(before)


def clean_up() -> None:
    """Give memory back, so that one contender does not live on what another left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
