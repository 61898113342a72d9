"""The package on a CUDA device against float64 on the CPU: values, gradients, types, compile, capture, assertions.

    python -m tests.check_cuda            all parts, several at a time
    python -m tests.check_cuda PART ...   some of them, here and one after the other

Needs a GPU, torch and torch-geometric; no test runner. Prints one line per check and fails if one is wrong. Most of the
time goes into compiling kernels, so each part has a process of its own.
"""

import copy
import gc
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from torch import Tensor

from sopool.data import default_encoder, load
from sopool.nn import READOUTS, MultiHeadSecondOrderPooling, make_readout
from sopool.ops import backend
from sopool.ops.segment.segments import check_edges, check_ptr_values, find_segments
from sopool.training.bank.capture import capture, run_aside
from tests.check_cuda_pairs import check_pairs
from tests.check_cuda_training import (
    PAIRS,
    check_bank,
    check_captured_pairs,
    check_columns,
    check_going_on,
    check_objective,
    check_optimizers,
    check_predictions,
)
from tests.helpers.cuda_cases import (
    BAD,
    CHANNELS,
    LIMITS,
    OPERATORS,
    PRECISIONS,
    RANK,
    SIZES,
    UNEQUAL,
    batch,
    check,
    error,
    results,
    worst,
)
from tests.helpers.training_graphs import GOALS


def check_operators(dtype: torch.dtype, sizes: list[int], limit: float) -> None:
    """Values and gradients against float64 on the CPU, from the same rounded input."""
    x, ptr, _ = batch(sizes)
    x = x.to(dtype)
    weight = torch.randn(CHANNELS, RANK).to(dtype)
    for name, operator in OPERATORS.items():
        want = results(lambda x, w, do=operator: do(x, w, ptr), x.double(), weight.double())
        got = results(lambda x, w, do=operator: do(x, w, ptr.cuda()), x.cuda(), weight.cuda())
        check(f"{name} {dtype}, {len(sizes)} graphs of {min(sizes)} to {max(sizes)}", worst(got, want), limit)


def check_company() -> None:
    """A graph's values, and the gradients of its rows, are the same bits alone and beside other graphs."""
    sizes = [5, 1, 300, 8]
    x, ptr, _ = batch(sizes)
    x = x.float().cuda().requires_grad_()
    ptr = ptr.cuda()
    weight = torch.randn(CHANNELS, RANK).cuda()
    for name in ("gram", "gram of two", "apply", "bilinear", "attend", "attend, 7 queries", "covariance"):
        operator = OPERATORS[name]
        out = operator(x, weight, ptr)
        gradients = torch.autograd.grad(out.sum(), x)[0].split(sizes)
        values = out.split(sizes if name == "apply" else 1)
        for value, gradient, rows in zip(values, gradients, x.detach().split(sizes), strict=True):
            rows = rows.clone().requires_grad_()
            alone = operator(rows, weight, torch.tensor([0, len(rows)], device="cuda"))
            assert torch.equal(alone, value), f"{name}: a graph of {len(rows)} nodes sees its batch"
            own = torch.autograd.grad(alone.sum(), rows)[0]
            assert torch.equal(own, gradient), f"{name}: the gradient of a graph of {len(rows)} nodes sees its batch"
    print("a graph has the same bits alone and in a batch")


def check_precisions() -> None:
    """How float32 is multiplied, side by side with plain torch."""
    x, ptr, _ = batch()
    x = x.float()
    weight = torch.randn(CHANNELS, RANK)
    ways: dict[str, Callable[[], object]] = {how: partial(backend, "triton", how) for how in PRECISIONS}
    ways["torch"] = partial(backend, "torch")
    print(f"{'relative error of values and gradients, float32':48s}" + "".join(f"{name:>10s}" for name in ways))
    for name, operator in OPERATORS.items():
        want = results(lambda x, w, do=operator: do(x, w, ptr), x.double(), weight.double())
        found = {}
        for way, choose in ways.items():
            with choose():
                got = results(lambda x, w, do=operator: do(x, w, ptr.cuda()), x.cuda(), weight.cuda())
            found[way] = worst(got, want)
        print(f"{name:48s}" + "".join(f"{value:10.1e}" for value in found.values()))
        for way, limit in PRECISIONS.items():
            if not found[way] <= limit:
                raise SystemExit(f"{name} in {way}: relative error {found[way]:.3e} is more than {limit:.0e}")


def check_readout(name: str) -> None:
    """The whole contract, and torch.compile without a break."""
    x, ptr, index = batch()
    exact = make_readout(name, x.shape[1]).double()
    want = results(lambda x: exact(x, ptr=ptr), x)
    # A maximum of values that tie only after rounding has its gradient elsewhere.
    several = slice(1) if name in ("max", "sortpool") else slice(2)
    for dtype, limit in ((torch.float32, 1e-5), (torch.float16, 1e-2), (torch.bfloat16, 6e-2)):
        readout = copy.deepcopy(exact).to("cuda", dtype)
        got = results(lambda x, do=readout: do(x, ptr=ptr.cuda()), x.to("cuda", dtype))
        if name != "sortpool" or dtype == torch.float32:  # which sorts by rounded values
            check(f"{name} {dtype}", worst(got[several], want[several]), limit)
    readout = copy.deepcopy(exact).to("cuda", torch.float32)
    rows = x.float().cuda()
    shuffle = torch.randperm(len(x))
    got = results(lambda x: readout(x, index[shuffle].cuda(), dim_size=len(SIZES)), rows[shuffle])
    check(f"{name} unsorted index", worst(got, [want[0], want[1][shuffle]]), 1e-5)
    got = results(lambda x: readout(x, index.cuda(), dim_size=len(SIZES)), rows)
    check(f"{name} sorted index", worst(got, want), 1e-5)
    twice = readout(torch.stack([rows, 2 * rows]), index[shuffle].cuda(), dim_size=len(SIZES))
    once = [readout(part, index[shuffle].cuda(), dim_size=len(SIZES)) for part in (rows, 2 * rows)]
    check(f"{name} further dimensions", error(twice, torch.stack(once).cpu().double()), 1e-6)
    with torch.autocast("cuda", torch.bfloat16):
        got = readout(rows, ptr=ptr.cuda())
    assert got.dtype == torch.float32
    if name != "sortpool":
        check(f"{name} autocast", error(got, want[0]), 6e-2)
    torch._dynamo.reset()
    compiled = torch.compile(readout, fullgraph=True, dynamic=True)
    check(f"{name} compiled", worst(results(lambda x: compiled(x, ptr=ptr.cuda()), rows), want), 1e-5)
    got = results(lambda x: compiled(x, index.cuda(), dim_size=len(SIZES)), rows)
    check(f"{name} compiled, index", worst(got, want), 1e-5)


def check_captured() -> None:
    """A readout captured once serves other graphs of the same shapes, and fewer: rows past the last are spare."""
    x, ptr, _ = batch(channels=24)
    sizes = ptr.diff()
    for name in READOUTS:
        readout = make_readout(name, x.shape[1]).cuda()
        rows = x.float().cuda().requires_grad_()
        starts = ptr.cuda()
        found: list[Tensor] = []

        def work(readout=readout, rows=rows, starts=starts, found=found) -> None:
            out = readout(rows, ptr=starts)
            found[:] = [out.detach(), *torch.autograd.grad(out.square().sum(), rows)]

        run_aside(work)
        graph = capture(work)
        for spare in (0, 40):
            other = torch.cat([sizes.new_zeros(1), sizes.flip(0).cumsum(0)]).clamp(max=len(x) - spare)
            own = len(x) - spare
            with torch.no_grad():
                rows.copy_(x.flip(0).float())
                rows[own:] = torch.nan
            starts.copy_(other)
            graph.replay()
            few = rows[:own].detach().clone().requires_grad_()
            want = readout(few, ptr=other.cuda())
            (gradient,) = torch.autograd.grad(want.square().sum(), few)
            differences = error(found[0], want.cpu().double()), error(found[1][:own], gradient.cpu().double())
            check(f"{name} captured, {spare} spare rows", max(differences), 1e-6)
            assert found[1][own:].eq(0).all(), "a spare row has a gradient"


def check_garbage() -> None:
    """A capture is not broken off by what Python collects meanwhile, even if graphs of an earlier one are among it."""
    x = torch.ones(4, device="cuda")
    total = torch.zeros((), device="cuda")
    before = gc.get_threshold()

    def work() -> None:
        gc.set_threshold(1)
        total.copy_(sum([x + number for number in range(100)]).sum())
        gc.set_threshold(*before)

    gc.collect()
    old: list = [capture(work)]
    old.append(old)
    del old
    graph = capture(work)
    x.zero_()
    graph.replay()
    check("a capture beside garbage", abs(float(total) - 4 * sum(range(100))), 0.0)


def check_no_waiting() -> None:
    """Nothing waits for the device, with ptr or with an index: checks, sorting, forward and backward passes."""
    x, ptr, index = batch(channels=24)
    x = x.float().cuda()
    ptr = ptr.cuda()
    index = index.cuda()
    shuffled = index[torch.randperm(len(x)).cuda()]
    edges = torch.zeros(2, 4, dtype=torch.long, device="cuda")
    given = [{"ptr": ptr}, {"index": index, "dim_size": len(SIZES)}, {"index": shuffled, "dim_size": len(SIZES)}]

    def everything() -> None:
        find_segments(len(x), x.device, index=index, dim_size=len(SIZES))
        check_ptr_values(ptr, x)
        check_edges(edges, index)
        for readout, how in itertools.product(readouts, given):
            rows = x.clone().requires_grad_()
            readout(rows, **how).square().sum().backward()

    readouts = [make_readout(name, x.shape[1]).cuda() for name in READOUTS]
    everything()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        everything()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    print("nothing waits for the device, with ptr or with an index")


def check_store() -> None:
    """A store on the device: the same batches and features as on the CPU. A pooling layer: the same graphs."""
    graphs = load("MUTAG")
    features = default_encoder(graphs).fit(graphs).transform(graphs)
    chosen = torch.randint(len(graphs), (64,))
    want = graphs.batch(chosen)
    got = graphs.to("cuda").batch(chosen.cuda())
    for name, here, there in zip(want._fields, want, got, strict=True):
        assert torch.equal(here, there.cpu()), name
    assert torch.equal(features.rows(want.nodes), features.to("cuda").rows(got.nodes).cpu())
    print("batches and features on the device are those on the CPU")
    x, _, index = batch()
    pool = MultiHeadSecondOrderPooling(x.shape[1], 4)
    edges = torch.randint(41, 900, (2, 3000))
    want = copy.deepcopy(pool).double()(x, edges, batch=index, batch_size=len(SIZES))
    got = pool.cuda()(x.float().cuda(), edges.cuda(), batch=index.cuda(), batch_size=len(SIZES))
    check("MultiHeadSecondOrderPooling x", error(got.x, want.x), 1e-5)
    check("MultiHeadSecondOrderPooling adj", error(got.adj, want.adj), 1e-4)


def check_refused() -> None:
    """Bad values end in a device assertion; each needs a process of its own."""
    setup = """
import torch
from sopool.ops import *
x = torch.ones(9, 3, device="cuda")
at = lambda *values: torch.tensor(values, device="cuda")
"""

    def run(call: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-c", f"{setup}{call}; torch.cuda.synchronize()"], capture_output=True)

    with ThreadPoolExecutor(4) as pool:
        for label, end in zip(BAD, pool.map(run, BAD.values()), strict=True):
            if end.returncode == 0 or b"assert" not in end.stderr.lower():
                raise SystemExit(f"{label} went unnoticed. {end.stderr.decode()[-2000:]}")
            print(f"{label}: refused")


PARTS: dict[str, Callable[[], None]] = {
    "refused": check_refused,
    "company": check_company,
    "precisions": check_precisions,
    **{f"operators-{str(dtype)[6:]}": partial(check_operators, dtype, SIZES, limit) for dtype, limit in LIMITS.items()},
    "sizes-float32": partial(check_operators, torch.float32, UNEQUAL, 2e-5),
    "sizes-bfloat16": partial(check_operators, torch.bfloat16, UNEQUAL, LIMITS[torch.bfloat16]),
    **{f"readout-{name}": partial(check_readout, name) for name in READOUTS},
    **{f"bank-{gnn}-{pool}": partial(check_bank, gnn, pool) for gnn, pool in PAIRS},
    "columns": check_columns,
    **{f"objective-{goal}": partial(check_objective, goal) for goal in GOALS},
    "optimizers": check_optimizers,
    "captured": check_captured,
    "garbage": check_garbage,
    "no-waiting": check_no_waiting,
    "pairs": check_pairs,
    "pairs-captured": check_captured_pairs,
    "store": check_store,
    **{f"going-on-{average}": partial(check_going_on, average) for average in (0.0, 0.9)},
    "predictions": check_predictions,
}


def run_part(name: str) -> subprocess.CompletedProcess:
    """In a process of its own, on one thread."""
    command = [sys.executable, "-m", "tests.check_cuda", name]
    threads = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(
        command, env=os.environ | threads, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"There is no part {unknown[0]!r}. Known: {', '.join(PARTS)}.")
    if names:
        for name in names:
            PARTS[name]()
        return
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    wrong = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, run in zip(PARTS, pool.map(run_part, PARTS), strict=True):
            print(run.stdout, end="", flush=True)
            if run.returncode:
                print(f"{name}: FAILED", flush=True)
                wrong.append(name)
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(PARTS)} parts failed: {', '.join(wrong)}")
    print("all checks passed")


if __name__ == "__main__":
    main(sys.argv[1:])
