"""Layers of several models against torch's own, one model at a time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.ops.many_models import grouped
from sopool.ops.segment.gram import segment_apply
from tests.helpers.backends import every_way, on_cpu
from tests.helpers.strategies import draw_rows, ptr_of, seeds

rows_of_models = st.lists(st.integers(2, 9), min_size=1, max_size=4)


def rows_of(sizes):
    return grouped.Rows(ptr_of(sizes))


def layer(sizes, seed, width=3, hidden=4, dtype=torch.float64):
    models = len(sizes)
    x = draw_rows(seed, sum(sizes), width, dtype=dtype)
    weight = draw_rows(seed + 1, models, width, hidden, dtype=dtype)
    scale, shift = (draw_rows(seed + i, models, hidden, dtype=dtype) for i in (2, 3))
    running = (draw_rows(seed + 4, models, hidden, dtype=dtype), draw_rows(seed + 5, models, hidden, dtype=dtype).abs())
    return x, weight, scale, shift, running


def by_torch(x, weight, scale, shift, running, sizes, training):
    outs = []
    means = []
    variances = []
    for m, rows in enumerate(x.split(sizes)):
        norm = torch.nn.BatchNorm1d(weight.shape[2], dtype=x.dtype).train(training)
        norm.weight.data = scale[m].clone()
        norm.bias.data = shift[m].clone()
        norm.running_mean = running[0][m].clone()
        norm.running_var = running[1][m].clone()
        outs.append(norm(rows @ weight[m]).relu())
        means.append(norm.running_mean)
        variances.append(norm.running_var)
    return torch.cat(outs), torch.stack(means), torch.stack(variances)


@every_way
@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), seeds)
def test_linear_is_the_primitive_with_models_for_segments(sizes, seed):
    x, weight, *_ = layer(sizes, seed)
    expected = segment_apply(x, weight.mT, ptr_of(sizes))
    torch.testing.assert_close(grouped.grouped_linear(x, weight, rows_of(sizes)), expected)


@every_way
@given(rows_of_models, seeds)
def test_norm_is_that_of_torch(sizes, seed):
    x, weight, scale, shift, running = layer(sizes, seed)
    expected, mean, variance = by_torch(x, weight, scale, shift, running, sizes, training=True)
    evaluated, *_ = by_torch(x, weight, scale, shift, running, sizes, training=False)
    rows = rows_of(sizes)
    torch.testing.assert_close(grouped.grouped_norm_relu_eval(x, weight, scale, shift, running, rows), evaluated)
    with torch.no_grad():
        quick = grouped.grouped_norm_relu_eval(x, weight, scale, shift, running, rows)
    torch.testing.assert_close(quick, evaluated)
    torch.testing.assert_close(grouped.grouped_norm_relu(x, weight, scale, shift, running, rows), expected)
    torch.testing.assert_close(running, (mean, variance))


@every_way
def test_gradients(check_gradients):
    sizes = [5, 3, 7]
    rows = rows_of([5, 3, 7])
    tensors = layer(sizes, 0)[:4]
    running = (torch.zeros(3, 4, dtype=torch.float64), torch.ones(3, 4, dtype=torch.float64))
    inputs = [tensor.requires_grad_() for tensor in tensors]
    check_gradients(lambda x, weight: grouped.grouped_linear(x, weight, rows), inputs[:2], twice=False)
    check_gradients(lambda *given: grouped.grouped_norm_relu(*given, running, rows), inputs, twice=False)


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_model_without_rows_changes_nothing(empty):
    sizes = [4, 4]
    sizes.insert(empty, 0)
    x, weight, scale, shift, running = layer(sizes, 1)
    before = [tensor.clone() for tensor in running]
    leaves = [tensor.requires_grad_() for tensor in (x, weight, scale, shift)]
    out = grouped.grouped_norm_relu(*leaves, running, rows_of(sizes))
    gradients = torch.autograd.grad(out.sum(), leaves)
    assert all(gradient[empty].eq(0).all() for gradient in gradients[1:])
    assert all(torch.equal(now[empty], then[empty]) for now, then in zip(running, before, strict=True))


@on_cpu
def test_path_for_other_devices_agrees(monkeypatch):
    """The composed path, used wherever there is no loop over models, run here on the CPU."""
    sizes = [5, 0, 8]
    x, weight, scale, shift, running = layer(sizes, 2)
    copies = tuple(tensor.clone() for tensor in running)
    rows = rows_of(sizes)

    def run(statistics):
        leaves = [tensor.clone().requires_grad_() for tensor in (x, weight, scale, shift)]
        out = grouped.grouped_norm_relu(*leaves, statistics, rows)
        return out, torch.autograd.grad(out.square().sum(), leaves)

    quick = run(running)
    monkeypatch.setattr(grouped, "on_cpu", lambda x: False)
    torch.testing.assert_close(run(copies), quick)
    torch.testing.assert_close(copies, running)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_does_not_see_the_others(dtype):
    """At any place in the bank, up to the rounding of products, which may depend on where matrices lie."""
    sizes = [17, 5, 40]
    x, weight, scale, shift, running = layer(sizes, 3, dtype=dtype)
    copies = tuple(tensor.clone() for tensor in running)
    together = grouped.grouped_norm_relu(x, weight, scale, shift, running, rows_of(sizes)).split(sizes)
    for m, own_rows in enumerate(x.split(sizes)):
        own = tuple(tensor[m : m + 1] for tensor in copies)
        pieces = (weight[m : m + 1], scale[m : m + 1], shift[m : m + 1])
        alone = grouped.grouped_norm_relu(own_rows.clone(), *pieces, own, rows_of([len(own_rows)]))
        torch.testing.assert_close(alone, together[m])
        for a, b in zip(own, running, strict=True):
            torch.testing.assert_close(a[0], b[m])
