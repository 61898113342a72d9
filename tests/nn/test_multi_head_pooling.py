import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from sopool.nn import MultiHeadSecondOrderPooling
from sopool.ops.message_passing.dense import normalize_by_degree
from tests.helpers.strategies import draw_rows, index_of, seeds

SIZES = [4, 0, 1, 5]  # the third has no edges


@st.composite
def graphs(draw):
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    start = 0
    edges = []
    for n in sizes:
        node = st.integers(start, start + n - 1)
        edges += draw(st.lists(st.tuples(node, node), max_size=8)) if n else []
        start += n
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    return sizes, edge_index[:, torch.randperm(edge_index.shape[1], generator=torch.Generator().manual_seed(0))]


def layer(normalize=None, heads=2):
    torch.manual_seed(0)
    return MultiHeadSecondOrderPooling(3, heads, normalize).double()


def naive(pool, x, edge_index, weight, n):
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    for (i, j), w in zip(edge_index.t().tolist(), weight.tolist(), strict=True):
        adjacency[i, j] += w
    c = pool.queries @ x.T
    return c, c @ x, c @ adjacency @ c.T


@given(graphs(), seeds, st.booleans())
def test_is_the_formula_graph_by_graph(batch, seed, weighted):
    """Directed edges, duplicates, self-loops, isolated nodes, graphs without edges or nodes."""
    sizes, edge_index = batch
    pool = layer()
    x = draw_rows(seed, sum(sizes), 3)
    weight = draw_rows(seed, edge_index.shape[1]) if weighted else torch.ones(edge_index.shape[1], dtype=torch.float64)
    out = pool(x, edge_index, weight if weighted else None, index_of(sizes), len(sizes))
    start = 0
    for g, n in enumerate(sizes):
        nodes = slice(start, start + n)
        here = ((edge_index >= start) & (edge_index < start + n)).all(0)
        c, h, a = naive(pool, x[nodes], edge_index[:, here] - start, weight[here], n)
        torch.testing.assert_close(out.contribution[nodes], c.T)
        torch.testing.assert_close(out.x[2 * g : 2 * g + 2], h)
        torch.testing.assert_close(out.adj[g], a)
        start += n


@given(graphs(), seeds)
def test_the_record_is_a_batch_of_graphs(batch, seed):
    sizes, edge_index = batch
    out = layer(heads=3)(draw_rows(seed, sum(sizes), 3), edge_index, batch=index_of(sizes), batch_size=len(sizes))
    assert out.batch.tolist() == [g for g in range(len(sizes)) for _ in range(3)]
    dense = torch.zeros(3 * len(sizes), 3 * len(sizes), dtype=torch.float64)
    dense[out.edge_index[0], out.edge_index[1]] = out.edge_weight
    assert torch.equal(dense, torch.block_diag(*out.adj))
    again = layer(heads=2)(out.x, out.edge_index, out.edge_weight, out.batch, len(sizes))
    assert again.adj.shape == (len(sizes), 2, 2)


def test_unsorted_batch():
    pool = layer()
    x = draw_rows(0, 10, 3)
    edge_index = torch.tensor([[0, 1, 2, 6, 7], [1, 2, 0, 7, 9]])
    want = pool(x, edge_index, batch=index_of(SIZES), batch_size=4)
    shuffle = torch.randperm(10)
    back = torch.argsort(shuffle)
    got = pool(x[shuffle], back[edge_index], batch=index_of(SIZES)[shuffle], batch_size=4)
    torch.testing.assert_close(got.x, want.x)
    torch.testing.assert_close(got.adj, want.adj)
    torch.testing.assert_close(got.contribution, want.contribution[shuffle])


def test_degree_keeps_values_in_bounds_however_large_the_graph():
    """|A'| as a matrix of absolute values has norm at most 1, signed or not; H' is an average."""
    for n in (3, 300, 3000):
        x = draw_rows(0, n, 3)
        edge_index = torch.randint(0, n, (2, 4 * n))
        out = layer("degree", heads=5)(x, edge_index)
        assert torch.linalg.matrix_norm(out.adj[0].abs(), 2).item() <= 1 + 1e-6
        assert out.x.abs().max().item() < 10
        assert out.adj.isfinite().all()


@given(st.floats(-6, 6), st.sampled_from([5, 2000]))
def test_degree_does_not_see_the_scale_of_features_nor_the_size(exponent, n):
    """In float32, with finite gradients; against A' of features about 1, undivided."""
    torch.manual_seed(0)
    x = torch.rand(n, 3)
    edge_index = torch.randint(0, n, (2, 4 * n))
    pool = MultiHeadSecondOrderPooling(3, 4)
    contribution = x.double() @ pool.queries.detach().double().t()
    adj = contribution[edge_index[0]].t() @ contribution[edge_index[1]]
    degrees = adj.abs().sum(1, keepdim=True) * adj.abs().sum(0, keepdim=True)
    scaled = (x * 10**exponent).requires_grad_()
    found = pool(scaled, edge_index).adj[0]
    torch.testing.assert_close(found, (adj / degrees.sqrt()).float(), rtol=0, atol=1e-4)
    (gradient,) = torch.autograd.grad(found.square().sum(), scaled)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(exponent=st.floats(-25, 30), seed=seeds)
def test_norm_is_exact_for_features_of_any_magnitude(dtype, exponent, seed):
    """H' grows as H does, by 10**exponent; batches unsorted, with a graph of zeros, one without nodes and one node."""
    pool = MultiHeadSecondOrderPooling(3, 4, "norm").to(dtype)
    batch = torch.tensor([2, 0, 0, 2, 4, 2, 0, 3])
    x = draw_rows(seed, 8, 3).masked_fill((batch == 4).unsqueeze(1), 0)
    scaled = (x * 10**exponent).to(dtype).requires_grad_()
    found = pool(scaled, torch.empty(2, 0, dtype=torch.long), batch=batch, batch_size=5).x
    queries = pool.queries.detach().double()
    graphs = [scaled.detach().double()[batch == g] for g in range(5)]
    want = torch.cat([queries @ h.T @ h / (h.norm() if h.any() else 1) for h in graphs])
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-5 * want.abs().max().item())
    (gradient,) = torch.autograd.grad(found.sum(), scaled)
    assert gradient.isfinite().all()


def test_slopes_of_the_degree_where_an_edge_counts_for_almost_nothing():
    adj = torch.tensor([[[1.0, 3e-7], [2e-7, 1e-6]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(normalize_by_degree, adj, eps=1e-8)


@pytest.mark.parametrize("normalize", ["degree", "norm"])
def test_degree_of_nothing_is_nothing(normalize):
    empty = torch.empty(2, 0, dtype=torch.long)
    x = draw_rows(0, 4, 3).requires_grad_()
    out = layer(normalize)(x, empty)
    assert torch.equal(out.adj, torch.zeros_like(out.adj))
    (gradient,) = torch.autograd.grad(out.adj.sum() + out.x.sum(), x)
    assert gradient.isfinite().all()
    none = layer(normalize)(x[:0], empty)
    assert torch.equal(none.x, torch.zeros(2, 3))
    assert none.adj.shape == (1, 2, 2)


@pytest.mark.parametrize("normalize", [None, "degree", "norm"])
def test_gradients(normalize):
    pool = layer(normalize)
    x = draw_rows(0, 5, 3).requires_grad_()
    edge_index = torch.tensor([[0, 1, 3, 3], [1, 2, 4, 4]])
    weight = draw_rows(1, 4).requires_grad_()
    batch = torch.tensor([0, 0, 0, 1, 1])

    def function(x, weight, queries):
        out = torch.func.functional_call(pool, {"queries": queries}, (x, edge_index, weight, batch, 2))
        return out.x, out.edge_weight

    assert gradcheck(function, (x, weight, pool.queries))


def test_compiles(fresh_compiler):
    pool = MultiHeadSecondOrderPooling(3, 2)
    compiled = torch.compile(pool, fullgraph=True, dynamic=True, backend="aot_eager")
    x = torch.randn(10, 3)
    edge_index = torch.tensor([[0, 1, 2, 6, 7], [1, 2, 0, 7, 9]])
    arguments = (x, edge_index, torch.rand(5), index_of(SIZES), 4)
    got, want = (layer(*arguments) for layer in (compiled, pool))
    torch.testing.assert_close((*got[:4], got.adj, got.lift(got.x)), (*want[:4], want.adj, want.lift(want.x)))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"x": torch.ones(10, 4)}, r"x has shape \[10, 4\].*\[nodes, 3\]"),
        ({"edge_index": torch.zeros(3, 5, dtype=torch.long)}, r"edge_index has dtype torch.int64 and shape \[3, 5\]"),
        ({"edge_index": torch.zeros(2, 5)}, "edge_index has dtype torch.float32"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight has shape \[3\] for 2 edges"),
        ({"edge_index": torch.tensor([[0, 3], [1, 10]])}, r"Edge 1 is \[3, 10\].*nodes 0 to 9"),
        ({"edge_index": torch.tensor([[0, 3], [1, 5]])}, r"Edge 1 is \[3, 5\] and joins graphs \[0, 3\]"),
        ({"batch": torch.zeros(9, dtype=torch.long)}, r"batch has shape \[9\] for 10 nodes"),
    ],
)
def test_bad_input(changed, says):
    given = {
        "x": torch.ones(10, 3),
        "edge_index": torch.tensor([[0, 2], [1, 3]]),
        "batch": index_of(SIZES),
        "batch_size": 4,
    }
    with pytest.raises(ValueError, match=says):
        MultiHeadSecondOrderPooling(3, 2)(**given | changed)
    for wrong in ({"heads": 0}, {"channels": 0}, {"normalize": "size"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            MultiHeadSecondOrderPooling(**{"channels": 3, "heads": 2} | wrong)


def test_repr():
    assert repr(MultiHeadSecondOrderPooling(3, 2)) == "MultiHeadSecondOrderPooling(3, heads=2)"
    assert repr(MultiHeadSecondOrderPooling(3, 2, None)) == "MultiHeadSecondOrderPooling(3, heads=2, normalize=None)"


@pytest.mark.parametrize("weight", [torch.tensor([0.5, 2.0]).double(), torch.tensor([3, 1])], ids=["float64", "int64"])
def test_weights_may_be_of_another_type(weight):
    """As those that come from NumPy are."""
    x = draw_rows(0, 3, 3, dtype=torch.float32)
    edges = torch.tensor([[0, 1], [1, 2]])
    out = layer().float()(x, edges, edge_weight=weight)
    torch.testing.assert_close(
        out.adj.double(), layer()(x.double(), edges, edge_weight=weight).adj, rtol=1e-5, atol=1e-5
    )
    assert out.adj.dtype == torch.float32
