"""Sums over pairs of nodes at each distance against dense matrices of distances."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import grad, jvp, vmap

from sopool.nn.pool.edge_list import all_pairs
from sopool.ops import count_pairs, find_pairs, segment_gram, segment_pairs, segment_sum, segment_walks, share_pairs
from sopool.ops.message_passing import distances
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.distances import count_distances, find_distances
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.pairs import list_pairs
from tests.helpers.backends import every_way, on_cpu, weights_like
from tests.helpers.pair_graphs import distance_matrix, naive_pairs, random_edges
from tests.helpers.pair_graphs import sizes as few_sizes
from tests.helpers.strategies import draw_rows, index_of, ptr_of, seeds
from tests.ops.test_gram import DTYPES, assert_near

SIZES = [0, 5, 1, 0, 7, 2, 0]
PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
steps = st.integers(1, 4)


def batch_of(sizes, seed=0, directed=False, distances=3, width=2, dtype=torch.float64):
    edges = random_edges(sizes, seed, directed)
    z = draw_rows(seed, sum(sizes), width, dtype=dtype)
    return z, edges, ptr_of(sizes), find_pairs(edges, sum(sizes), distances)


@every_way
@given(few_sizes, steps, seeds, st.booleans(), st.sampled_from(DTYPES), st.booleans())
def test_is_the_product_with_dense_matrices(sizes, distances, seed, directed, dtype, rest):
    z, edges, ptr, pairs = batch_of(sizes, seed, directed, distances, dtype=dtype)
    got = segment_pairs(z, pairs, ptr, rest=rest)
    assert got.dtype == dtype
    assert got.shape == (len(sizes), distances + 1 + rest, 2, 2)
    assert_near(got, naive_pairs(z, edges, ptr, distances, rest))


@on_cpu
@given(few_sizes, steps, seeds, st.booleans())
def test_lists_hold_each_pair_once_sorted(sizes, most, seed, directed):
    edges = random_edges(sizes, seed, directed)
    nodes = sum(sizes)
    steps_apart = distance_matrix(edges, nodes)
    found = find_distances(edges, nodes, most)
    near = torch.stack([steps_apart == k for k in range(1, most + 1)], 1)  # [N, K, N]
    assert torch.equal(found.nodes, near.nonzero()[:, 2])
    assert torch.equal(found.counts, near.sum(2))
    assert torch.equal(count_distances(edges, nodes, most), found.counts)
    assert directed or found.undirected
    index, apart = find_pairs(edges, nodes, most).coordinates()
    assert torch.equal(steps_apart[index[0], index[1]], apart.double())


@on_cpu
def test_searches_that_are_too_many_at_once_are_divided(monkeypatch):
    edges = random_edges([40, 9, 1, 30], 0, directed=True, density=3)
    want = find_distances(edges, 80, 4)
    monkeypatch.setattr(distances, "CAPACITY", 50)
    got = find_distances(edges, 80, 4)
    assert torch.equal(got.nodes, want.nodes)
    assert torch.equal(got.counts, want.counts)
    assert torch.equal(count_distances(edges, 80, 4), want.counts)


@on_cpu
@given(few_sizes, steps, seeds, st.booleans())
def test_pairs_given_in_any_order_are_the_same_lists(sizes, most, seed, directed):
    *_, pairs = batch_of(sizes, seed, directed, most)
    index, apart = pairs.coordinates()
    shuffle = torch.randperm(len(apart), generator=torch.Generator().manual_seed(seed))
    for number in range(1, most + 1):
        got = list_pairs(index[:, shuffle], apart[shuffle], sum(sizes), number)
        *_, want = batch_of(sizes, seed, directed, number)
        assert torch.equal(got.ptr, want.ptr)
        assert torch.equal(got.transposed[0], want.transposed[0])
        assert by_list(got.transposed) == by_list(want.transposed)


def by_list(transposed):
    ptr, lists = transposed
    return [sorted(part.tolist()) for part in lists.split(ptr.diff().tolist())]


@on_cpu
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_large_and_small_graphs_together(dtype):
    """Beyond the sizes that compiled loops multiply, and a path longer than the largest distance."""
    sizes = [1, 0, 300, 2, 0, 40]
    random = random_edges(sizes, 0, directed=False)
    path = torch.stack([torch.arange(303, 342), torch.arange(304, 343)])
    edges = torch.cat([random[:, random[0] < 303], path, path.flip(0)], 1)
    z = draw_rows(0, sum(sizes), 5, dtype=dtype)
    ptr = ptr_of(sizes)
    got = segment_pairs(z, find_pairs(edges, len(z), 6), ptr, rest=True)
    assert_near(got, naive_pairs(z, edges, ptr, 6, rest=True))


@on_cpu
@given(few_sizes, seeds, st.booleans())
def test_all_pairs_together_are_the_square_of_the_sum(sizes, seed, directed):
    z, _, ptr, pairs = batch_of(sizes, seed, directed, 2)
    s = segment_sum(z, ptr)
    torch.testing.assert_close(segment_pairs(z, pairs, ptr, rest=True).sum(1), s.unsqueeze(2) * s.unsqueeze(1))
    squares = ptr.diff().square()
    assert torch.equal(count_pairs(pairs, ptr, rest=True).sum(1), squares)


@on_cpu
@given(few_sizes, seeds)
def test_distance_0_is_the_gram_matrix_and_undirected_graphs_are_symmetric(sizes, seed):
    z, _, ptr, pairs = batch_of(sizes, seed)
    got = segment_pairs(z, pairs, ptr, rest=True)
    torch.testing.assert_close(got[:, 0], segment_gram(z, z, ptr))
    torch.testing.assert_close(got, got.mT)


def test_directed_pairs_keep_the_full_matrix():
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    got = segment_pairs(z, find_pairs(torch.tensor([[0], [1]]), 2, 1), torch.tensor([0, 2]), rest=True)
    assert got[0, 1].tolist() == [[0, 1], [0, 0]]
    assert got[0, 2].tolist() == [[0, 0], [1, 0]]


@on_cpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_on_graphs_of_diameter_2_the_rest_of_distance_1_is_distance_2(dtype):
    """Stars and a cycle of 5 nodes; the rest of distance 2 is exactly zero, though not all sums are exact."""
    star = torch.tensor([[0] * 6, range(1, 7)])
    ring = 7 + torch.tensor([range(5), [1, 2, 3, 4, 0]])
    edges = torch.cat([star, star.flip(0), ring, ring.flip(0)], 1)
    z = draw_rows(0, 12, 3, dtype=dtype)
    ptr = torch.tensor([0, 7, 12])
    near = segment_pairs(z, find_pairs(edges, 12, 1), ptr, rest=True)
    far = segment_pairs(z, find_pairs(edges, 12, 2), ptr, rest=True)
    torch.testing.assert_close(near, far[:, :3])
    assert near[:, 2].abs().min() > 0
    assert torch.equal(far[:, 3], torch.zeros_like(far[:, 3]))


@every_way
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_where_there_is_no_pair_the_block_is_exactly_zero(dtype):
    """Huge and tiny features together, whose sums are not exact."""
    z, _, ptr, pairs = batch_of([6, 1, 8, 3], 3, distances=4, width=3, dtype=dtype)
    z[::2] *= 100
    z[1::3] *= 1e-3
    got = segment_pairs(z, pairs, ptr, rest=True)
    none = count_pairs(pairs, ptr, rest=True) == 0
    assert none.any()
    assert not got[none].any()
    assert got[~none].flatten(1).any(1).all()


@on_cpu
def test_the_rest_of_many_nodes_is_as_exact_as_its_own_size():
    """One pair out of a million is left; the difference of float32 matrices would be rounding noise."""
    nodes = 1001
    everyone = torch.combinations(torch.arange(nodes)).T[:, 1:]  # without the edge between nodes 0 and 1
    edges = torch.cat([everyone, everyone.flip(0)], 1)
    z = 1 + draw_rows(0, nodes, 2, dtype=torch.float32)
    got = segment_pairs(z, find_pairs(edges, nodes, 1), torch.tensor([0, nodes]), rest=True)[0, 2]
    want = torch.outer(z[0], z[1])
    torch.testing.assert_close(got, want + want.T, rtol=1e-5, atol=1e-5)


@on_cpu
@given(few_sizes, seeds, st.booleans())
def test_rows_in_any_order(sizes, seed, directed):
    z, edges, ptr, pairs = batch_of(sizes, seed, directed)
    shuffle = torch.randperm(len(z), generator=torch.Generator().manual_seed(seed))
    place = shuffle.argsort()
    got = segment_pairs(
        z[shuffle],
        find_pairs(place[edges], len(z), 3),
        index=index_of(sizes)[shuffle],
        dim_size=len(sizes),
        rest=True,
    )
    torch.testing.assert_close(got, segment_pairs(z, pairs, ptr, rest=True))


@on_cpu
@given(few_sizes, few_sizes, seeds)
def test_a_graph_does_not_see_its_batch(first, second, seed):
    z, edges, ptr, pairs = batch_of(first + second, seed)
    whole = segment_pairs(z, pairs, ptr, rest=True)
    cut = sum(first)
    within = edges[0] < cut
    halves = [
        (z[:cut], edges[:, within], first),
        (z[cut:], edges[:, ~within] - cut, second),
    ]
    apart = [segment_pairs(z, find_pairs(e, len(z), 3), ptr_of(sizes), rest=True) for z, e, sizes in halves]
    torch.testing.assert_close(whole, torch.cat(apart))


@every_way
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rest", [False, True])
def test_gradients(directed, rest, check_gradients):
    z, _, ptr, pairs = batch_of([4, 0, 1, 3], 1, directed)
    check_gradients(lambda z: segment_pairs(z, pairs, ptr, rest=rest), (z.requires_grad_(),))


@pytest.mark.parametrize("directed", [False, True])
def test_gradients_of_walks(directed, check_gradients):
    z, _, ptr, pairs = batch_of([4, 0, 1, 3], 1, directed, distances=1)
    check_gradients(lambda z: segment_walks(z, pairs, 3, ptr), (z.requires_grad_(),))


FUNCTIONS = {
    "pairs": lambda directed: (lambda z, p, ptr: segment_pairs(z, p, ptr), 3, directed),
    "rest": lambda directed: (lambda z, p, ptr: segment_pairs(z, p, ptr, rest=True), 3, directed),
    "walks": lambda directed: (lambda z, p, ptr: segment_walks(z, p, 2, ptr), 1, directed),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_and_samples(name):
    """<w, J v> is <J^T w, v>, and samples are taken as one after the other."""
    operator, most, directed = FUNCTIONS[name](True)
    x, _, ptr, pairs = batch_of(SIZES, 0, directed, most)
    v = draw_rows(7, *x.shape)

    def function(z):
        return operator(z, pairs, ptr)

    x.requires_grad_()
    value = function(x)
    w = weights_like(value)
    (gradient,) = torch.autograd.grad(value, x, w)
    x = x.detach()
    again, tangent = jvp(function, (x,), (v,))
    torch.testing.assert_close(again, value.detach())
    torch.testing.assert_close((w * tangent).sum(), (gradient * v).sum())
    torch.testing.assert_close(vmap(function)(torch.stack([x, v])), torch.stack([function(x), function(v)]))
    torch.testing.assert_close(grad(lambda z: (w * function(z)).sum())(x), gradient)


@on_cpu
def test_autocast_sums_in_float32():
    z, _, ptr, pairs = batch_of([6, 4], 0, dtype=torch.float32)
    z.requires_grad_()
    want = segment_pairs(z, pairs, ptr, rest=True)
    with torch.autocast("cpu", torch.bfloat16):
        got = segment_pairs(z, pairs, ptr, rest=True)
        (gradient,) = torch.autograd.grad(got.square().sum(), z)
        assert segment_pairs(z.bfloat16(), pairs, ptr).dtype == torch.float32
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(gradient, torch.autograd.grad(want.square().sum(), z)[0])


@on_cpu
def test_deterministic_bit_for_bit():
    z, _, ptr, pairs = batch_of([30] * 20, 0, width=5, dtype=torch.float32)
    z.requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        values = [segment_pairs(z, pairs, ptr, rest=True) for _ in range(3)]
        gradients = [torch.autograd.grad(value.square().sum(), z)[0] for value in values]
    finally:
        torch.use_deterministic_algorithms(False)
    for first, *others in (values, gradients):
        assert all(torch.equal(first, other) for other in others)


@on_cpu
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by the compiler itself
def test_compiled_code_computes_the_same(fresh_compiler):
    z, _, ptr, pairs = batch_of(SIZES, 0, dtype=torch.float32)
    z.requires_grad_()
    compiled = torch.compile(lambda z: segment_pairs(z, pairs, ptr, rest=True), backend="aot_eager", fullgraph=True)
    want = segment_pairs(z, pairs, ptr, rest=True)
    got = compiled(z)
    torch.testing.assert_close(got, want)
    w = weights_like(want)
    torch.testing.assert_close(torch.autograd.grad(got, z, w)[0], torch.autograd.grad(want, z, w)[0])


@on_cpu
@given(few_sizes, seeds, st.booleans())
def test_walks_are_powers_of_the_normalized_adjacency(sizes, seed, directed):
    z, edges, ptr, pairs = batch_of(sizes, seed, directed, distances=1)
    adjacency = (distance_matrix(edges, len(z)) == 1).double()
    p = adjacency / (adjacency.sum(1, keepdim=True) * adjacency.sum(0)).clamp(min=1).sqrt()
    got = segment_walks(z, pairs, 3, ptr)
    for k in range(4):
        want = segment_gram(z, torch.linalg.matrix_power(p, k) @ z, ptr)
        torch.testing.assert_close(got[:, k], want)


def naive_walks(z, edges, weights, ptr, steps):
    """Z_g^T P^k Z_g by dense matrices, where P sums the weights of parallel edges and degrees their sizes."""
    adjacency, sizes = (z.new_zeros(len(z), len(z)).index_put(tuple(edges), w, True) for w in (weights, weights.abs()))
    sums = sizes.sum(1, keepdim=True) * sizes.sum(0)
    p = adjacency / torch.where(sums > 0, sums, 1.0).sqrt()
    return torch.stack([segment_gram(z, torch.linalg.matrix_power(p, k) @ z, ptr) for k in range(steps + 1)], 1)


@on_cpu
@given(few_sizes, seeds, st.booleans())
def test_walks_along_neighbors_count_repeated_edges_and_loops(sizes, seed, directed):
    """From lists of neighbors and from edges with and without weights; without repeats and loops as from pairs."""
    z, edges, ptr, pairs = batch_of(sizes, seed, directed, distances=1)
    nodes = sum(sizes)
    weights = draw_rows(seed + 1, edges.shape[1])
    want = naive_walks(z, edges, torch.ones_like(weights), ptr, 3)
    for neighbors in (neighbors_of(edges, nodes), Edges(edges)):
        torch.testing.assert_close(segment_walks(z, neighbors, 3, ptr), want)
    want = naive_walks(z, edges, weights, ptr, 3)
    torch.testing.assert_close(segment_walks(z, Edges(edges, weights), 3, ptr), want)
    simple, _ = pairs.coordinates()
    torch.testing.assert_close(segment_walks(z, neighbors_of(simple, nodes), 3, ptr), segment_walks(z, pairs, 3, ptr))


@on_cpu
@given(st.integers(0, 3), st.integers(1, 5), seeds)
def test_walks_of_graphs_with_a_weight_for_every_pair(graphs, size, seed):
    """``Dense.weights[g, i, j]`` is the weight of the edge from j to i; a graph without any has no walks."""
    z = draw_rows(seed, graphs * size, 2)
    weights = draw_rows(seed + 1, graphs, size, size)
    weights[:1] = 0
    ptr = ptr_of([size] * graphs)
    got = segment_walks(z, Dense(weights), 3, ptr)
    edges = all_pairs(graphs, size, z.device)
    want = naive_walks(z, edges, weights.mT.flatten(), ptr, 3)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)  # the degrees are increased by a millionth
    assert not got[:1, 1:].any()


@on_cpu
def test_derivatives_of_walks_along_weights(check_gradients):
    z = draw_rows(0, 6, 2).requires_grad_()
    weights = draw_rows(1, 2, 3, 3).requires_grad_()
    check_gradients(lambda z, w: segment_walks(z, Dense(w), 2, ptr_of([3, 3])), (z, weights))


@on_cpu
@given(few_sizes, seeds, st.booleans(), st.booleans())
def test_shares_add_up(sizes, seed, directed, rest):
    """Over pairs and over nodes, and the halves of nodes are those of the dense matrix of shares."""
    z, edges, ptr, pairs = batch_of(sizes, seed, directed)
    theta = draw_rows(seed + 1, 4 + rest, 2, 2)
    got = share_pairs(z, pairs, theta, ptr)
    score = (segment_pairs(z, pairs, ptr, rest=rest) * theta).sum((1, 2, 3))
    torch.testing.assert_close(segment_sum(got.nodes.unsqueeze(1), ptr).squeeze(1), score)
    parts = got.own.sum() + got.pairs.sum() + (got.rest.sum() if rest else 0)
    torch.testing.assert_close(parts, score.sum())
    apart = distance_matrix(edges, len(z)).clamp(max=4)
    graph = index_of(sizes)
    classes = torch.where((apart == 4) & (graph.unsqueeze(0) != graph.unsqueeze(1)), -1, apart).long()
    every = torch.zeros(len(z), len(z), dtype=torch.float64)
    for k, matrix in enumerate(theta):
        every += torch.where(classes == k, z @ matrix @ z.T, 0)
    torch.testing.assert_close(got.nodes, (every.sum(0) + every.sum(1)) / 2)
    index, _ = pairs.coordinates()
    torch.testing.assert_close(got.pairs, every[index[0], index[1]])


def test_no_pairs_at_all_and_no_nodes():
    z = torch.ones(3, 2)
    alone = find_pairs(torch.tensor([[1], [1]]), 3, 2)  # a loop only
    got = segment_pairs(z, alone, torch.tensor([0, 2, 3]), rest=True)
    assert torch.equal(got[:, 3], torch.tensor([2.0, 0.0]).view(2, 1, 1).expand(2, 2, 2))
    assert not got[:, 1:3].any()
    nothing = find_pairs(torch.zeros(2, 0, dtype=torch.long), 0, 2)
    assert segment_pairs(z[:0], nothing, torch.tensor([0]), rest=True).shape == (0, 4, 2, 2)
    assert not segment_pairs(z[:0], nothing, torch.tensor([0, 0]), rest=True).any()
    assert (
        segment_walks(z[:0], find_pairs(torch.zeros(2, 0, dtype=torch.long), 0, 1), 2, torch.tensor([0])).numel() == 0
    )


def test_what_is_refused():
    pairs = find_pairs(PATH, 4, 2)
    with pytest.raises(ValueError, match="z has 3 rows, but the pairs are of 4 nodes"):
        segment_pairs(torch.ones(3, 2), pairs, torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="walks take those at distance 1 only"):
        segment_walks(torch.ones(4, 2), pairs, 2, torch.tensor([0, 4]))
    with pytest.raises(ValueError, match=r"theta has shape \[2, 2, 2\]: it must be \[3, 2, 2\]"):
        share_pairs(torch.ones(4, 2), pairs, torch.ones(2, 2, 2))
    with pytest.raises(ValueError, match="distances=0: it must be"):
        find_pairs(PATH, 4, 0)
    for wrong in (4, -1):
        with pytest.raises(ValueError, match=rf"Edge 1 is \[0, {wrong}\], but there are only nodes 0 to 3"):
            find_pairs(torch.tensor([[0, 0], [1, wrong]]), 4, 1)
        with pytest.raises(ValueError, match=rf"Pair 1 is \[0, {wrong}\], but there are only nodes 0 to 3"):
            list_pairs(torch.tensor([[0, 0], [1, wrong]]), torch.ones(2), 4, 1)
    with pytest.raises(TypeError, match=r"z has dtype torch\.int64"):
        segment_pairs(torch.ones(4, 2, dtype=torch.long), pairs, torch.tensor([0, 4]))
