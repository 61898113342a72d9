"""The record of graphs and the selection of nodes, against dense matrices."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from sopool.nn.pool.edge_list import list_edges
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.select import between, select_above, select_top
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


@given(sizes=sizes, seed=seeds, dtype=st.sampled_from([torch.float64, torch.bfloat16]))
def test_weighted_edges(sizes, seed, dtype):
    """Negative weights, loops and repeated edges, whose weights are added before they are squared."""
    n = sum(sizes)
    source, target = list_edges(random_graphs(sizes, seed)[0].neighbors).edge_index
    values = draw_rows(seed, len(source))
    edges = Edges(torch.stack([source, target]), values)
    weights, absolute = (
        torch.zeros(n, n).double().index_put((target, source), v, True) for v in (values, values.abs())
    )
    x = draw_rows(seed, n, 3)
    near = {"rtol": 0.02, "atol": 0.1} if dtype == torch.bfloat16 else {}
    assert propagate(x.to(dtype), edges).dtype == dtype
    torch.testing.assert_close(propagate(x.to(dtype), edges).double(), x + weights @ x, **near)
    degree = 1 + absolute.sum(1, keepdim=True)
    torch.testing.assert_close(degrees(x, edges), degree)
    torch.testing.assert_close(edges.aggregate(x, "mean"), (x + weights @ x) / degree)
    ptr = ptr_of(sizes)
    blocks = [weights[a:b, a:b].square().sum() for a, b in pairwise(ptr)]
    torch.testing.assert_close(squared_weights(GraphStructure(ptr, edges), like=x), torch.stack(blocks))
    assert gradcheck(
        lambda w: squared_weights(GraphStructure(ptr, edges._replace(weight=w)), x), values.requires_grad_()
    )
    with pytest.raises(ValueError, match="how='max' is not defined"):
        edges.aggregate(x, "max")


@given(sizes=sizes, seed=seeds, number=st.integers(1, 9))
def test_a_number_of_nodes(sizes, seed, number):
    """min(k, n) of each graph, highest first, with and without spare rows."""
    graphs, _ = random_graphs(sizes, seed)
    score = draw_rows(seed, sum(sizes))
    exact, with_capacity = (select_top(score, graphs, number, exact=how) for how in (True, False))
    want = [part.argsort(descending=True)[:number] for part in score.split(sizes)]
    assert exact.rows.tolist() == torch.cat([a + w for a, w in zip(graphs.ptr, want, strict=False)]).tolist()
    assert exact.ptr.diff().tolist() == with_capacity.ptr.diff().tolist() == [len(part) for part in want]
    count = len(exact.rows)
    assert torch.equal(with_capacity.rows[:count], exact.rows)
    assert with_capacity.spare.tolist() == [False] * count + [True] * (len(with_capacity.rows) - count)
    place = torch.full((sum(sizes),), -1).index_copy(0, exact.rows, torch.arange(count))
    assert torch.equal(exact.place(), place)
    assert torch.equal(with_capacity.place(), place)


@given(sizes=sizes, seed=seeds, least=st.floats(-1, 2))
def test_nodes_above_a_value(sizes, seed, least):
    graphs, _ = random_graphs(sizes, seed)
    value = draw_rows(seed, sum(sizes))
    found = select_above(value, graphs, least)
    kept = torch.cat([part > min(least, part.max() - 1e-7) for part in value.split(sizes) if len(part)] or [value > 0])
    assert found.rows.tolist() == kept.nonzero().flatten().tolist()
    assert found.ptr.diff().tolist() == [int(part.sum()) for part in kept.split(sizes)]


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
