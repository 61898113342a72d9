"""TopKPooling and SelfAttentionPooling against PyG's layers with the same parameters, and where they differ."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch_geometric.nn import GCNConv, GraphConv, SAGPooling
from torch_geometric.nn import TopKPooling as PygTopKPooling

from sopool.nn import SelfAttentionPooling, TopKPooling
from tests.helpers.strategies import draw_rows, index_of, ptr_of, seeds

CHANNELS = 4
sizes = st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=4)
OPTIONS = {
    "half": {},
    "most": {"ratio": 0.8, "multiplier": 2.0},
    "two": {"ratio": 2},
    "nine": {"ratio": 9},
    "above": {"ratio": None, "min_score": 0.25},
    "above-all": {"min_score": 0.9, "multiplier": 0.5},
    "sigmoid": {"nonlinearity": "sigmoid"},
    "sine": {"nonlinearity": torch.sin},  # not increasing: PyG ranks after it
}
FIELDS = ("x", "edge_index", "edge_attr", "batch", "perm", "score")


def pair(kind, options):
    """A layer of ours and PyG's with the same parameters."""
    torch.manual_seed(0)
    if kind == "topk":
        mine = TopKPooling(CHANNELS, **options).double()
        theirs = PygTopKPooling(CHANNELS, **options).double()
        theirs.select.weight.data = mine.query.data.t()
    else:
        mine = SelfAttentionPooling(CHANNELS, **options).double()
        theirs = SAGPooling(CHANNELS, GNN=GCNConv, bias=False, **options).double()
        theirs.gnn.lin.weight.data = mine.query.data.t()
        theirs.select.weight.data.fill_(1)
    return mine, theirs


def graphs_of(sizes, seed):
    """Features, directed and repeated edges without loops, edge attributes, and the graph of each node."""
    random = torch.Generator().manual_seed(seed)
    parts = [torch.empty(2, 0, dtype=torch.long)]
    for start, size in zip(ptr_of(sizes).tolist(), sizes, strict=False):
        parts.append(torch.randint(0, size, (2, 2 * size), generator=random) + start)
    edges = torch.cat(parts, 1)
    edges = edges[:, edges[0] != edges[1]]
    return draw_rows(seed, sum(sizes), CHANNELS), edges, draw_rows(seed + 1, edges.shape[1], 3), index_of(sizes)


def assert_same(got, want):
    for name, mine, theirs in zip(FIELDS, got, want, strict=True):
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            torch.testing.assert_close(mine, theirs, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", ["topk", "sag"])
@given(sizes=sizes, seed=seeds, attributes=st.booleans())
def test_the_six_values_of_pyg(kind, options, sizes, seed, attributes):
    """The same nodes, edges and attributes in the same order, unpacked as PyG's tuple."""
    mine, theirs = pair(kind, options)
    x, edges, attr, batch = graphs_of(sizes, seed)
    given = (x, edges, attr if attributes else None, batch)
    scores = mine(*given).lift.scores
    assume((scores.sort().values.diff() > 1e-6).all())  # which of two equal nodes is kept is arbitrary
    assert_same(mine(*given), theirs(*given))


@pytest.mark.parametrize("options", [{}, {"ratio": 2}], ids=["half", "two"])
@pytest.mark.parametrize("kind", ["topk", "sag"])
def test_an_unsorted_batch_and_other_features_for_the_scores(kind, options):
    mine, theirs = pair(kind, options)
    x, edges, attr, batch = graphs_of([5, 1, 8, 3], 0)
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    given = (x[shuffle], shuffle.argsort()[edges], attr, batch[shuffle])
    assert_same(mine(*given), theirs(*given))
    assert_same(mine(*given, attn=x), theirs(*given, attn=x))
    assert_same(mine(x, edges), theirs(x, edges))


def test_gradients_are_those_of_pyg():
    for kind in ("topk", "sag"):
        for options in ({}, {"min_score": 0.2}):
            mine, theirs = pair(kind, options)
            x, edges, attr, batch = graphs_of([5, 8], 0)
            x.requires_grad_()
            got, want = (
                torch.autograd.grad(layer(x, edges, attr, batch)[0].square().sum(), x) for layer in (mine, theirs)
            )
            torch.testing.assert_close(got, want)


def test_what_pyg_s_own_tests_expect():
    edges = torch.tensor([[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2]])
    x = torch.randn(4, 16)
    for kind in (TopKPooling, SelfAttentionPooling):
        for ratio in (0.5, 2):
            out = kind(16, ratio=ratio)(x, edges)
            assert out[0].size() == (2, 16)
            assert out[1].size() == (2, 2)
        out = kind(16, ratio=None, min_score=0.1)(x, edges)
        assert out[0].size(0) <= 4
        assert out[0].size(1) == 16
        assert out[1].size(0) == 2


def test_where_they_differ():
    """Each difference that docs/poolings.md names."""
    x = torch.tensor([[1.0], [2.0], [3.0]]).double()
    none = torch.empty(2, 0, dtype=torch.long)
    # A float of 1 is all nodes; PyG takes it as one node.
    assert len(TopKPooling(1, 1.0).double()(x, none).x) == 3
    assert len(PygTopKPooling(1, 1.0).double()(x, none)[0]) == 1
    # 0.1 of 30 nodes are 3; in float64, PyG rounds 3.0000000000000004 up.
    many = torch.arange(30.0).double().unsqueeze(1)
    assert len(TopKPooling(1, 0.1).double()(many, none).x) == 3
    # With min_score and an unsorted batch, nodes come graph by graph; in PyG, in the order of the input.
    batch = torch.tensor([1, 0, 1])
    assert TopKPooling(1, min_score=1e-9).double()(x, none, batch=batch).batch.tolist() == [0, 1, 1]
    assert PygTopKPooling(1, min_score=1e-9).double()(x, none, batch=batch)[3].tolist() == [1, 0, 1]
    # SAGPooling scores by a GraphConv unless told otherwise, and its GCNConv counts a loop once instead of adding one.
    assert isinstance(SAGPooling(1).gnn, GraphConv)
    mine, theirs = pair("sag", {"ratio": 1.0})
    loop = torch.tensor([[0, 0, 1], [0, 1, 0]])
    rows = draw_rows(0, 3, CHANNELS)
    assert not torch.allclose(mine(rows, loop).lift.scores, theirs.gnn(rows, loop).squeeze(1))
