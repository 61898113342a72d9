"""What every operator over segments promises, whatever the sizes, the type and the place of the rows."""

import pytest
import torch

from sopool.ops import (
    segment_apply,
    segment_attend,
    segment_bilinear,
    segment_covariance,
    segment_gram,
    segment_mean,
    segment_softmax,
    segment_sum,
)
from sopool.ops.segment.largest import segment_max
from tests.helpers.backends import by_kernels, every_way
from tests.helpers.strategies import draw_rows, ptr_of

CHANNELS = 3
WEIGHT = draw_rows(11, CHANNELS, 2)
QUERY = draw_rows(12, CHANNELS, 1)
BIAS = draw_rows(13, 1)
SIZES = [0, 3, 1, 0, 20, 7, 0]  # empty graphs first, in the middle and last


def centred(rows):
    return rows - rows.mean(0) if len(rows) else rows


def apply(x, ptr, **order):
    return segment_apply(x, WEIGHT.t().to(x).expand(len(ptr) - 1, -1, -1), ptr, **order)


# Each with its formula for the rows of one graph.
OPERATORS = {
    "gram": (lambda x, ptr, **order: segment_gram(x, x, ptr, **order), lambda rows: rows.t() @ rows),
    "gram of two": (
        lambda x, ptr, **order: segment_gram(x, x[:, 1:], ptr, **order),
        lambda rows: rows.t() @ rows[:, 1:],
    ),
    "apply": (apply, lambda rows: rows @ WEIGHT),
    "bilinear": (
        lambda x, ptr, **order: segment_bilinear(x, WEIGHT.to(x), ptr, **order),
        lambda rows: (rows @ WEIGHT).t() @ (rows @ WEIGHT),
    ),
    "attend": (
        lambda x, ptr, **order: segment_attend(x, QUERY.to(x), ptr, BIAS.to(x), **order),
        lambda rows: rows.t() @ (rows @ QUERY + BIAS),
    ),
    "attend with several": (
        lambda x, ptr, **order: segment_attend(x, WEIGHT.to(x), ptr, **order),
        lambda rows: rows.t() @ (rows @ WEIGHT),
    ),
    "covariance": (segment_covariance, lambda rows: centred(rows).t() @ centred(rows)),
}
every_operator = pytest.mark.parametrize("name", OPERATORS)
OTHERS = {"sum": segment_sum, "mean": segment_mean, "softmax": segment_softmax, "max": segment_max}


def expected(name, x, sizes):
    """Graph by graph in double precision, and the gradient of a weighting of it."""
    x = x.detach().double().requires_grad_()
    parts = [OPERATORS[name][1](rows) for rows in x.split(sizes)]
    out = torch.cat(parts) if name == "apply" else torch.stack(parts)
    return out.detach(), gradient_of(out, x)


def gradient_of(out, x):
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).cos().view_as(out)
    return torch.autograd.grad(out, x, weights.to(out.dtype))[0]


def assert_near(got, want, times=16):
    """Relative to the size of the whole, with tolerance for the rounding of the type."""
    assert got.isfinite().all()
    scale = 1 + want.abs().max().item() if want.numel() else 1
    torch.testing.assert_close(got.double(), want, rtol=0, atol=times * torch.finfo(got.dtype).eps * scale)


def check(name, x, sizes):
    x = x.requires_grad_()
    out = OPERATORS[name][0](x, ptr_of(sizes))
    want, gradient = expected(name, x, sizes)
    assert out.dtype == x.dtype
    assert_near(out, want)
    assert_near(gradient_of(out, x), gradient)


@every_way
@every_operator
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_is_its_formula(name, dtype):
    check(name, draw_rows(0, sum(SIZES), CHANNELS, dtype=dtype), SIZES)


@every_operator
@pytest.mark.parametrize("sizes", [[0], [0, 0], [1], [0, 4], [4, 0]])
def test_with_few_rows_or_none(name, sizes):
    check(name, draw_rows(0, sum(sizes), CHANNELS), sizes)


@every_operator
def test_with_no_graphs(name):
    x = torch.zeros(0, CHANNELS, requires_grad=True)
    out = OPERATORS[name][0](x, torch.tensor([0]))
    assert out.shape[0] == 0
    assert torch.autograd.grad(out.sum(), x)[0].shape == x.shape


@every_way
@every_operator
def test_a_large_graph_among_tiny_ones(name):
    """Kernels cut it into pieces."""
    sizes = [2, 700, 1, 0, 5]
    check(name, draw_rows(0, sum(sizes), CHANNELS, dtype=torch.float32), sizes)


@every_operator
def test_rows_in_any_order(name):
    """Values and gradients are the same, the rows where they lie."""
    sizes = [*SIZES, 260]
    ptr = ptr_of(sizes)
    x = draw_rows(0, sum(sizes), CHANNELS).requires_grad_()
    order = torch.randperm(len(x))
    scattered = torch.empty_like(x).index_copy(0, order, x.detach()).requires_grad_()
    operator, _ = OPERATORS[name]
    want = operator(x, ptr)
    got = operator(scattered, ptr, order=order)
    if name == "apply":
        got = got[order]
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(gradient_of(got, scattered)[order], gradient_of(want, x))


@every_operator
def test_rows_need_not_be_contiguous(name):
    x = draw_rows(0, sum(SIZES), CHANNELS)
    ptr = ptr_of(SIZES)
    operator, _ = OPERATORS[name]
    wide = x.new_zeros(len(x), 9)
    tall = x.new_zeros(2 * len(x), CHANNELS)
    wide[:, 4:7], tall[::2] = x, x
    for other in (x.t().contiguous().t(), wide[:, 4:7], tall[::2]):
        torch.testing.assert_close(operator(other, ptr), operator(x, ptr))


@pytest.mark.parametrize("symmetrize", [False, True])
def test_matrices_need_not_be_contiguous(symmetrize):
    s = draw_rows(0, CHANNELS, len(SIZES), CHANNELS)
    y = draw_rows(1, sum(SIZES), CHANNELS)
    ptr = ptr_of(SIZES)
    s = s.permute(1, 2, 0)
    want = torch.cat([rows @ (m + m.t() if symmetrize else m).t() for rows, m in zip(y.split(SIZES), s, strict=True)])
    torch.testing.assert_close(torch.ops.sopool.segment_apply(y, s, ptr, symmetrize), want)


@every_operator
@by_kernels
@pytest.mark.slow
def test_a_graph_does_not_see_its_batch(name):
    """Nor does its gradient. On a GPU to the bit (check_cuda.py); here a product is a call of the BLAS, which may round
    otherwise for another shape."""
    sizes = [5, 1, 300, 8]
    x = draw_rows(0, sum(sizes), CHANNELS, dtype=torch.float32).requires_grad_()
    operator, _ = OPERATORS[name]
    out = operator(x, ptr_of(sizes))
    gradients = torch.autograd.grad(out.sum(), x)[0].split(sizes)
    for together, rows, gradient in zip(
        out.split(sizes if name == "apply" else 1), x.split(sizes), gradients, strict=True
    ):
        rows = rows.detach().requires_grad_()
        alone = operator(rows, torch.tensor([0, len(rows)]))
        assert_near(together, alone.detach().double())
        assert_near(gradient, torch.autograd.grad(alone.sum(), rows)[0].double())


@by_kernels
@pytest.mark.parametrize("name", [*OPERATORS, *OTHERS])
@pytest.mark.parametrize("sizes", [[4, 0, 9], *(pytest.param(s, marks=pytest.mark.slow) for s in ([290, 3], [0], []))])
def test_spare_rows(name, sizes):
    """Rows past the last graph's may hold anything: nothing changes, and their gradient is exactly zero."""
    ptr = ptr_of(sizes)
    own = sum(sizes)
    x = draw_rows(0, own + 5, CHANNELS)
    x[own:] = torch.nan
    whole = x.clone().requires_grad_()
    few = x[:own].clone().requires_grad_()
    operator = OTHERS[name] if name in OTHERS else OPERATORS[name][0]
    got = operator(whole, ptr)
    want = operator(few, ptr)
    if name in ("apply", "softmax"):
        assert got[own:].eq(0).all()
        got = got[:own]
    torch.testing.assert_close(got, want)
    gradient = gradient_of(got, whole)
    assert gradient[own:].eq(0).all()
    if own:
        torch.testing.assert_close(gradient[:own], gradient_of(want, few))


@by_kernels
@pytest.mark.parametrize("operator", [segment_bilinear, segment_attend])
@pytest.mark.parametrize("heads", [1, 2])
def test_spare_rows_do_not_reach_parameters(operator, heads):
    sizes = [4, 0, 9]
    x = draw_rows(0, sum(sizes) + 5, CHANNELS)
    x[sum(sizes) :] = torch.nan
    weight = draw_rows(1, CHANNELS, heads).requires_grad_()
    gradients = [
        torch.autograd.grad(operator(rows, weight, ptr_of(sizes)).sum(), weight)[0] for rows in (x, x[: sum(sizes)])
    ]
    torch.testing.assert_close(*gradients)


def test_covariance_of_rows_far_from_zero():
    """The difference of two sums would leave nothing of it."""
    x = (draw_rows(0, 40, CHANNELS) + 1e4).float()
    sizes = [10, 30]
    want, gradient = expected("covariance", x, sizes)
    got = segment_covariance(x.requires_grad_(), ptr_of(sizes))
    torch.testing.assert_close(got.double(), want, rtol=0, atol=1e-3)
    torch.testing.assert_close(gradient_of(got, x).double(), gradient, rtol=0, atol=1e-2)


@every_way
@pytest.mark.parametrize("ordered", [True, False])
def test_gradients(check_gradients, ordered):
    """Of every input, and those of the gradients."""
    sizes = [3, 0, 1, 4]
    ptr = ptr_of(sizes)
    order = None if ordered else torch.randperm(sum(sizes))
    x = draw_rows(0, sum(sizes), CHANNELS)
    weight = draw_rows(1, CHANNELS, 2)
    bias = draw_rows(2, 2)
    x, weight, bias = (t.requires_grad_() for t in (x, weight, bias))
    check_gradients(lambda x: segment_covariance(x, ptr, order=order), (x,))
    check_gradients(lambda x, w: segment_bilinear(x, w, ptr, order=order), (x, weight))
    for some in (slice(1), slice(2)):
        inputs = (x, *(t[..., some].detach().requires_grad_() for t in (weight, bias)))
        check_gradients(lambda x, w, b: segment_attend(x, w, ptr, b, order=order), inputs)


def test_means_of_the_covariance_have_gradients(check_gradients):
    ptr = ptr_of([3, 0, 4])
    x = draw_rows(0, 7, CHANNELS).requires_grad_()
    operator = torch.ops.sopool.segment_covariance
    torch.testing.assert_close(operator(x, ptr)[1], segment_mean(x, ptr))
    check_gradients(lambda x: operator(x, ptr)[1].square(), (x,))


@pytest.mark.parametrize(
    ("query", "bias", "says"),
    [
        (WEIGHT[:, 0], None, r"query has shape \[3\]: it must be \[3, k\]"),
        (WEIGHT[1:], None, r"query has shape \[2, 2\]: it must be \[3, k\] for x \[4, 3\]"),
        (WEIGHT, torch.zeros(3), r"bias has shape \[3\]: it must be \[2\]"),
    ],
)
def test_queries_of_a_wrong_shape(query, bias, says):
    with pytest.raises(ValueError, match=says):
        segment_attend(draw_rows(0, 4, CHANNELS), query, ptr_of([4]), bias)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_bias_of_another_type(heads):
    with pytest.raises(TypeError, match=r"x has dtype torch.float64 and bias torch.float32"):
        segment_attend(draw_rows(0, 4, CHANNELS), WEIGHT[:, :heads], ptr_of([4]), torch.zeros(heads))


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_of_half_types_under_autocast(heads):
    """With a bias of a half type, too, in float32."""
    x, query, bias = (t.bfloat16() for t in (draw_rows(0, 9, CHANNELS), WEIGHT[:, :heads], draw_rows(2, heads)))
    with torch.autocast("cpu", torch.bfloat16):
        got = segment_attend(x, query, ptr_of([4, 5]), bias)
    torch.testing.assert_close(got, segment_attend(x.float(), query.float(), ptr_of([4, 5]), bias.float()))
