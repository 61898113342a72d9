"""Readouts on a GPU against the floor that memory sets, and against the two usual ways: time and memory.

    python benchmarks/readouts_gpu.py [--like NCI1 ...] [--tune] [--index] [--json FILE]

First every result and gradient is checked against float64. The floor is the bytes that must move over the copy
bandwidth measured in the same run: forward H is read and the result written; backward H is read again and dH written,
the gradient of the result read. Times are medians by CUDA events of calls queued behind one another; x is larger than
the cache. Peak memory is what a forward and a backward pass allocate beside inputs and outputs.
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import time
from pathlib import Path
from statistics import median

import torch

import sopool.ops as ops
from sopool.nn import AttentionalSecondOrderAggregation, BilinearSecondOrderAggregation

CHANNELS, RANK = 160, 32
SHAPES = {  # graphs, mean and largest size, spread of the logarithm
    "NCI1": (32768, 33.6, 111, 0.45),
    "PROTEINS": (16384, 38.6, 620, 0.85),
    "REDDIT": (2048, 425.0, 3782, 0.95),
}


def draw_sizes(like: str) -> torch.Tensor:
    """Log-normal, cut at the largest size of the data set, scaled to its mean."""
    graphs, mean, largest, spread = SHAPES[like]
    raw = torch.randn(graphs, generator=torch.Generator().manual_seed(0)).mul(spread).exp()
    scale = mean
    for _ in range(20):
        sizes = (raw * scale).round().clamp(1, largest)
        scale *= mean / float(sizes.mean())
    sizes[graphs // 2] = largest
    return sizes.long()


def median_ms(run, repeats: int = 30) -> float:
    """Queued behind one another: what the host takes is hidden, as in a training step."""
    for _ in range(3):
        run()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    torch.cuda.synchronize()
    torch.cuda._sleep(40_000_000)
    for start, end in events:
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return median(start.elapsed_time(end) for start, end in events)


def copy_bandwidth() -> float:
    """Bytes read and written per millisecond."""
    source = torch.randn(1 << 29, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / median_ms(lambda: target.copy_(source), 10)


def peak_beside(run, *given: torch.Tensor) -> float:
    """Peak of what is allocated beside inputs and outputs, over these."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    made = run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    outputs = sum(t.nbytes for t in made)
    return (peak - outputs) / (outputs + sum(t.nbytes for t in given))


def padded_bimap(x, weight, batch, graphs, most, place):
    z = x @ weight
    block = z.new_zeros(graphs * most, z.shape[1]).index_copy(0, place, z).view(graphs, most, -1)
    return block.transpose(1, 2) @ block


def added_attn(x, query, batch, graphs):
    return x.new_zeros(graphs, x.shape[1]).index_add(0, batch, x * (x @ query))


class Case:
    """One distribution of sizes on the device."""

    def __init__(self, like: str) -> None:
        torch.manual_seed(0)
        sizes = draw_sizes(like)
        self.like, self.graphs, self.most = like, len(sizes), int(sizes.max())
        self.ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]).cuda()
        self.nodes = int(sizes.sum())
        self.batch = torch.repeat_interleave(torch.arange(self.graphs), sizes).cuda()
        self.place = self.batch * self.most + torch.arange(self.nodes, device="cuda") - self.ptr[self.batch]
        self.x = torch.randn(self.nodes, CHANNELS, device="cuda").requires_grad_()
        self.readouts = {
            "bimap": BilinearSecondOrderAggregation(CHANNELS, RANK).cuda(),
            "attn": AttentionalSecondOrderAggregation(CHANNELS).cuda(),
        }
        self.shuffle = torch.randperm(self.nodes, device="cuda")

    def ways(self, kind: str) -> dict:
        readout = self.readouts[kind]
        ways = {"ptr": lambda x: readout(x, ptr=self.ptr)}
        ways["sorted"] = lambda x: readout(x, self.batch, dim_size=self.graphs)
        ways["unsorted"] = lambda x: readout(x, self.batch[self.shuffle], dim_size=self.graphs)
        if kind == "bimap":
            ways["rival"] = lambda x: padded_bimap(
                x, readout.weight, self.batch, self.graphs, self.most, self.place
            ).flatten(1)
        else:
            ways["rival"] = lambda x: added_attn(x, readout.query, self.batch, self.graphs)
        return ways

    def floors(self, kind: str, bandwidth: float) -> tuple[float, float]:
        """Forward, and forward + backward, in milliseconds."""
        rows, result = 4 * self.nodes * CHANNELS, 4 * self.graphs * (RANK * RANK if kind == "bimap" else CHANNELS)
        return (rows + result) / bandwidth, (3 * rows + 2 * result) / bandwidth


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    assert got.isfinite().all()
    return float((got.detach().double() - want.detach()).norm() / want.detach().norm())


def check(case: Case, kind: str) -> None:
    """Result and gradients against float64, by every precision and by torch's own float32."""
    readout = case.readouts[kind]
    parameter = next(readout.parameters())
    part = int(case.ptr[min(case.graphs, 4096 if case.like != "REDDIT" else 512)])
    ptr = case.ptr[: int((case.ptr <= part).sum())]
    rows = case.x.detach()[:part]

    def all_of(precision, dtype=torch.float32):
        x, p = rows.to(dtype).requires_grad_(), parameter.detach().to(dtype).requires_grad_()
        with ops.backend("torch") if precision == "torch" else ops.backend("triton", precision):
            out = ops.segment_bilinear(x, p, ptr) if kind == "bimap" else ops.segment_attend(x, p, ptr)
            slope = torch.randn(out.shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1)).to(dtype)
            return out, *torch.autograd.grad(out, (x, p), slope)

    want = all_of("torch", torch.float64)
    for precision in ("tf32x3", "ieee", "tf32", "torch"):
        errors = [relative(got, exact) for got, exact in zip(all_of(precision), want, strict=True)]
        shown = "  ".join(f"{name} {error:.1e}" for name, error in zip(("out", "dX", "dW"), errors, strict=True))
        print(f"check {case.like:9s} {kind:6s} {precision:7s} {shown}", flush=True)
        if precision in ("tf32x3", "ieee") and max(errors) > 3e-6:
            raise SystemExit(f"{kind} by {precision} is wrong on sizes like {case.like}")


def measure(case: Case, kind: str, way: str, bandwidth: float) -> dict:
    run, parameters = case.ways(kind)[way], list(case.readouts[kind].parameters())
    out = run(case.x)
    slope = torch.randn_like(out)
    del out

    def forward():
        with torch.no_grad():
            return (run(case.x),)

    def both():
        out = run(case.x)
        return (out.detach(), *torch.autograd.grad(out, [case.x, *parameters], slope))

    floor, floor_both = case.floors(kind, bandwidth)
    ms, ms_both = median_ms(forward), median_ms(both)
    return {
        "like": case.like,
        "kind": kind,
        "way": way,
        "floor_ms": floor,
        "forward_ms": ms,
        "forward_ratio": ms / floor,
        "floor_both_ms": floor_both,
        "both_ms": ms_both,
        "both_ratio": ms_both / floor_both,
        "beside_forward": peak_beside(forward, case.x, *parameters),
        "beside_both": peak_beside(both, case.x, slope, *parameters),
    }


def candidates() -> dict:
    """Kernel by kernel, the configurations that --tune tries."""
    from sopool.ops.triton import apply, attend, bilinear, projection

    forward = [
        bilinear.Config(window, longest, block, 32, graphs, rows, 32, warps, stages, maxnreg)
        for (window, longest), (block, warps, graphs, rows), (stages, maxnreg) in itertools.product(
            [(128, 256), (256, 256), (512, 512)],
            [(64, 4, 4, 16), (64, 4, 4, 32), (64, 4, 2, 16), (128, 8, 8, 16), (128, 4, 4, 16)],
            [(2, 128), (3, None), (3, 128), (4, 128)],
        )
    ]
    applied = [
        apply.Config(window, graphs, rows, 32, 32, warps)
        for window, (graphs, rows, warps) in itertools.product(
            [64, 128, 256], [(4, 16, 4), (4, 32, 4), (2, 16, 4), (1, 32, 1), (1, 16, 1), (2, 16, 2), (1, 32, 2)]
        )
    ]
    back = [
        projection.Config(block, channels, 32, warps, stages, maxnreg, each)
        for (block, channels, warps), stages, maxnreg, each in itertools.product(
            [(32, 32, 4), (64, 64, 4), (32, 64, 4), (16, 32, 4), (32, 32, 2), (32, 128, 8)],
            [2, 3, 4],
            [None, 128],
            [5, 10, 20],
        )
    ]
    rows = [
        attend.Config(window, 256, rows, channels, warps, stages)
        for window, (rows, channels, warps), stages in itertools.product(
            [64, 128, 256],
            [(4, 32, 1), (8, 32, 1), (16, 32, 4), (4, 256, 1), (8, 256, 2), (16, 256, 4), (8, 32, 2)],
            [1, 2],
        )
    ]
    rows_back = [c._replace(each=each) for c in rows for each in (8, 16, 64)]
    return {"bilinear": forward, "apply": applied, "projection": back, "attend": rows, "attend backward": rows_back}


def kernel_runs(x: torch.Tensor, ptr: torch.Tensor, weight: torch.Tensor, query: torch.Tensor) -> dict:
    """Each kernel alone: how to run it in a configuration, and the bytes it must move."""
    from sopool.ops.triton import apply, attend, bilinear, projection

    s, mapped = bilinear.segment_bilinear(x, weight, ptr)
    d_pooled, score = torch.randn(len(s), CHANNELS, 1, device="cuda"), torch.randn(len(x), 1, device="cuda")
    return {
        "bilinear": (lambda c: bilinear.segment_bilinear(x, weight, ptr, config=c), x.nbytes + s.nbytes),
        "apply": (lambda c: apply.segment_apply(mapped, s, ptr, True, config=c), 2 * mapped.nbytes + s.nbytes),
        "projection": (
            lambda c: projection.projection_backward(x, weight, mapped, ptr, config=c),
            2 * x.nbytes + mapped.nbytes,
        ),
        "attend": (lambda c: attend.segment_attend(x, query, None, ptr, config=c), x.nbytes + d_pooled.nbytes),
        "attend backward": (
            lambda c: attend.segment_attend_backward(x, query, score, d_pooled, None, ptr, with_bias=False, config=c),
            2 * x.nbytes + d_pooled.nbytes,
        ),
    }


def compile_some(share: int, of: int) -> None:
    """Run every ``of``-th configuration once on little data: what is compiled stays in Triton's cache on disk."""
    ptr = torch.arange(0, 4097, 32, device="cuda")
    x, weight, query = (torch.randn(*n, device="cuda") for n in ((4096, CHANNELS), (CHANNELS, RANK), (CHANNELS, 1)))
    runs = kernel_runs(x, ptr, weight, query)
    everything = [(name, c) for name, configs in candidates().items() for c in configs]
    for name, config in everything[share::of]:
        with contextlib.suppress(Exception):  # too many registers or too much shared memory: reported when timed
            runs[name][0](config)


def compile_all(workers: int) -> None:
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=compile_some, args=(share, workers)) for share in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(f"compiled by {workers} processes in {time.perf_counter() - start:.0f} s", flush=True)


def tune(case: Case, bandwidth: float, results: list) -> None:
    """Time each kernel alone in each configuration; print the best few."""
    weight, query = case.readouts["bimap"].weight.detach(), case.readouts["attn"].query.detach()
    runs = kernel_runs(case.x.detach(), case.ptr, weight, query)
    for name, configs in candidates().items():
        run, moved = runs[name]
        found = []
        for config in configs:
            try:
                found.append((median_ms(lambda c=config, r=run: r(c), 8), config))
            except Exception as error:  # too many registers or too much shared memory: the next one
                results.append({"like": case.like, "kernel": name, "config": str(config), "error": str(error)[:200]})
        found.sort(key=lambda one: one[0])
        results += [{"like": case.like, "kernel": name, "config": str(c), "ms": ms} for ms, c in found]
        print(f"\n{case.like} {name}: floor {moved / bandwidth:.3f} ms, {len(found)} of {len(configs)} ran", flush=True)
        for ms, config in found[:6]:
            print(f"  {ms:.3f} ms {ms * bandwidth / moved:.2f}x  {config}", flush=True)


def show(results: list, bandwidth: float) -> None:
    print(f"\ncopy bandwidth {bandwidth / 1e9:.2f} TB/s; f = {CHANNELS}, rank {RANK}, float32; times in ms")
    print("like      readout way       floor  fwd    x     floor  f+b    x     beside fwd, f+b")
    for r in results:
        print(
            f"{r['like']:9s} {r['kind']:7s} {r['way']:9s} {r['floor_ms']:.3f}  {r['forward_ms']:.3f}"
            f"  {r['forward_ratio']:5.2f} {r['floor_both_ms']:.3f}  {r['both_ms']:.3f}  {r['both_ratio']:5.2f}"
            f"  {r['beside_forward']:4.0%} {r['beside_both']:4.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--like", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--index", action="store_true", help="time a sorted and an unsorted index too")
    parser.add_argument("--tune", action="store_true", help="first try many configurations of each kernel")
    parser.add_argument("--workers", type=int, default=12, help="processes that compile for --tune")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    args = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    bandwidth = copy_bandwidth()
    results, tuned = [], []
    if args.tune:
        compile_all(args.workers)
    for like in args.like:
        case = Case(like)
        for kind in ("bimap", "attn"):
            check(case, kind)
        if args.tune:
            tune(case, bandwidth, tuned)
        ways = ["ptr", *(["sorted", "unsorted"] if args.index else []), *([] if args.no_rivals else ["rival"])]
        for kind, way in itertools.product(("bimap", "attn"), ways):
            results.append(measure(case, kind, way, bandwidth))
        del case
        if args.json:
            args.json.write_text(json.dumps({"bandwidth": bandwidth, "results": results, "tuned": tuned}, indent=1))
    show(results, bandwidth)


if __name__ == "__main__":
    main()
