import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import sopool.ops._products  # noqa: F401 (registers sopool::product)
from sopool.ops import segment_apply, segment_gram
from sopool.ops.segment import size_classes as grouping
from tests.helpers.backends import every_way, on_cpu
from tests.helpers.strategies import draw_rows, index_of, ptr_of, seeds, sizes, widths

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
AWKWARD = [[], [0], [0, 0], [3], [1, 1, 1], [0, 4, 2], [4, 0, 2], [4, 2, 0], [2, 5, 2, 0, 5, 1]]
THIN_AND_WIDE = [(3, 2), (3, 1), (1, 3), (1, 1)]


def naive_gram(x, y, ptr):
    out = torch.zeros(len(ptr) - 1, x.shape[1], y.shape[1], dtype=torch.float64)
    for g, (a, b) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        for i in range(a, b):
            out[g] += torch.outer(x[i].double(), y[i].double())
    return out


def naive_apply(y, s, ptr):
    out = torch.zeros(y.shape[0], s.shape[1], dtype=torch.float64)
    for g, (a, b) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        for i in range(a, b):
            out[i] = s[g].double() @ y[i].double()
    return out


def assert_near(got, want, eps_of=None):
    """Relative to the size of the whole, with tolerance for the rounding of the type."""
    eps = torch.finfo(eps_of or got.dtype).eps
    assert got.isfinite().all()
    torch.testing.assert_close(
        got.double(), want, rtol=4 * eps, atol=8 * eps * (1 + want.abs().max().item() if want.numel() else 1)
    )


@every_way
@given(sizes, widths, widths, seeds, st.sampled_from(DTYPES))
def test_gram_is_its_formula(sizes, p, q, seed, dtype):
    ptr = ptr_of(sizes)
    x = draw_rows(seed, sum(sizes), p, dtype=dtype)
    y = draw_rows(seed + 1, sum(sizes), q, dtype=dtype)
    got = segment_gram(x, y, ptr)
    assert got.dtype == dtype
    assert_near(got, naive_gram(x, y, ptr))
    assert_near(segment_gram(x, x, ptr), naive_gram(x, x, ptr))
    with grouping.graphs_apart():
        assert_near(segment_gram(x, y, ptr), naive_gram(x, y, ptr))


@every_way
@given(sizes, widths, widths, seeds, st.sampled_from(DTYPES))
def test_apply_is_its_formula(sizes, p, q, seed, dtype):
    ptr = ptr_of(sizes)
    y = draw_rows(seed, sum(sizes), q, dtype=dtype)
    s = draw_rows(seed + 1, len(sizes), p, q, dtype=dtype)
    got = segment_apply(y, s, ptr)
    assert got.dtype == dtype
    assert_near(got, naive_apply(y, s, ptr))
    with grouping.graphs_apart():
        assert_near(segment_apply(y, s, ptr), naive_apply(y, s, ptr))


@on_cpu
@given(sizes, widths, seeds)
def test_symmetrized_apply_is_its_formula(sizes, p, seed):
    ptr = ptr_of(sizes)
    y = draw_rows(seed, sum(sizes), p)
    s = draw_rows(seed + 1, len(sizes), p, p)
    x = draw_rows(seed + 2, sum(sizes), p).requires_grad_()
    want = naive_apply(y, s + s.mT, ptr)
    assert_near(torch.ops.sopool.segment_apply(y, s, ptr, True), want)
    assert_near(torch.autograd.grad(segment_gram(x, x, ptr), x, s)[0], naive_apply(x, s + s.mT, ptr))


@given(sizes, widths, widths, seeds)
def test_they_are_adjoint(sizes, p, q, seed):
    """<gram(x, y), S> = <x, apply(y, S)>."""
    ptr = ptr_of(sizes)
    n = sum(sizes)
    x = draw_rows(seed, n, p)
    y = draw_rows(seed + 1, n, q)
    s = draw_rows(seed + 2, len(sizes), p, q)
    left = (segment_gram(x, y, ptr) * s).sum()
    right = (x * segment_apply(y, s, ptr)).sum()
    torch.testing.assert_close(left, right)


@given(sizes, seeds)
def test_unsorted_index_is_ptr(sizes, seed):
    ptr = ptr_of(sizes)
    n = sum(sizes)
    x = draw_rows(seed, n, 3)
    y = draw_rows(seed + 1, n, 2)
    s = draw_rows(seed + 2, len(sizes), 3, 2)
    shuffle = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    index = index_of(sizes)[shuffle]
    got = segment_gram(x[shuffle], y[shuffle], index=index, dim_size=len(sizes))
    torch.testing.assert_close(got, segment_gram(x, y, ptr))
    torch.testing.assert_close(segment_apply(y[shuffle], s, index=index), segment_apply(y, s, ptr)[shuffle])


@given(sizes, sizes, seeds, st.sampled_from([torch.float64, torch.float32]))
def test_a_graph_does_not_see_its_batch(first, second, seed, dtype):
    """Up to rounding: a product of several matrices at once may be made otherwise for another number of them."""
    x = draw_rows(seed, sum(first) + sum(second), 4, dtype=dtype)
    whole = segment_gram(x, x, ptr_of(first + second))
    apart = [
        segment_gram(a, a, ptr_of(s)) for a, s in zip(x.split([sum(first), sum(second)]), (first, second), strict=True)
    ]
    torch.testing.assert_close(whole, torch.cat(apart))


@pytest.mark.parametrize(
    ("sizes", "p", "q"),
    [*((sizes, 3, 2) for sizes in AWKWARD), *(([0, 4, 2], *widths) for widths in THIN_AND_WIDE[1:])],
)
def test_gradients(sizes, p, q, check_gradients):
    ptr = ptr_of(sizes)
    n = sum(sizes)
    x, y, s = (t.requires_grad_() for t in (draw_rows(0, n, p), draw_rows(1, n, q), draw_rows(2, len(sizes), p, q)))
    for function, inputs in [
        (lambda x, y: segment_gram(x, y, ptr), (x, y)),
        (lambda x: segment_gram(x, x, ptr), (x,)),
        (lambda y, s: segment_apply(y, s, ptr), (y, s)),
    ]:
        check_gradients(function, inputs)


def test_gradients_of_an_unsorted_index(check_gradients):
    index = torch.tensor([2, 0, 2, 3, 0])
    x, y, s = (t.requires_grad_() for t in (draw_rows(0, 5, 2), draw_rows(1, 5, 3), draw_rows(2, 5, 2, 3)))
    check_gradients(lambda x, y: segment_gram(x, y, index=index, dim_size=5), (x, y))
    check_gradients(lambda y, s: segment_apply(y, s, index=index), (y, s))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 2])
def test_half_types_accumulate_in_float32(dtype, width):
    """4,096 times 0.01 in bfloat16 would stop growing at 4."""
    x = torch.full((4096, 3), 0.1, dtype=dtype)
    ptr = torch.tensor([0, 4096])
    want = 4096 * float(x[0, 0]) ** 2
    got = segment_gram(x, x[:, :width], ptr)
    torch.testing.assert_close(got.double(), torch.full_like(got, want).double(), rtol=1e-2, atol=0)
    dots = segment_apply(
        torch.full((2, 4096), 0.1, dtype=dtype),
        x.t()[None, :width].expand(2, -1, -1).contiguous(),
        torch.tensor([0, 1, 2]),
    )
    torch.testing.assert_close(dots.double(), torch.full_like(dots, want).double(), rtol=1e-2, atol=0)


def test_autocast_sums_in_float32():
    x = draw_rows(0, 30, 4, dtype=torch.float32).requires_grad_()
    ptr = torch.tensor([0, 10, 30])
    with torch.autocast("cpu", torch.bfloat16):
        got = segment_gram(x, x, ptr)
        mixed = segment_gram(x.bfloat16(), x, ptr)
        (gradient,) = torch.autograd.grad(got.sum(), x)
    assert got.dtype == mixed.dtype == torch.float32
    assert torch.equal(got, segment_gram(x, x, ptr))
    torch.testing.assert_close(gradient, torch.autograd.grad(segment_gram(x, x, ptr).sum(), x)[0], rtol=0, atol=0)


@on_cpu
def test_deterministic_bit_for_bit():
    sizes = torch.randint(0, 50, (300,)).tolist()
    x = torch.randn(sum(sizes), 7)
    ptr = ptr_of(sizes)
    torch.use_deterministic_algorithms(True)
    try:
        first, *others = [segment_gram(x, x, ptr) for _ in range(5)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(first, other) for other in others)


@on_cpu
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("limits", "value"), [("CHUNK", 64), ("LARGE", 100)])
def test_where_segments_are_cut_changes_nothing(monkeypatch, limits, value, dtype):
    """Chunks of a few rows, pieces of one graph; most graphs multiplied where they lie."""
    sizes = torch.randint(0, 30, (200,)).tolist()
    ptr = ptr_of(sizes)
    x, y, s = (t.to(dtype) for t in (torch.randn(sum(sizes), 6), torch.randn(sum(sizes), 4), torch.randn(200, 6, 4)))

    def results():
        return segment_gram(x, y, ptr), segment_apply(y, s, ptr), segment_apply(y, s[:, :1], ptr), gradient(x, ptr)

    whole = results()
    monkeypatch.setitem(getattr(grouping, limits), "cpu", value)
    for a, b in zip(whole, results(), strict=True):
        torch.testing.assert_close(a, b)


def gradient(x, ptr):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(segment_gram(x, x, ptr).square().sum(), x)[0]


def test_non_contiguous():
    x = torch.randn(4, 10, dtype=torch.float64).t()
    y = torch.randn(10, 6, dtype=torch.float64)[:, ::2]
    s = torch.randn(3, 4, 2, dtype=torch.float64).transpose(1, 2)
    ptr = torch.tensor([0, 4, 4, 10])
    torch.testing.assert_close(segment_gram(x, y, ptr), naive_gram(x, y, ptr))
    torch.testing.assert_close(segment_apply(x, s, ptr), naive_apply(x, s, ptr))
    torch.testing.assert_close(segment_gram(x.float(), y[:, :1].float(), ptr).double(), naive_gram(x, y[:, :1], ptr))


def test_compiles_without_a_break_and_once_for_all_sizes(fresh_compiler):
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def both(x, y, ptr):
        s = segment_gram(x, y, ptr)
        return s, segment_apply(y, s, ptr)

    for batch in ([3, 0, 4], [5, 6], [2, 2, 2, 2]):
        x = torch.randn(sum(batch), 3)
        y = torch.randn(sum(batch), 2)
        ptr = ptr_of(batch)
        s, applied = both(x, y, ptr)
        torch.testing.assert_close(s, segment_gram(x, y, ptr))
        torch.testing.assert_close(applied, segment_apply(y, s, ptr))
    assert counter.frame_count == 1


def test_registered_operators_keep_their_promises():
    x = draw_rows(0, 7, 3)
    y = draw_rows(1, 7, 2)
    s = draw_rows(2, 3, 3, 2)
    ptr = torch.tensor([0, 3, 3, 7])
    for t in (x, y, s):
        t.requires_grad_()
    ops = torch.ops.sopool
    torch.library.opcheck(ops.segment_gram.default, (x, y, ptr))
    torch.library.opcheck(ops.segment_gram.default, (x, None, ptr))
    torch.library.opcheck(ops.segment_apply.default, (y, s, ptr))
    torch.library.opcheck(
        ops.segment_apply.default, (draw_rows(3, 7, 3), (s @ s.mT).detach().requires_grad_(), ptr, True)
    )
    query = draw_rows(4, 3, 2).requires_grad_()
    bias = draw_rows(5, 2).requires_grad_()
    torch.library.opcheck(ops.segment_attend.default, (x, query, bias, ptr))
    torch.library.opcheck(ops.segment_attend.default, (x, query[:, :1].detach().requires_grad_(), None, ptr))
    torch.library.opcheck(ops.segment_bilinear.default, (x, query, ptr))
    torch.library.opcheck(ops.segment_covariance.default, (x, ptr))
    torch.library.opcheck(ops.product.default, (x, query))
    torch.library.opcheck(ops.segment_amax.default, (x.detach(), ptr))
    torch.library.opcheck(ops.sort_index.default, (torch.tensor([2, 0, 1, 0]), 4))


def test_meta_device_knows_the_shapes():
    x = torch.empty(9, 4, device="meta")
    ptr = torch.empty(3, dtype=torch.long, device="meta")
    assert segment_gram(x, x, ptr).shape == (2, 4, 4)
    assert segment_apply(x, torch.empty(2, 5, 4, device="meta"), ptr).shape == (9, 5)


@on_cpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "sizes", [[10] * 1000 + [3783] + [20] * 1000, [30] * 500, [40_000]], ids=["mixed", "equal", "one"]
)
def test_memory_stays_within_twice_inputs_and_outputs(sizes, dtype):
    ptr = ptr_of(sizes)
    n = sum(sizes)
    x = torch.randn(n, 32).to(dtype)

    def peak(function, *inputs):
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
            out = function(*inputs, ptr)
        live = most = 0
        for event in recorded.profiler.kineto_results.events():
            if event.name() == "[memory]":
                live += event.nbytes()
                most = max(most, live)
        own = sum(t.nbytes for t in {id(t): t for t in (*inputs, ptr, out)}.values())
        return most - out.nbytes, own, out

    extra, own, s = peak(segment_gram, x, x)
    assert extra <= 2 * own
    extra, own, _ = peak(segment_apply, x, s)
    assert extra <= 2 * own
