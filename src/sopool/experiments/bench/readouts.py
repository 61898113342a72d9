"""Second-order readouts beside their floor, and beside the usual way to write them.

The floor is what must move through memory, at the speed of a plain copy:

    forward               H read, S written
    forward + backward    H read twice, dH written, S and dS once each
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from sopool.experiments.bench.results import ReadoutRow, Results
from sopool.experiments.bench.sizes import draw_sizes
from sopool.experiments.bench.timing import Effort, clean_up, copy_bandwidth, kind, median_seconds, peak_bytes
from sopool.nn import AttentionalSecondOrderAggregation, BilinearSecondOrderAggregation

CHANNELS, RANK = 160, 32
GRAPHS = {
    "cuda": {"NCI1": 32_768, "PROTEINS": 16_384, "REDDIT-BINARY": 2_048},
    "cpu": {"NCI1": 2_048, "PROTEINS": 1_024, "REDDIT-BINARY": 128},
}


class Batch(NamedTuple):
    """Graphs side by side."""

    x: Tensor
    """[N, channels]."""
    ptr: Tensor
    """Where each graph starts [G + 1]."""
    owner: Tensor
    """Whose each node is [N]."""
    largest: int
    """Nodes of the largest graph."""


class Case(NamedTuple):
    """One way to compute one readout."""

    readout: str
    way: str
    pool: Callable[[Batch], Tensor]
    weights: Sequence[Tensor]
    outputs: int
    """Numbers it gives for each graph."""


def make_batch(like: str, graphs: int, device: str, channels: int = CHANNELS) -> Batch:
    """Graphs with sizes like those of a data set, and random features that want a gradient."""
    sizes = torch.from_numpy(draw_sizes(like, graphs)).to(device)
    ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    owner = torch.arange(graphs, device=device).repeat_interleave(sizes)
    x = torch.randn(owner.numel(), channels, device=device, requires_grad=True)
    return Batch(x, ptr, owner, int(sizes.max()))


def padded_bimap(batch: Batch, weight: Tensor) -> Tensor:
    """W^T H^T H W by padding all graphs to the largest: [G, rank^2]."""
    z, _ = to_dense_batch(batch.x @ weight, batch.owner, max_num_nodes=batch.largest, batch_size=len(batch.ptr) - 1)
    pooled: Tensor = torch.bmm(z.transpose(1, 2), z).flatten(1)
    return pooled


def index_add_attn(batch: Batch, query: Tensor) -> Tensor:
    """H^T H mu by adding up weighted rows: [G, channels]."""
    pooled = batch.x.new_zeros(len(batch.ptr) - 1, batch.x.shape[1])
    return pooled.index_add(0, batch.owner, batch.x * (batch.x @ query))


def make_cases(device: str, channels: int = CHANNELS, rank: int = RANK) -> Iterator[Case]:
    """Each readout our way, then the usual one, with the same weights."""
    bimap = BilinearSecondOrderAggregation(channels, rank).to(device)
    weight = bimap.weight
    yield Case("bimap", "sopool", lambda batch: bimap(batch.x, ptr=batch.ptr), [weight], rank**2)
    yield Case("bimap", "padded", lambda batch: padded_bimap(batch, weight), [weight], rank**2)
    attn = AttentionalSecondOrderAggregation(channels).to(device)
    query = attn.query
    yield Case("attn", "sopool", lambda batch: attn(batch.x, ptr=batch.ptr), [query], channels)
    yield Case("attn", "index_add", lambda batch: index_add_attn(batch, query), [query], channels)


def floor_bytes(batch: Batch, outputs: int, backward: bool) -> int:
    """What must move, with so many ``outputs`` for each graph."""
    h = batch.x.nbytes
    s = (len(batch.ptr) - 1) * outputs * batch.x.element_size()
    return 3 * h + 2 * s if backward else h + s


class Work(NamedTuple):
    """A call to measure, and the bytes that go in and come out."""

    call: Callable[[], object]
    inputs: int
    outputs: int


def make_work(case: Case, batch: Batch, backward: bool) -> Work:
    """Pool; with ``backward`` the gradients of nodes and weights as well, from one of the output that is given."""
    wanted = [batch.x, *case.weights]
    inputs = batch.ptr.nbytes + sum(tensor.nbytes for tensor in wanted)
    towards = torch.ones(len(batch.ptr) - 1, case.outputs, device=batch.x.device)

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
    """Time and memory of one case."""
    work = make_work(case, batch, backward)
    work.call()  # kernels are compiled, libraries take their workspace
    peak = work.inputs + peak_bytes(work.call, device)
    moved = floor_bytes(batch, case.outputs, backward)
    return ReadoutRow(
        like=like,
        graphs=len(batch.ptr) - 1,
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
    """All readouts on all sizes, into ``results``. A rival that needs more memory than there is, is left out."""
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
