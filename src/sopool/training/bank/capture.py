"""The training steps of a bank as CUDA graphs.

A step on small graphs consists of about a hundred short kernels, and launching them one by one takes longer than
running them. A step is therefore captured once and replayed. This fixes its shapes: batches are padded to somewhat more
nodes and neighbors than they have (see :class:`~sopool.training.bank.batching.Capacity`), rounded up so that a few
captures serve all steps. The number of the step is stored on the device.
"""

import gc
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.training.bank.batching import Capacity

SLACK = 1.25
"""How much larger than needed a captured capacity may be before another one is captured."""


class Steps(NamedTuple):
    """The inputs of all steps of one epoch, or of a single step (then without the first axis)."""

    graphs: Tensor
    """The batch of each model ``[steps, M, batch]``."""
    keys: Tensor
    """The random keys of dropout ``[steps, M]``, int32."""
    rate: Tensor
    """The learning rate ``[steps, M, 1]``."""
    pace: Tensor
    """The learning rate with corrections of the optimizer ``[steps, M, 1]``, see
    :meth:`sopool.training.bank.optimizer.Optimizer.corrections`."""
    root: Tensor
    """The optimizer's correction of the squared gradient ``[steps]``."""
    fresh: Tensor
    """The weight of the current parameters in their running mean ``[steps]``."""

    def at(self, number: int | Tensor) -> "Steps":
        """Return one step, by its number on the host or on the device ``[1]``."""
        if isinstance(number, int):
            return Steps(*(tensor[number] for tensor in self))
        return Steps(*(tensor.index_select(0, number).squeeze(0) for tensor in self))


Step = Callable[[Steps, Capacity], Tensor]


class CapturedSteps:
    """Capture and replay steps: a function that changes only the ``state`` and returns the losses ``[M, batch]``.

    The function is passed to :meth:`run` and not stored: it belongs to a bank, and a reference cycle would keep both
    alive.
    """

    def __init__(self, state: Sequence[Tensor], like: Steps) -> None:
        self._state = list(state)
        self._steps = Steps(*(torch.empty_like(tensor) for tensor in like))
        self._losses = torch.empty_like(like.graphs, dtype=self._state[0].dtype)
        self._number = torch.zeros(1, dtype=torch.long, device=like.graphs.device)
        self._graphs: dict[Capacity, torch.cuda.CUDAGraph] = {}

    def run(self, step: Step, steps: Steps, needed: Sequence[Capacity]) -> Tensor:
        """Run one epoch, given the capacity that each step needs; return its losses ``[steps, M, batch]``."""
        for mine, given in zip(self._steps, steps, strict=True):
            mine.copy_(given)
        for capacity, number in sorted(
            zip(needed, range(len(needed)), strict=True), reverse=True
        ):  # the largest captures serve most steps
            if find_capacity(capacity, self._graphs) is None:
                self._graphs[round_up(capacity)] = self._capture(step, round_up(capacity), number)
        self._number.zero_()
        for one in needed:
            found = find_capacity(one, self._graphs)
            assert found is not None
            self._graphs[found].replay()
        return self._losses

    def _capture(self, step: Step, capacity: Capacity, number: int) -> torch.cuda.CUDAGraph:
        """Capture a step after a first run that compiles its kernels and is undone."""
        before = [tensor.clone() for tensor in self._state]
        self._number.fill_(number)
        run_aside(lambda: self._next(step, capacity))
        for tensor, old in zip(self._state, before, strict=True):
            tensor.copy_(old)
        return capture(lambda: self._next(step, capacity), next(iter(self._graphs.values()), None))

    def _next(self, step: Step, capacity: Capacity) -> None:
        self._losses.index_copy_(0, self._number, step(self._steps.at(self._number), capacity).unsqueeze(0))
        self._number.add_(1)


def find_capacity(needed: Capacity, capacities: Iterable[Capacity]) -> Capacity | None:
    """Return the smallest capacity that is large enough but not much larger than needed; None if there is none."""
    fitting = [
        capacity
        for capacity in capacities
        if all(need <= there <= SLACK * need + 64 for need, there in zip(needed, capacity, strict=True))
    ]
    return min(fitting, default=None)


def round_up(capacity: Capacity) -> Capacity:
    """Round up to one of sixteen sizes per power of two, at least 64: about three percent more."""
    return Capacity(*(_round(count) for count in capacity))


def _round(count: int) -> int:
    step = max(64, 1 << max(0, count.bit_length() - 5))
    return max(1, -(-count // step)) * step


_ONE_AT_A_TIME = threading.RLock()
"""No other thread may use the shared stream while one thread captures on it."""


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """Return the stream for all captures: each stream that multiplies matrices keeps tens of megabytes."""
    return torch.cuda.Stream(device)


def run_aside(work: Callable[[], None]) -> None:
    """Run ``work`` on the stream of the captures, so that what is set up once per stream exists."""
    with _ONE_AT_A_TIME:
        stream = _side_stream(torch.cuda.current_device())
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()


def capture(work: Callable[[], None], beside: torch.cuda.CUDAGraph | None = None) -> torch.cuda.CUDAGraph:
    """Record the kernels of ``work``; share the memory of another capture if the two never run at the same time."""
    graph = torch.cuda.CUDAGraph()
    pool = None if beside is None else beside.pool()
    stream = _side_stream(torch.cuda.current_device())
    recording = torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local")
    with _ONE_AT_A_TIME, _nothing_collected(), recording:
        work()
    return graph


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Turn off garbage collection: destroying a CUDA graph would break off a capture."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def free_memory() -> None:
    """Free the GPU memory that only garbage refers to."""
    with _ONE_AT_A_TIME:
        gc.collect()
        torch.cuda.empty_cache()
