"""Measure time, memory, and the bandwidth and arithmetic speed of the machine, from which floors are computed."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.common import seconds

COPIED = {"cpu": 1 << 28, "cuda": 1 << 30}
"""Bytes that are copied to measure the bandwidth, more than fit into any cache."""
QUEUEING = 20_000_000
"""Cycles for which a GPU waits while calls are queued, so that the device is timed and not the host."""
PRODUCT = {"cpu": 1024, "cuda": 8192}
"""The number of rows and columns of the matrix product that measures the arithmetic speed."""


@dataclass(frozen=True)
class Effort:
    """The amount of measurements."""

    share: float
    """The fraction of the graphs that is used for readouts."""
    repeats: int
    """The number of timed calls of a readout."""
    epochs: int
    """The number of timed epochs of a bank."""
    steps: int = 50
    """Batches per epoch."""


FULL = Effort(share=1.0, repeats=15, epochs=5)
QUICK = Effort(share=0.25, repeats=5, epochs=1)


def kind(device: str) -> str:
    """Return ``cpu`` or ``cuda``."""
    return torch.device(device).type


def median_seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """Return the median time of a call, after one call for warm-up.

    On a GPU, calls follow each other without synchronization, as in training.
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
    """Return the peak memory of the tensors that ``work`` allocates."""
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
    """Return the bytes per second (read and written) of a large copy."""
    source = torch.zeros(COPIED[kind(device)] // 4, device=device)
    target = torch.empty_like(source)
    return 2 * COPIED[kind(device)] / median_seconds(lambda: target.copy_(source), device, repeats)


def product_speed(device: str, repeats: int) -> float:
    """Return the operations per second of a large matrix product with the precision of float32.

    On a GPU this may be three passes in TF32, which the kernels use; the faster method counts.
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
    """Release memory, so that an implementation does not reuse what another one left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
