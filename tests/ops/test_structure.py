"""The record of graphs and the selection of nodes, against dense matrices."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.select import between, select_top
from sopool.ops.message_passing.structure import (
    GraphStructure,
    degrees,
    propagate,
    propagate_normalized,
    squared_weights,
)
from tests.helpers.strategies import draw_rows, ptr_of, seeds

sizes = st.lists(st.sampled_from([0, 1, 2, 4, 7]), min_size=1, max_size=5)


def random_graphs(sizes, seed):
    """Graphs with loops and repeated edges, and the whole A [n, n]."""
    random = torch.Generator().manual_seed(seed)
    n = sum(sizes)
    parts = [torch.empty(2, 0, dtype=torch.long)]
    for start, size in zip(ptr_of(sizes).tolist(), sizes, strict=False):
        parts.append(torch.randint(0, max(1, size), (2, 3 * size), generator=random) + start)
    edges = torch.cat(parts, 1)
    weights = torch.zeros(n, n, dtype=torch.float64)
    weights.index_put_((edges[1], edges[0]), torch.tensor(1.0, dtype=torch.float64), accumulate=True)
    return GraphStructure(ptr_of(sizes), neighbors_of(edges, n)), weights


@given(sizes=sizes, seed=seeds)
def test_lists_are_the_matrix(sizes, seed):
    graphs, weights = random_graphs(sizes, seed)
    x = draw_rows(seed, len(weights), 3)
    torch.testing.assert_close(propagate(x, graphs.neighbors), x + weights @ x)
    degree = 1 + weights.sum(1, keepdim=True)
    torch.testing.assert_close(degrees(x, graphs.neighbors), degree)
    share = degree.rsqrt()
    torch.testing.assert_close(propagate_normalized(x, graphs.neighbors), share * (share * x + weights @ (share * x)))
    blocks = [weights[a:b, a:b].square().sum() for a, b in zip(graphs.ptr[:-1], graphs.ptr[1:], strict=True)]
    torch.testing.assert_close(squared_weights(graphs, like=x), torch.stack(blocks))


@given(seed=seeds, graphs=st.integers(0, 4), nodes=st.integers(1, 4))
def test_dense_graphs(seed, graphs, nodes):
    weights = draw_rows(seed, graphs, nodes, nodes)
    x = draw_rows(seed + 1, graphs * nodes, 3)
    record = GraphStructure(torch.arange(graphs + 1) * nodes, Dense(weights))
    total = x.view(graphs, nodes, 3) + weights @ x.view(graphs, nodes, 3)
    torch.testing.assert_close(propagate(x, record.neighbors), total.view_as(x))
    mean = total / (1 + weights.abs().sum(2, keepdim=True))
    torch.testing.assert_close(record.neighbors.aggregate(x, "mean"), mean.view_as(x))
    torch.testing.assert_close(squared_weights(record, like=x), weights.square().sum((1, 2)))


@given(sizes=sizes.filter(sum), seed=seeds, ratio=st.sampled_from([0.2, 0.5, 0.9, 1.0]))
def test_selection_with_spare_rows_is_the_exact_one(sizes, seed, ratio):
    """Shapes that follow from shapes alone, as on CUDA: the same rows and lists, then some that are no one's."""
    graphs, _ = random_graphs(sizes, seed)
    score = draw_rows(seed, sum(sizes))
    exact, with_capacity = (select_top(score, graphs, ratio, exact=how) for how in (True, False))
    count = len(exact.rows)
    assert with_capacity.spare.tolist() == [False] * count + [True] * (len(with_capacity.rows) - count)
    assert len(with_capacity.rows) > count
    assert torch.equal(exact.ptr, with_capacity.ptr)
    assert torch.equal(exact.rows, with_capacity.rows[:count])
    want = between(graphs.neighbors, exact)
    got = between(graphs.neighbors, with_capacity)
    for mine, theirs in (((want.ptr, want.nodes), (got.ptr, got.nodes)), (want.transposed, got.transposed)):
        assert torch.equal(theirs[0][: count + 1], mine[0])
        assert theirs[0][count:].eq(mine[0][-1]).all()
        assert torch.equal(theirs[1][: len(mine[1])], mine[1])
        assert theirs[1].ge(0).all()
        assert theirs[1].lt(len(with_capacity.rows)).all()


def test_undirected_lists_stay_one():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    lists = neighbors_of(edges, 3)
    lists = lists._replace(transposed=(lists.ptr, lists.nodes))
    kept = between(lists, select_top(torch.tensor([1.0, 3.0, 2.0]), GraphStructure(torch.tensor([0, 3]), lists), 0.5))
    assert kept.transposed[1] is kept.nodes
    assert kept.nodes.tolist() == [0, 1, 0, 1]
