"""Compare second-order readouts with their floor and with common implementations.

The floor is the time to move the required data at the bandwidth of a plain copy:

    forward               H read, S written
    forward + backward    H read twice, dH written, S and dS once each
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.rivals.readouts import index_add_attn, padded_bimap
from benchmarks.sizes import draw_sizes
from benchmarks.speed.results import ReadoutRow, Results
from benchmarks.speed.timing import Effort, clean_up, copy_bandwidth, kind, median_seconds, peak_bytes
from sopool.nn import AttentionalSecondOrderAggregation, BilinearSecondOrderAggregation

CHANNELS = 160
RANK = 32
GRAPHS = {
    "cuda": {"NCI1": 32_768, "PROTEINS": 16_384, "REDDIT-BINARY": 2_048},
    "cpu": {"NCI1": 2_048, "PROTEINS": 1_024, "REDDIT-BINARY": 128},
}


class Batch(NamedTuple):
    """A batch of graphs."""

    x: Tensor
    """Node features ``[N, F]``."""
    ptr: Tensor
    """The row at which each graph starts ``[G + 1]``."""
    owner: Tensor
    """The graph of each node ``[N]``."""
    largest: int
    """The number of nodes of the largest graph."""

    @property
    def graphs(self) -> int:
        """Return the number of graphs."""
        return len(self.ptr) - 1


class Case(NamedTuple):
    """One implementation of one readout."""

    readout: str
    way: str
    pool: Callable[[Batch], Tensor]
    weights: Sequence[Tensor]
    outputs: int
    """The number of output values per graph."""


def make_batch(like: str, graphs: int, device: str, channels: int = CHANNELS) -> Batch:
    """Return graphs with sizes like those of a data set, and random features that require a gradient."""
    sizes = torch.from_numpy(draw_sizes(like, graphs)).to(device)
    ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    owner = torch.arange(graphs, device=device).repeat_interleave(sizes)
    x = torch.randn(owner.numel(), channels, device=device, requires_grad=True)
    return Batch(x, ptr, owner, int(sizes.max()))


def make_cases(device: str, channels: int = CHANNELS, rank: int = RANK) -> Iterator[Case]:
    """Yield each readout in sopool and in common implementations, with the same weights."""

    def padded(batch: Batch) -> Tensor:
        return padded_bimap(batch.x, weight, batch.owner, batch.graphs, batch.largest)

    def index_add(batch: Batch) -> Tensor:
        return index_add_attn(batch.x, query, batch.owner, batch.graphs)

    bimap = BilinearSecondOrderAggregation(channels, rank).to(device)
    weight = bimap.weight
    yield Case("bimap", "sopool", lambda batch: bimap(batch.x, ptr=batch.ptr), [weight], rank**2)
    yield Case("bimap", "padded", padded, [weight], rank**2)
    attn = AttentionalSecondOrderAggregation(channels).to(device)
    query = attn.query
    yield Case("attn", "sopool", lambda batch: attn(batch.x, ptr=batch.ptr), [query], channels)
    yield Case("attn", "index_add", index_add, [query], channels)


def floor_bytes(batch: Batch, outputs: int, backward: bool) -> int:
    """Return the bytes that must be moved, for the given number of ``outputs`` per graph."""
    h = batch.x.nbytes
    s = batch.graphs * outputs * batch.x.element_size()
    return 3 * h + 2 * s if backward else h + s


class Work(NamedTuple):
    """A call to measure, and the bytes of its inputs and outputs."""

    call: Callable[[], object]
    inputs: int
    outputs: int


def make_work(case: Case, batch: Batch, backward: bool) -> Work:
    """Return a call that pools; with ``backward`` it also computes the gradients of nodes and weights."""
    wanted = [batch.x, *case.weights]
    inputs = batch.ptr.nbytes + sum(tensor.nbytes for tensor in wanted)
    towards = torch.ones(batch.graphs, case.outputs, device=batch.x.device)

    @torch.no_grad()
    def forward() -> object:
        return case.pool(batch)

    def both() -> object:
        return torch.autograd.grad(case.pool(batch), wanted, towards)

    if not backward:
        return Work(forward, inputs, towards.nbytes)
    gradients = sum(tensor.nbytes for tensor in wanted)
    return Work(both, inputs + towards.nbytes, towards.nbytes + gradients)


def measure_case(
    case: Case, like: str, batch: Batch, backward: bool, bandwidth: float, device: str, repeats: int
) -> ReadoutRow:
    """Measure time and memory of one case."""
    work = make_work(case, batch, backward)
    work.call()  # compiles kernels and allocates workspaces
    peak = work.inputs + peak_bytes(work.call, device)
    moved = floor_bytes(batch, case.outputs, backward)
    return ReadoutRow(
        like=like,
        graphs=batch.graphs,
        nodes=len(batch.owner),
        readout=case.readout,
        backward=backward,
        way=case.way,
        milliseconds=1e3 * median_seconds(work.call, device, repeats),
        floor_milliseconds=1e3 * moved / bandwidth,
        floor_bytes=moved,
        memory=peak / (work.inputs + work.outputs),
    )


def measure_readouts(results: Results, device: str, effort: Effort, report: Callable[[str], None]) -> None:
    """Measure all readouts on all sizes and add them to ``results``; skip other implementations that lack memory."""
    torch.manual_seed(0)
    report("readouts: bandwidth of a copy")
    results.bandwidth = copy_bandwidth(device, effort.repeats)
    for like, graphs in GRAPHS[kind(device)].items():
        clean_up()
        batch = make_batch(like, max(1, int(effort.share * graphs)), device)
        for case in make_cases(device):
            for backward in (False, True):
                name = f"{case.readout}, {case.way}, forward{' + backward' * backward}, sizes like {like}"
                report(f"readouts: {name}")
                try:
                    row = measure_case(case, like, batch, backward, results.bandwidth, device, effort.repeats)
                except torch.OutOfMemoryError:
                    if case.way == "sopool":
                        raise
                    results.notes.append(f"{name}: left out, more memory than there is")
                    continue
                results.readouts.append(row)
