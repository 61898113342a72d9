"""Values and gradients may lie in memory as they like."""

import pytest
import torch

from sopool.ops import segment_attend, segment_bilinear, segment_covariance, segment_gram
from sopool.ops.many_models.grouped import grouped_norm_relu
from tests.helpers.strategies import draw_rows
from tests.ops.test_transforms import BIAS, CHANNELS, FUNCTIONS, PTR, ROWS, SIZES, WEIGHT


def norm(x):
    return grouped_norm_relu(x, WEIGHT, BIAS, BIAS + 1, (torch.zeros_like(BIAS), torch.ones_like(BIAS)), ROWS)


EVERY = {**FUNCTIONS, "norm": norm}


def layouts(values):
    """The same values transposed in memory, as columns of more, as every other row, and where they allow, expanded."""
    transposed = values.transpose(0, -1).contiguous().transpose(0, -1)
    wide = values.new_full((*values.shape[:-1], values.shape[-1] + 5), torch.nan)
    tall = values.new_full((2 * len(values), *values.shape[1:]), torch.nan)
    wide[..., 2:-3], tall[::2] = values, values
    return [transposed, wide[..., 2:-3], tall[::2]]


@pytest.mark.parametrize("name", EVERY)
def test_rows_and_gradients(name):
    function = EVERY[name]
    x = draw_rows(0, sum(SIZES), CHANNELS).requires_grad_()
    out = function(x)
    gradient = draw_rows(1, *out.shape)
    (want,) = torch.autograd.grad(out, x, gradient, retain_graph=True)
    for other in layouts(gradient):
        torch.testing.assert_close(torch.autograd.grad(out, x, other, retain_graph=True)[0], want)
    (want,) = torch.autograd.grad(out, x, torch.ones_like(gradient), retain_graph=True)
    expanded = torch.ones((), dtype=gradient.dtype).expand_as(gradient)
    torch.testing.assert_close(torch.autograd.grad(out, x, expanded)[0], want)
    (want,) = torch.autograd.grad(function(x), x, gradient)
    for other in layouts(x.detach()):
        rows = other.requires_grad_()
        if name == "scores":  # takes what can be viewed as rows of each model
            continue
        again = function(rows)
        torch.testing.assert_close(again, out)
        torch.testing.assert_close(torch.autograd.grad(again, rows, gradient)[0], want)


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_where_graphs_start(kind):
    """Every other entry of more, and of any type of integer."""
    x = draw_rows(0, sum(SIZES), CHANNELS).requires_grad_()
    order = torch.randperm(sum(SIZES))
    apart = torch.full((2 * len(PTR),), -7, dtype=kind)
    apart[::2] = PTR
    orders = torch.full((2 * len(order),), -7)
    orders[::2] = order
    operators = [
        lambda x, ptr, order: segment_gram(x, x, ptr, order=order),
        lambda x, ptr, order: segment_bilinear(x, WEIGHT[0], ptr, order=order),
        lambda x, ptr, order: segment_attend(x, WEIGHT[0, :, :1], ptr, order=order),
        lambda x, ptr, order: segment_covariance(x, ptr, order=order),
    ]
    for operator in operators:
        want = operator(x, PTR, order)
        got = operator(x, apart[::2], orders[::2])
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(*(torch.autograd.grad(out.square().sum(), x) for out in (got, want)))
