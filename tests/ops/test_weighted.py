"""Message passing along edges with weights or attributes, against a loop over edges in double precision."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import grad, hessian, jacrev, jvp, vmap
from torch_geometric.nn import GraphConv

from sopool.ops.message_passing.neighbors import aggregate, neighbors_of
from sopool.ops.message_passing.shifted import aggregate_shifted
from tests.helpers.backends import every_way
from tests.helpers.strategies import draw_rows, seeds

HOW = ["sum", "mean", "max"]
WEIGHTS = torch.tensor([0.0, 1.0, -1.5, 0.25, 3.0], dtype=torch.float64)


def random_edges(seed, nodes, count=None):
    """Directed edges with loops and repeats, that leave some nodes without any; and a weight for each, 0 among them."""
    random = torch.Generator().manual_seed(seed)
    count = 2 * nodes if count is None else count
    edges = torch.randint(0, nodes, (2, count), generator=random) if nodes else torch.empty(2, 0, dtype=torch.long)
    picked = torch.randint(0, len(WEIGHTS), (edges.shape[1],), generator=random)
    return edges, WEIGHTS[picked]


def weighted_loop(x, edges, weights, how):
    """The combination of each node with the messages to it, one edge after the other."""
    lists = [[row] for row in x]
    for source, target, weight in zip(*edges.tolist(), weights, strict=True):
        lists[target].append(weight * x[source])
    combined = {
        "sum": lambda rows: rows.sum(0),
        "mean": lambda rows: rows.mean(0),
        "max": lambda rows: rows.amax(0),
    }[how]
    return torch.stack([combined(torch.stack(rows)) for rows in lists]) if lists else x


def shifted_loop(x, edges, shifts, weights):
    rows = list(x)
    for number, (source, target) in enumerate(edges.t().tolist()):
        rows[target] = rows[target] + weights[number] * (x[source] + shifts[number]).relu()
    return torch.stack(rows) if rows else x


def weighted(edges, weights, nodes, how):
    neighbors = neighbors_of(edges, nodes, edge_weight=weights)
    return lambda x: aggregate(x, neighbors, how, neighbors.values.weights)


@every_way
@pytest.mark.parametrize("how", HOW)
@given(st.integers(0, 9), st.integers(1, 4), seeds)
def test_is_the_loop_over_edges(how, nodes, width, seed):
    edges, weights = random_edges(seed, nodes)
    x = draw_rows(seed, nodes, width).requires_grad_()
    got = weighted(edges, weights, nodes, how)(x)
    want = weighted_loop(x, edges, weights, how)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    factor = draw_rows(seed + 1, nodes, width)
    gradients = [
        torch.autograd.grad((out * factor).sum(), x, allow_unused=True, materialize_grads=True)[0]
        for out in (got, want)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@every_way
@pytest.mark.parametrize("how", HOW)
def test_derivatives(how, check_gradients):
    edges, weights = random_edges(1, 6)
    x = draw_rows(4, 6, 3).requires_grad_()
    check_gradients(weighted(edges, weights, 6, how), (x,), twice=how != "max")


@pytest.mark.parametrize("how", HOW)
def test_gradients_of_weights(how):
    edges, weights = random_edges(2, 6)
    x = draw_rows(4, 6, 3)
    gradients = [
        torch.autograd.functional.jacobian(lambda given, f=f: f(given), weights + 0.1)
        for f in (lambda w: weighted(edges, w, 6, how)(x), lambda w: weighted_loop(x, edges, w, how))
    ]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("how", HOW)
def test_transforms(how):
    edges, weights = random_edges(3, 5)
    x, v = draw_rows(1, 5, 2), draw_rows(2, 5, 2)
    f = weighted(edges, weights, 5, how)

    def loss(x):
        return f(x).sin().sum()

    leaf = x.clone().requires_grad_()
    torch.testing.assert_close(grad(loss)(x), torch.autograd.grad(loss(leaf), leaf)[0])
    torch.testing.assert_close(jvp(f, (x,), (v,))[1], torch.einsum("abcd,cd->ab", jacrev(f)(x), v))
    some = draw_rows(3, 4, 5, 2)
    torch.testing.assert_close(vmap(f)(some), torch.stack([f(one) for one in some]))
    if how != "max":
        torch.testing.assert_close(hessian(loss)(x), torch.autograd.functional.hessian(loss, x))


@every_way
@pytest.mark.parametrize("how", HOW)
def test_weights_of_one_change_nothing(how):
    edges, weights = random_edges(4, 8)
    x = draw_rows(5, 8, 3)
    got = weighted(edges, torch.ones_like(weights), 8, how)(x)
    torch.testing.assert_close(got, aggregate(x, neighbors_of(edges, 8), how), rtol=1e-13, atol=1e-13)


@every_way
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_may_have_another_precision_than_nodes(dtype):
    edges, weights = random_edges(6, 7)
    x = draw_rows(6, 7, 4, dtype=dtype)
    for how in HOW:
        got = weighted(edges, weights.float(), 7, how)(x)
        assert got.dtype == dtype
        want = weighted_loop(x.double(), edges, weights, how)
        torch.testing.assert_close(got.double(), want, rtol=3e-2, atol=3e-2)


@every_way
def test_values_may_lie_apart():
    """As those of a layer do that lies beside the others."""
    edges, weights = random_edges(7, 6)
    wide = draw_rows(2, 6, 8)
    for how in HOW:
        f = weighted(edges, weights, 6, how)
        torch.testing.assert_close(f(wide[:, 2:5]), f(wide[:, 2:5].contiguous()), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_is_pyg_s_layer(how):
    """The self-loops that PyG adds here are what every node sends to itself."""
    edges, weights = random_edges(8, 9)
    x = draw_rows(8, 9, 4)
    layer = GraphConv(4, 4, aggr={"sum": "add"}.get(how, how), bias=False).double()
    layer.lin_root.weight.data.zero_()
    layer.lin_rel.weight.data = torch.eye(4, dtype=torch.float64)
    loops = torch.arange(9).expand(2, -1)
    want = layer(x, torch.cat([edges, loops], 1), torch.cat([weights, torch.ones(9, dtype=torch.float64)]))
    torch.testing.assert_close(weighted(edges, weights, 9, how)(x), want, rtol=1e-12, atol=1e-12)


@given(st.integers(0, 9), st.integers(1, 4), st.booleans(), seeds)
def test_shifted_messages_are_the_loop_over_edges(nodes, width, has_weights, seed):
    edges, weights = random_edges(seed, nodes)
    shifts = draw_rows(seed + 1, edges.shape[1], width).requires_grad_()
    x = draw_rows(seed, nodes, width).requires_grad_()
    neighbors = neighbors_of(edges, nodes, edge_attr=shifts, edge_weight=weights if has_weights else None)
    got = aggregate_shifted(x, neighbors, neighbors.values.attributes, neighbors.values.weights)
    want = shifted_loop(x, edges, shifts, weights if has_weights else torch.ones_like(weights))
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    factor = draw_rows(seed + 2, nodes, width)
    gradients = [
        torch.autograd.grad((out * factor).sum(), (x, shifts), allow_unused=True, materialize_grads=True)
        for out in (got, want)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def test_derivatives_of_shifted_messages(check_gradients):
    edges, weights = random_edges(1, 5)
    neighbors = neighbors_of(edges, 5, edge_attr=torch.empty(10, 0), edge_weight=weights)
    inputs = draw_rows(1, 5, 2).requires_grad_(), draw_rows(2, 15, 2).requires_grad_()

    def function(x, shifts):
        return aggregate_shifted(x, neighbors, shifts, neighbors.values.weights).square()

    check_gradients(function, inputs)


def test_transforms_of_shifted_messages():
    edges, weights = random_edges(1, 5)
    neighbors = neighbors_of(edges, 5, edge_weight=weights)
    x, shifts = draw_rows(1, 5, 2), draw_rows(2, 15, 2)

    def f(x, shifts):
        return aggregate_shifted(x, neighbors, shifts, neighbors.values.weights).square().sum()

    leaf = x.clone().requires_grad_()
    torch.testing.assert_close(grad(f)(x, shifts), torch.autograd.grad(f(leaf, shifts), leaf)[0])
    want = torch.autograd.functional.hessian(lambda x: f(x, shifts), x)
    torch.testing.assert_close(hessian(f)(x, shifts), want)


def test_the_order_matches_the_transposed_lists():
    """Each entry of the transposed lists is the entry of the same edge, repeated edges told apart."""
    edges, _ = random_edges(9, 7, 40)
    numbers = torch.arange(1.0, 41)
    graph = neighbors_of(edges, 7, edge_weight=numbers)
    starts, receivers = graph.transposed
    sender = torch.repeat_interleave(torch.arange(7), starts.diff())
    found = graph.values.weights[graph.values.order]
    owner = torch.repeat_interleave(torch.arange(7), graph.ptr.diff())
    assert torch.equal(graph.nodes[graph.values.order], sender)
    assert torch.equal(owner[graph.values.order], receivers)
    assert sorted(found.tolist()) == [1.0] * 7 + numbers.tolist()
