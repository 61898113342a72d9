"""The readouts on a CUDA device against float64 on the CPU: values, gradients, half types, compile, assertions.

    python -m tests.check_cuda

Needs a GPU, torch and torch-geometric; no test runner. Prints one line per check and fails at the first that is wrong.
"""

import copy
import itertools
import subprocess
import sys

import torch

from sopool.data import default_encoder, load
from sopool.nn import READOUTS, MultiHeadSecondOrderPooling, SegmentAggregation, make_readout
from sopool.nn.gnn import VARIANTS
from sopool.ops import segment_apply, segment_gram
from tests.training.graphs import bank_of, little_store, run_config, tables_of

SIZES = [0, 40, 1, 0, 900, 3, 3, 17, 0]
BAD = {
    "ptr that goes down": "segment_gram(x, x, torch.tensor([0, 7, 3, 9], device='cuda'))",
    "ptr past the end": "segment_gram(x, x, torch.tensor([0, 12], device='cuda'))",
    "index out of range": "segment_gram(x, x, index=torch.full((9,), 5, device='cuda'), dim_size=2)",
    "negative index": "segment_gram(x, x, index=torch.full((9,), -1, device='cuda'), dim_size=2)",
}


def batch(channels: int = 24) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    sizes = torch.tensor(SIZES)
    ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    return torch.randn(int(ptr[-1]), channels), ptr, torch.repeat_interleave(torch.arange(len(SIZES)), sizes)


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    assert got.isfinite().all()
    return float((got.detach().cpu().double() - want.detach()).norm() / want.detach().norm())


def check(label: str, value: float, limit: float) -> None:
    print(f"{label:60s} {value:.1e} (at most {limit:.0e})")
    if not value <= limit:
        raise SystemExit(f"{label}: relative error {value}")


def check_readout(name: str) -> None:
    x, ptr, index = batch()
    exact = make_readout(name, x.shape[1]).double()
    rows = x.double().requires_grad_()
    want = exact(rows, ptr=ptr)
    (slope,) = torch.autograd.grad(want.sum(), rows)
    for dtype, limit in ((torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 3e-2)):
        readout = copy.deepcopy(exact).to("cuda", dtype)
        here = x.to("cuda", dtype).requires_grad_()
        got = readout(here, ptr=ptr.cuda())
        check(f"{name} {dtype}", error(got, want), limit)
        check(f"{name} {dtype} gradient", error(torch.autograd.grad(got.sum(), here)[0], slope), 2 * limit)
    readout = copy.deepcopy(exact).to("cuda", torch.float32)
    shuffle = torch.randperm(len(x))
    got = readout(x[shuffle].cuda(), index[shuffle].cuda(), dim_size=len(SIZES))
    check(f"{name} unsorted index", error(got, want), 1e-5)
    with torch.autocast("cuda", torch.bfloat16):
        got = readout(x.cuda(), ptr=ptr.cuda())
    assert got.dtype == torch.float32
    check(f"{name} autocast", error(got, want), 3e-2)
    torch._dynamo.reset()
    compiled = torch.compile(readout, fullgraph=True, dynamic=True)
    check(f"{name} compiled", error(compiled(x.cuda(), ptr=ptr.cuda()), want), 1e-5)


def check_store() -> None:
    """A store on the device: the same batches and features as on the CPU."""
    graphs = load("MUTAG")
    features = default_encoder(graphs).fit(graphs).transform(graphs)
    chosen = torch.randint(len(graphs), (64,))
    want, got = graphs.batch(chosen), graphs.to("cuda").batch(chosen.cuda())
    for name, here, there in zip(want._fields, want, got, strict=True):
        assert torch.equal(here, there.cpu()), name
    assert torch.equal(features.rows(want.nodes), features.to("cuda").rows(got.nodes).cpu())
    print("batches and features on the device are those on the CPU")


def check_no_waiting() -> None:
    """The checks of values and the sorting of an index do not wait for the device."""
    from sopool.ops.segments import check_edges, check_ptr_values, find_segments

    x, ptr, index = (t.cuda() for t in batch())
    edges = torch.zeros(2, 4, dtype=torch.long, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        find_segments(len(x), x.device, index=index, dim_size=len(SIZES))
        check_ptr_values(ptr, len(x))
        check_edges(edges, index)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    print("the checks do not wait for the device")


def check_assertions() -> None:
    """Bad values end in a device assertion; each needs a process of its own."""
    for label, call in BAD.items():
        setup = "import torch; from sopool.ops import segment_gram; x = torch.ones(9, 3, device='cuda');"
        run = subprocess.run([sys.executable, "-c", f"{setup} {call}; torch.cuda.synchronize()"], capture_output=True)
        assert run.returncode != 0, f"{label} went unnoticed"
        assert b"assert" in run.stderr.lower(), run.stderr.decode()[-2000:]
        print(f"{label}: refused")


def check_bank() -> None:
    """The law of the bank on the GPU: against the CPU, and against a run by itself. Every GNN, every readout."""
    store = little_store()
    tables = {device: tables_of(store).to(device) for device in ("cpu", "cuda")}
    worst = {"cpu": 0.0, "alone": 0.0}
    for gnn, pool in zip(itertools.cycle(VARIANTS), READOUTS, strict=False):
        join = "per-layer" if pool in ("sum", "mean", "max") else "concat"
        model = {"gnn": gnn, "pool": pool, "join": join}
        configs = [run_config(model=model, fold=fold, seed=fold, lr=0.01 / (fold + 1)) for fold in range(3)]
        banks = {device: bank_of(tables[device], configs) for device in tables}
        alone = bank_of(tables["cuda"], configs[1:2])
        for bank in (*banks.values(), alone):
            for _ in range(20):
                bank.run_epoch()
        together = banks["cuda"].values
        worst["alone"] = max(worst["alone"], error(alone.values, together[1:2].cpu()))
        if "max" not in (pool, VARIANTS[gnn].how):  # ties up to rounding go one way or the other
            worst["cpu"] = max(worst["cpu"], error(together, banks["cpu"].values))
    check("bank of 3 against a run by itself, float64, 100 steps", worst["alone"], 1e-9)
    check("bank on the GPU against the CPU, float64, 100 steps", worst["cpu"], 1e-6)


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    x, ptr, _ = batch()
    s = segment_gram(x.double(), x.double(), ptr)
    check("segment_gram", error(segment_gram(x.cuda(), x.cuda(), ptr.cuda()), s), 1e-5)
    applied = segment_apply(x.double(), s, ptr)
    check("segment_apply", error(segment_apply(x.cuda(), s.float().cuda(), ptr.cuda()), applied), 1e-5)
    for name in READOUTS:
        if isinstance(make_readout(name, 1), SegmentAggregation):  # PyG's own are PyG's to check
            check_readout(name)
    pool = MultiHeadSecondOrderPooling(x.shape[1], 4)
    edges = torch.randint(41, 900, (2, 3000))
    index = batch()[2]
    want = copy.deepcopy(pool).double()(x.double(), edges, batch=index, batch_size=len(SIZES))
    got = pool.cuda()(x.cuda(), edges.cuda(), batch=index.cuda(), batch_size=len(SIZES))
    check("MultiHeadSecondOrderPooling x", error(got.x, want.x), 1e-5)
    check("MultiHeadSecondOrderPooling adj", error(got.adj, want.adj), 1e-4)
    check_store()
    check_bank()
    check_no_waiting()
    check_assertions()
    print("all checks passed")


if __name__ == "__main__":
    main()
