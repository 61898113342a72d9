"""Explanations against first principles: they add up, follow the nodes, and name what matters."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sopool.models import ModelConfig
from sopool.models.explain.shares import explain_graph, gradient_times_input, margins
from sopool.ops.message_passing.neighbors import Neighbors, neighbors_of
from tests.helpers.model_cases import CASES, batch_of, flat, hierarchy, model_of, permuted, tables_for
from tests.helpers.strategies import draw_rows, seeds
from tests.helpers.training_graphs import little_store, tables_of
from tests.nn.test_terms import CASES as READOUT_CASES
from tests.nn.test_terms import EXACT

TABLES = tables_of(little_store(classes=3))
NORMALISED = [
    case
    for case in READOUT_CASES
    if case not in EXACT and not case[1].get("bias") and case[1].get("moments", (2,)) == (2,)
]
"""With sums of the second order alone: those of the first grow with the root of a node's weight."""
FULL = [0, 1, 2, 3, 4, 6]


def shaped(name, options, join="concat", **changes):
    return ModelConfig(pool=name, pool_options=options, hidden=3, layers=2, join=join, **changes)


def drawn(nodes, seed, width=TABLES.features.width):
    """Any graph, directed or not, with loops and parallel edges."""
    edges = torch.randint(nodes, (2, 2 * nodes), generator=torch.Generator().manual_seed(seed))
    return draw_rows(seed, nodes, width), neighbors_of(edges, nodes)


def scores_of(model, x, neighbors, graph_x=None):
    return model.eval()(x, neighbors, torch.tensor([0, len(x)]), graph_x)[0].detach()


@pytest.mark.parametrize("join", ["concat", "per-layer"])
@pytest.mark.parametrize(("name", "options"), EXACT, ids=str)
@settings(max_examples=5)
@given(nodes=st.integers(1, 9), seed=seeds)
def test_shares_and_bias_add_up_to_the_scores(name, options, join, nodes, seed):
    model = model_of(shaped(name, options, join), TABLES, seed)
    x, neighbors = drawn(nodes, seed)
    found = explain_graph(model, x, neighbors)
    assert found.exact
    torch.testing.assert_close(found.scores, scores_of(model, x, neighbors), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found.contributions.sum(0) + found.bias, found.scores, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("join", ["concat", "per-layer"])
def test_a_batch_norm_of_the_embedding_is_part_of_the_linear_map(join):
    model = model_of(shaped("sopool-bimap", {"rank": 4}, join, pooled_norm=True), TABLES)
    for norm in model.norms:
        torch.nn.init.normal_(norm.shift)
        torch.nn.init.normal_(norm.running_mean)
        torch.nn.init.uniform_(norm.running_var)
    x, neighbors = drawn(6, 1)
    found = explain_graph(model, x, neighbors)
    assert found.exact
    torch.testing.assert_close(found.contributions.sum(0) + found.bias, found.scores, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("join", ["concat", "per-layer"])
@pytest.mark.parametrize("normed", [False, True])
@given(seed=seeds)
@settings(max_examples=5)
def test_attributes_of_graphs_have_their_own_shares(join, normed, seed):
    """Each share is its weight times the standardized attribute; with those of the nodes and the bias they add up."""
    config = shaped("sopool-bimap", {"rank": 4}, join, graph_attributes=3, pooled_norm=normed)
    model = model_of(config, TABLES, seed)
    for norm in model.norms:
        torch.nn.init.normal_(norm.running_mean)
    x, neighbors = drawn(6, seed)
    graph_x = draw_rows(seed + 1, 1, 3)
    found = explain_graph(model, x, neighbors, graph_x=graph_x)
    assert found.exact
    total = found.contributions.sum(0) + found.attributes.sum(0) + found.bias
    torch.testing.assert_close(total, scores_of(model, x, neighbors, graph_x), rtol=1e-10, atol=1e-10)
    for number in range(3):
        others = graph_x.clone()
        others[0, number] = 0
        change = found.scores - scores_of(model, x, neighbors, others)
        torch.testing.assert_close(found.attributes[number], change, rtol=1e-9, atol=1e-10)
    at_mean = explain_graph(model, x, neighbors, graph_x=torch.zeros_like(graph_x))
    assert not at_mean.attributes.any()
    torch.testing.assert_close(at_mean.contributions, found.contributions)
    torch.testing.assert_close(at_mean.bias, found.bias)


@pytest.mark.parametrize("config", [hierarchy("topkpool", 2), hierarchy("topkpool", 3, "sum-readout")])
def test_in_a_hierarchy_attributes_of_graphs_have_gradients_times_inputs(config):
    model = model_of(replace(config, graph_attributes=2), TABLES)
    x, neighbors = drawn(6, 1)
    graph_x = draw_rows(2, 1, 2)
    found = explain_graph(model, x, neighbors, graph_x=graph_x)
    assert not found.exact

    def scores(graph_x):
        return model(x, neighbors, torch.tensor([0, 6]), graph_x)[0]

    gradients = torch.autograd.functional.jacobian(scores, graph_x).squeeze(1)
    torch.testing.assert_close(found.attributes, (gradients * graph_x).T)


def test_a_hidden_layer_leaves_slopes_on_the_pooled_terms():
    model = model_of(shaped("sopool-bimap", {"rank": 4}, head_hidden=5), TABLES)
    x, neighbors = drawn(6, 1)
    found = explain_graph(model, x, neighbors)
    assert not found.exact
    assert found.pairs[0]
    h = torch.cat(model.gnn(x, neighbors, torch.tensor([0, 6])), 1).detach()

    def scores(weight):
        return model.head(model.readouts[0](h * weight.sqrt().unsqueeze(1), ptr=torch.tensor([0, 6])), 0)[0]

    gradients = torch.autograd.functional.jacobian(scores, torch.ones(6, dtype=torch.float64)).T
    torch.testing.assert_close(found.contributions, gradients, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "options"), NORMALISED, ids=str)
def test_with_a_normalisation_shares_are_slopes_in_the_weight_of_a_node(name, options):
    """Were node i there 1 + e times, the score would be higher by e times its share; sizes and means stay."""
    model = model_of(shaped(name, options), TABLES)
    x, neighbors = drawn(6, 1)
    found = explain_graph(model, x, neighbors)
    assert not found.exact
    readout = model.readouts[0]
    head = model.heads[0]
    h = torch.cat(model.gnn(x, neighbors, torch.tensor([0, 6])), 1).detach()
    if name == "covpool":
        h = h - h.mean(0)
        readout.second_moment = super(type(readout), readout).second_moment

    def scores(weight):
        return head(readout(h * weight.sqrt().unsqueeze(1), ptr=torch.tensor([0, 6])))[0]

    gradients = torch.autograd.functional.jacobian(scores, torch.ones(6, dtype=torch.float64)).T
    torch.testing.assert_close(found.contributions, gradients, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("config", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("graph", FULL)
def test_any_model_can_be_explained(config, graph):
    tables = tables_for(config)
    model = model_of(config, tables)
    x, neighbors, _, *graph_x = batch_of(tables, [graph])
    graph_x = graph_x[0] if graph_x else None
    found = explain_graph(model, x, neighbors, graph_x=graph_x)
    assert found.contributions.shape == (len(x), 2)
    assert found.attributes.shape == (config.graph_attributes, 2)
    assert bool(found.contributions.isfinite().all())
    torch.testing.assert_close(found.scores, scores_of(model, x, neighbors, graph_x))
    if found.exact:
        total = found.contributions.sum(0) + found.attributes.sum(0) + found.bias
        torch.testing.assert_close(total, found.scores, rtol=1e-10, atol=1e-10)
    assert (found.pooled is not None) == (config.pool == "sopool-m-attn")
    linear = config.blocks == 0 and config.head_hidden == 0
    exact = config.pool in {name for name, _ in EXACT}
    if config.pool == "sopool-pairs":
        exact = config.effective_options["normalize"] in (None, "size", "pairs")
    assert found.exact == (linear and exact)


@pytest.mark.parametrize("pool", ["sopool-bimap", "sopool-attn", "sopool-m-attn", "covpool", "sum", "attnpool"])
def test_it_follows_the_nodes(pool):
    model = model_of(flat(pool), TABLES)
    for graph in FULL:
        x, neighbors, ptr = batch_of(TABLES, [graph])
        moved, lists, _ = permuted(x, neighbors, ptr, seed=graph)
        order = torch.tensor([(x == row).all(1).nonzero()[0, 0] for row in moved])
        one = explain_graph(model, x, neighbors)
        other = explain_graph(model, moved, lists)
        torch.testing.assert_close(one.contributions[order], other.contributions, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), EXACT, ids=str)
def test_all_pairs_add_up_to_the_margin(name, options):
    """With every pair asked for, none left out."""
    model = model_of(shaped(name, options), TABLES)
    x, neighbors = drawn(5, 3)
    found = explain_graph(model, x, neighbors, top=10_000)
    margin = margins(3).double() @ (found.scores - found.bias)
    for number, pairs in enumerate(found.pairs):
        assert sum(pair.value for pair in pairs) == pytest.approx(float(margin[number]), abs=1e-9)
        values = [abs(pair.value) for pair in pairs]
        assert values == sorted(values, reverse=True)
    assert len({(pair.first, pair.second) for pair in found.pairs[0] if pair.second is not None}) == len(
        [pair for pair in found.pairs[0] if pair.second is not None]
    )
    assert explain_graph(model, x, neighbors, top=3).pairs[1] == found.pairs[1][:3]


def test_a_pair_is_told_with_the_node_it_comes_from():
    """Of two nodes only one has both features."""
    model = model_of(ModelConfig(pool="sopool", hidden=2, layers=1), TABLES)
    x = torch.zeros(2, TABLES.features.width, dtype=torch.float64)
    x[0, 0], x[1, 0], x[1, 1] = 1.0, 1.0, 1.0
    model.heads[0].weight.data.zero_()
    model.heads[0].weight.data[1].view(len(x[0]) + 2, -1)[0, 1] = 5.0
    found = explain_graph(model, x, neighbors_of(torch.zeros(2, 0, dtype=torch.long), 2))
    (pair,) = found.pairs[1]
    assert ((pair.first.layer, pair.first.column), (pair.second.layer, pair.second.column)) == ((0, 0), (0, 1))
    assert (pair.value, pair.node) == (5.0, 1)
    assert found.contributions[:, 1].tolist() == [0.0, 5.0]


@pytest.mark.parametrize("normalize", [None, "size"])
def test_the_pooled_graph_is_the_papers(normalize):
    model = model_of(shaped("sopool-m-attn", {"heads": 3, "normalize": normalize}), TABLES)
    edges = torch.tensor([[0, 1, 1, 2, 0, 0], [1, 0, 2, 1, 3, 3]])
    x = draw_rows(0, 4, TABLES.features.width)
    neighbors = neighbors_of(edges, 4)
    found = explain_graph(model, x, neighbors).pooled
    h = torch.cat(model.gnn(x, neighbors, torch.tensor([0, 4])), 1).detach()
    adjacency = torch.zeros(4, 4, dtype=torch.float64)
    adjacency.index_put_((edges[1], edges[0]), torch.ones(6, dtype=torch.float64), accumulate=True)
    c = model.readouts[0].queries.detach() @ h.T / (4 if normalize else 1)
    torch.testing.assert_close(found.contribution, c)
    torch.testing.assert_close(found.adjacency, c @ adjacency @ c.T)
    weight = model.heads[0].weight.detach().view(3, 3, -1)
    torch.testing.assert_close(found.shares, (weight * (c @ h)).sum(2).T)


def test_in_a_hierarchy_it_is_that_of_the_first_block():
    config = CASES["sopool-m-attn, 1 blocks"]
    tables = tables_for(config)
    model = model_of(config, tables)
    x, neighbors, ptr = batch_of(tables, [0])
    found = explain_graph(model, x, neighbors)
    block = model.eval().blocks(x, neighbors, ptr)[0]
    h = model.gnns[0](x, neighbors, ptr)[-1]
    torch.testing.assert_close(found.pooled.contribution @ h, block.x)
    torch.testing.assert_close(found.pooled.adjacency, block.graphs().neighbors.weights[0])
    torch.testing.assert_close(found.contributions, gradient_times_input(model, x, neighbors))


def test_gradient_times_input_of_a_graph_without_edges_and_a_sum_adds_up_without_any_shift():
    """A network that is linear in its input: relu of positive numbers, no shift."""
    model = model_of(replace(flat("sum"), gnn="sum-1-layer"), TABLES)
    for layer in model.gnn.layers:
        for block in layer:
            block.weight.data.abs_()
    x = draw_rows(0, 4, TABLES.features.width).abs()
    nobody = Neighbors(torch.arange(5), torch.arange(4), (torch.arange(5), torch.arange(4)))
    found = gradient_times_input(model, x, nobody)
    bias = sum(head.bias for head in model.heads).detach()
    torch.testing.assert_close(found.sum(0) + bias, scores_of(model, x, nobody))


def test_margins_of_two_classes_are_differences():
    assert (margins(2) @ torch.tensor([3.0, 1.0]).double()).tolist() == [2.0, -2.0]
    assert margins(4).sum(1).tolist() == pytest.approx([0.0] * 4)
