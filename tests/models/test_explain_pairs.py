"""Explanations of pairs of nodes: exact shares of pairs and of nodes, which have one half of each of theirs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sopool.models import ModelConfig
from sopool.models.explain.shares import explain_graph, margins
from sopool.nn.aggr.normalize import normalize_pooled
from sopool.ops.message_passing.neighbors import EdgeLabels, neighbors_of
from sopool.ops.message_passing.pairs import find_pairs
from sopool.ops.segment.segments import Segments
from tests.helpers.model_cases import model_of, permuted
from tests.helpers.pair_graphs import distance_matrix, random_edges
from tests.helpers.strategies import draw_rows, seeds
from tests.helpers.training_graphs import little_store, tables_of

TABLES = tables_of(little_store(classes=3))
FORMS = {
    "plain": {"normalize": None},
    "rest": {"normalize": None, "rest": True, "layers": None},
    "by size": {"normalize": "size", "with_sum": False},
    "by pairs, slow": {"normalize": "pairs", "rest": True, "lr_scale": 0.1},
    "no mapping": {"normalize": None, "rank": None, "layers": 1},
    "normed": {"normalize": None, "batch_norm": True},
    "walks": {"normalize": None, "walks": True},
}
every_form = pytest.mark.parametrize("form", FORMS)


def model_with(form, seed=0, join="concat", **changes):
    options = {"rank": 3, "distances": 2} | (FORMS[form] if isinstance(form, str) else form)
    config = ModelConfig(pool="sopool-pairs", pool_options=options, hidden=3, layers=2, join=join, **changes)
    model = model_of(config, TABLES, seed)
    for readout in model.readouts:
        if readout.norm is not None:
            torch.nn.init.normal_(readout.norm.running_mean)
            torch.nn.init.normal_(readout.norm.shift)
    return model


def drawn(nodes, seed, directed=True, reach=2):
    """Any graph with loops and parallel edges, and its pairs."""
    edges = random_edges([nodes], seed, directed)
    return draw_rows(seed, nodes, TABLES.features.width), neighbors_of(edges, nodes)._replace(
        extras={"pairs": find_pairs(edges, nodes, reach)}
    )


@every_form
@pytest.mark.parametrize("join", ["concat", "per-layer"])
@settings(max_examples=5)
@given(nodes=st.integers(0, 8), seed=seeds, directed=st.booleans())
def test_shares_and_bias_add_up_to_the_scores(form, join, nodes, seed, directed):
    model = model_with(form, seed, join)
    x, neighbors = drawn(nodes, seed, directed, model.readouts[0].reach)
    found = explain_graph(model, x, neighbors)
    assert found.exact
    scores = model.eval()(x, neighbors, torch.tensor([0, nodes]))[0]
    torch.testing.assert_close(found.contributions.sum(0) + found.bias, scores, rtol=1e-9, atol=1e-9)


@settings(max_examples=10)
@given(nodes=st.integers(1, 8), seed=seeds, directed=st.booleans())
def test_shares_of_pairs_are_their_definition(nodes, seed, directed):
    """z_i^T Theta_d z_j, one half of which each of the two nodes has."""
    model = model_with("plain", seed)
    x, neighbors = drawn(nodes, seed, directed)
    found = explain_graph(model, x, neighbors)
    ends, distance, shares = found.node_pairs
    readout = model.readouts[0]
    layers = model.gnn(x, neighbors, torch.tensor([0, nodes]))
    z = torch.cat(layers, 1) @ readout.weight
    weight = model.heads[0].weight
    theta = weight[:, : readout.pair_width].view(3, 3, 3, 3)
    edges = torch.stack([neighbors.nodes, torch.arange(nodes).repeat_interleave(neighbors.ptr.diff())])
    steps = distance_matrix(edges, nodes)
    assert torch.equal(steps[ends[0], ends[1]].long(), distance)
    assert len(distance) == ((steps > 0) & (steps <= 2)).sum()
    want = torch.einsum("pr,cprs,ps->pc", z[ends[0]], theta[:, distance], z[ends[1]])
    torch.testing.assert_close(shares, want.detach(), rtol=1e-9, atol=1e-9)
    own = torch.einsum("nr,crs,ns->nc", z, theta[:, 0], z) + torch.cat(layers, 1) @ weight[:, readout.pair_width :].T
    halves = own.detach().index_add(0, ends.flatten(), shares.repeat(2, 1) / 2)
    torch.testing.assert_close(found.contributions, halves, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", ["plain", "no mapping", "walks", "rest"])
def test_all_pairs_of_features_add_up_to_the_margin(form):
    model = model_with(form)
    x, neighbors = drawn(5, 3, reach=model.readouts[0].reach)
    found = explain_graph(model, x, neighbors, top=10_000)
    margin = margins(3).double() @ (found.scores - found.bias)
    for number, pairs in enumerate(found.pairs):
        assert sum(pair.value for pair in pairs) == pytest.approx(float(margin[number]), abs=1e-9)


def test_walks_have_no_shares_of_pairs_and_single_nodes_have_no_pairs():
    model = model_with("walks")
    assert explain_graph(model, *drawn(5, 3, reach=1)).node_pairs is None
    found = explain_graph(model_with("plain"), *drawn(1, 0)).node_pairs
    assert found.ends.shape == (2, 0)
    assert found.shares.shape == (0, 3)


def test_a_pair_of_features_is_told_with_the_node_that_adds_most():
    """On a path 0 - 1 - 2, feature 0 at the node 0 and feature 1 at the nodes 1 and 2 meet once at distance 1."""
    model = model_with({"normalize": None, "rank": None, "layers": 1, "with_sum": False})
    width = TABLES.features.width
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    neighbors = neighbors_of(edges, 3)._replace(extras={"pairs": find_pairs(edges, 3, 2)})
    x = torch.zeros(3, width, dtype=torch.float64)
    x[0, 0], x[1, 1], x[2, 1] = 2.0, 3.0, 4.0
    model.heads[0].weight.data.zero_()
    model.heads[0].weight.data[0].view(3, width, width)[1, 0, 1] = 1.0
    found = explain_graph(model, x, neighbors)
    (pair,) = found.pairs[0]
    assert (pair.first.column, pair.second.column, pair.value) == (0, 1, 6.0)
    assert pair.node in (0, 1)
    assert found.contributions[:, 0].tolist() == [3.0, 3.0, 0.0]


@pytest.mark.parametrize("normalize", ["log", "sqrt", "norm"])
def test_with_a_normalization_shares_are_slopes_in_the_weight_of_a_node(normalize):
    """Were node i there 1 + e times, the score would be higher by e times its share."""
    model = model_with({"normalize": normalize, "with_sum": False, "layers": None}).eval()
    x, neighbors = drawn(6, 1)
    found = explain_graph(model, x, neighbors)
    assert not found.exact
    h = torch.cat(model.gnn(x, neighbors, torch.tensor([0, 6])), 1).detach()
    z = h @ model.readouts[0].weight.detach()

    def scores(weight):
        pooled = found_matrices(model.readouts[0], z * weight.sqrt().unsqueeze(1), neighbors)
        return model.heads[0](pooled)[0]

    slopes = torch.autograd.functional.jacobian(scores, torch.ones(6, dtype=torch.float64)).T
    torch.testing.assert_close(found.contributions, slopes, rtol=1e-6, atol=1e-8)


def found_matrices(readout, z, neighbors):
    ptr = torch.tensor([0, len(z)])
    matrices = readout.matrices(z, neighbors.extras["pairs"], Segments(ptr))
    return normalize_pooled(matrices, ptr, readout.normalize).flatten(1)


def test_it_follows_the_nodes():
    model = model_with("rest")
    x, neighbors = drawn(6, 2)
    moved, lists, _ = permuted(x, neighbors_with_labels(neighbors), torch.tensor([0, 6]), seed=1)
    order = torch.tensor([(x == row).all(1).nonzero()[0, 0] for row in moved])
    one, other = explain_graph(model, x, neighbors), explain_graph(model, moved, lists)
    torch.testing.assert_close(one.contributions[order], other.contributions, rtol=1e-9, atol=1e-9)
    assert one.node_pairs.shares[:, 0].sort().values.tolist() == pytest.approx(
        other.node_pairs.shares[:, 0].sort().values.tolist()
    )


def neighbors_with_labels(neighbors):
    codes = torch.zeros(len(neighbors.nodes), dtype=torch.long)
    return neighbors._replace(labels=EdgeLabels(codes, codes, 1))
