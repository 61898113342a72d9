"""Operators under the transforms of torch.func and in forward mode, against reverse mode one sample at a time."""

import pytest
import torch
from torch.func import grad, jvp, vmap

from sopool.ops import segment_apply, segment_bilinear, segment_covariance
from sopool.ops.many_models.grouped import grouped_linear, grouped_norm_relu, grouped_scores
from sopool.ops.many_models.model_rows import Rows
from sopool.ops.message_passing.labelled import aggregate_labelled
from sopool.ops.message_passing.neighbors import aggregate, neighbors_of
from sopool.ops.message_passing.select import rank
from tests.helpers.backends import by_kernels, on_cpu, weights_like
from tests.helpers.strategies import draw_rows, ptr_of
from tests.ops.test_labelled import labelled, random_graphs
from tests.ops.test_operators import CHANNELS, OPERATORS, OTHERS

SIZES = [0, 3, 1, 0, 4, 0]
PTR = ptr_of(SIZES)
ROWS = Rows(torch.tensor([0, 3, 8]))
GRAPH = neighbors_of(torch.tensor([[0, 1, 1, 2, 7, 7], [1, 0, 2, 1, 4, 4]]), 8)
LABELLED = labelled(*random_graphs(0, [8], 2), 8, 2)
WEIGHT = draw_rows(8, 2, CHANNELS, 2)
BIAS = draw_rows(9, 2, 2)
VECTORS = draw_rows(7, 1, 2, CHANNELS)
ORDER = torch.randperm(8, generator=torch.Generator().manual_seed(0))

FUNCTIONS = {
    **{name: lambda x, f=f: f(x, PTR) for name, (f, _) in OPERATORS.items()},
    **{f"{name} in another order": lambda x, f=f: f(x, PTR, order=ORDER) for name, (f, _) in OPERATORS.items()},
    **{name: lambda x, f=f: f(x, PTR) for name, f in OTHERS.items()},
    **{f"neighbours {how}": lambda x, how=how: aggregate(x, GRAPH, how) for how in ("sum", "mean", "max")},
    "labelled": lambda x: aggregate_labelled(x, LABELLED, VECTORS.to(x), Rows(torch.tensor([0, 8]))),
    "linear": lambda x: grouped_linear(x, WEIGHT, ROWS),
    "scores": lambda x: grouped_scores(x.view(2, 4, CHANNELS), WEIGHT.mT, BIAS),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


@every_function
def test_tangents_and_samples(name):
    """<w, J v> is <J^T w, v>, and samples are taken as one after the other."""
    function = FUNCTIONS[name]
    (x, v) = draw_rows(0, 2, sum(SIZES), CHANNELS)
    x = x.requires_grad_()
    v = v.requires_grad_()
    values = function(x), function(v)
    w = weights_like(values[0])
    gradients = [torch.autograd.grad(value, rows, w)[0] for value, rows in zip(values, (x, v), strict=True)]
    x = x.detach()
    v = v.detach()
    value, tangent = jvp(function, (x,), (v,))
    torch.testing.assert_close(value, values[0])
    torch.testing.assert_close((w * tangent).sum(), (gradients[0] * v).sum())
    samples = torch.stack([x, v])
    torch.testing.assert_close(vmap(function)(samples), torch.stack(values))
    got = vmap(grad(lambda x: (w * function(x)).sum()))(samples)
    torch.testing.assert_close(got, torch.stack(gradients))


def test_equal_neighbours_share_in_every_mode():
    x = torch.ones(8, 2, dtype=torch.float64)
    v = draw_rows(0, 8, 2)
    jacobian = torch.autograd.functional.jacobian(lambda x: aggregate(x, GRAPH, "max"), x)
    tangent = jvp(lambda x: aggregate(x, GRAPH, "max"), (x,), (v,))[1]
    torch.testing.assert_close(tangent, (jacobian * v).sum((-1, -2)))


@on_cpu
@pytest.mark.parametrize("operator", [segment_apply, segment_bilinear])
def test_tangents_of_both_factors(operator):
    x, dx = draw_rows(0, 2, sum(SIZES), CHANNELS)
    shape = (len(SIZES), 2, CHANNELS) if operator is segment_apply else (CHANNELS, 2)
    w, dw = draw_rows(1, 2, *shape)
    by_x, by_w = torch.autograd.functional.jacobian(lambda x, w: operator(x, w, PTR), (x, w))
    want = (by_x * dx).flatten(-dx.dim()).sum(-1) + (by_w * dw).flatten(-dw.dim()).sum(-1)
    torch.testing.assert_close(jvp(lambda x, w: operator(x, w, PTR), (x, w), (dx, dw))[1], want)


def test_graphs_may_differ_between_samples():
    x = draw_rows(0, 2, 8, CHANNELS)
    ptrs = torch.tensor([[0, 2, 8], [0, 8, 8]])
    want = [segment_covariance(rows, ptr) for rows, ptr in zip(x, ptrs, strict=True)]
    torch.testing.assert_close(vmap(segment_covariance)(x, ptrs), torch.stack(want))
    with pytest.raises(ValueError, match="differs between the samples"):
        vmap(OTHERS["max"])(x, ptrs)


def test_ranks_of_samples():
    score = draw_rows(0, 3, 8).round()
    want = torch.stack([rank(one, PTR, None) for one in score])
    assert torch.equal(vmap(lambda score: rank(score, PTR, None))(score), want)
    both = vmap(lambda score, then: rank(score, PTR, then), (0, None))(score, score[0])
    assert torch.equal(both, torch.stack([rank(one, PTR, score[0]) for one in score]))


@by_kernels
def test_spare_rows_of_samples():
    x = draw_rows(0, 2, 8, CHANNELS)
    ptr = torch.tensor([0, 2, 5])
    x[:, 5:] = torch.nan
    for operator in ("gram", "apply", "sum"):
        function = OPERATORS[operator][0] if operator in OPERATORS else OTHERS[operator]
        want = torch.stack([function(rows, ptr) for rows in x])
        torch.testing.assert_close(vmap(lambda x, f=function: f(x, ptr))(x), want)


def test_what_has_no_tangent_or_no_second_derivative_says_so():
    x = draw_rows(0, 8, CHANNELS).requires_grad_()
    numbers = draw_rows(2, 4, 2, 2)
    layers = {
        "norm": lambda x: grouped_norm_relu(x, WEIGHT, *numbers[:2], (numbers[2], numbers[3].abs()), ROWS),
        "labelled": FUNCTIONS["labelled"],
    }
    for layer in layers.values():
        gradient = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)[0]
        with pytest.raises(RuntimeError, match="has no second derivative"):
            torch.autograd.grad((gradient * x).sum(), x)
    with pytest.raises((NotImplementedError, RuntimeError), match=r"jvp|setup_context"):
        jvp(layers["norm"], (x.detach(),), (x.detach(),))
