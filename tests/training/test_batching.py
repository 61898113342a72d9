"""Batches against the store's own, and neighbours against its edges."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.utils._pytree import tree_leaves

from sopool.data.features.edge_features import EdgeEncoder
from sopool.data.features.encoders import default_encoder
from sopool.data.features.graph_attributes import GraphAttributeEncoder
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from sopool.models import ModelConfig
from sopool.training.bank.batching import Capacity, GraphTables
from tests.helpers.data_graphs import stores
from tests.helpers.marks import needs_triton
from tests.helpers.training_graphs import EDGE_LABELS, little_store, rich_model, rich_store, rich_tables, tables_of


@given(stores(), st.data())
def test_a_batch_is_the_graphs_side_by_side(store, data):
    assume(store.num_nodes)
    features = default_encoder(store).fit(store).transform(store)
    edges = edge_codes(store)
    tables = GraphTables.build(store, features, edges)
    chosen = data.draw(st.lists(st.integers(0, len(store) - 1), min_size=1, max_size=5))
    batch = tables.batch(torch.tensor(chosen).unsqueeze(0))
    expected = store.batch(chosen)
    assert torch.equal(batch.ptr, expected.ptr)
    assert torch.equal(batch.x, features.rows(expected.nodes))
    listed = sorted((target, source) for source, target in expected.edge_index.t().tolist())
    listed = sorted(listed + [(node, node) for node in range(len(expected.nodes))])
    neighbors = batch.neighbors
    assert pairs(neighbors.ptr, neighbors.nodes) == listed
    assert pairs(*neighbors.transposed) == sorted((source, target) for target, source in listed)
    if edges is None:
        assert neighbors.labels is None
        return
    codes = [*edges.codes[expected.edges].tolist(), *[-1] * len(expected.nodes)]
    edges = [*expected.edge_index.t().tolist(), *((node, node) for node in range(len(expected.nodes)))]
    known = sorted((target, source, code) for (source, target), code in zip(edges, codes, strict=True))
    assert triples(neighbors.ptr, neighbors.nodes, neighbors.labels.codes) == known
    assert triples(*neighbors.transposed, neighbors.labels.transposed) == sorted((s, t, code) for t, s, code in known)


@given(stores(), st.integers(1, 3))
def test_copies_are_a_batch_of_all_graphs_for_each_model(store, models):
    assume(store.num_nodes)
    features = default_encoder(store, unknown=True).fit(store).transform(store)
    tables = GraphTables.for_prediction(store, features, edge_codes(store))
    inputs = tables.inputs_of([torch.tensor([model % len(store)]) for model in range(models)], unknown=True)
    copies = tables.copies(models, inputs)
    batch = tables.batch(torch.arange(len(store)).expand(models, -1), inputs)
    assert torch.equal(copies.x, batch.x)
    assert torch.equal(copies.ptr, batch.ptr)
    assert torch.equal(copies.neighbors.ptr, batch.neighbors.ptr)
    assert torch.equal(copies.neighbors.nodes, batch.neighbors.nodes)
    assert (copies.neighbors.labels is None) == (batch.neighbors.labels is None)
    if copies.neighbors.labels is not None:
        assert torch.equal(copies.neighbors.labels.codes, batch.neighbors.labels.codes)
        assert copies.neighbors.labels.kinds == batch.neighbors.labels.kinds


@pytest.mark.parametrize("directed", [False, True])
def test_numbers_of_edges_and_graphs_are_those_of_each_model(directed):
    """By a loop over all entries of the lists, each found again in the edges of the store."""
    store = rich_store(directed=directed)
    edges = EdgeEncoder(True, True, True, True).fit(store).transform(store)
    numbers = GraphAttributeEncoder().fit(store).transform(store)
    features = default_encoder(store).fit(store).transform(store)
    tables = GraphTables.build(store, features, edges, graph_numbers=numbers)
    train = [torch.arange(0, 12), torch.arange(8, 24)]
    inputs = tables.inputs_of(train, unknown=False)
    graphs = torch.tensor([[3, 9, 3], [5, 11, 0]])
    batch = tables.batch(graphs, inputs)
    order, attributes, weights = batch.neighbors.values
    found = []
    for model, some in enumerate(graphs.tolist()):
        own = store[train[model]]
        mean, std = own.edge_attributes.double().mean(0), own.edge_attributes.double().std(0, correction=0)
        for graph in some:
            one = store[graph]
            first = int(batch.ptr[len(found)])
            standard = ((one.edge_attributes - mean) / std).float().tolist()
            pairs = (one.edge_index.t() + first).tolist()
            each = zip(pairs, standard, one.edge_weights.tolist(), strict=True)
            entries = [((target, source), numbers, weight) for (source, target), numbers, weight in each]
            entries += [((node, node), [0.0, 0.0], 1.0) for node in range(first, first + one.num_nodes)]
            found.append(entries)
    expected = [(*pair, *numbers, weight) for entries in found for pair, numbers, weight in entries]

    def rows(owners, others, place):
        values = torch.cat([attributes, weights.unsqueeze(1)], 1)[place].tolist()
        return [(*pair, *row) for pair, row in zip(zip(owners, others, strict=True), values, strict=True)]

    neighbors = batch.neighbors
    heads, tails = (
        (torch.arange(len(ptr) - 1).repeat_interleave(ptr.diff()).tolist(), nodes.tolist())
        for ptr, nodes in lists(batch)
    )
    np.testing.assert_allclose(sorted(rows(*heads, slice(None))), sorted(expected), rtol=1e-6)
    np.testing.assert_allclose(sorted(rows(*reversed(tails), order)), sorted(expected), rtol=1e-6)
    assert neighbors.labels.kinds == len(neighbors.labels.combinations)
    heat = (store.graph_attributes[graphs.flatten()] - inputs.graphs.shift.repeat_interleave(3, 0)) / (
        inputs.graphs.scale.repeat_interleave(3, 0)
    )
    assert torch.equal(batch.graph_x, heat.nan_to_num(0).float())
    assert heat.isnan().any()


@pytest.mark.parametrize("directed", [False, True])
def test_copies_with_everything_are_a_batch_of_all_graphs(directed):
    store = rich_store(directed=directed)
    edges = EdgeEncoder(True, True, True, True).fit(store).transform(store)
    numbers = GraphAttributeEncoder().fit(store).transform(store)
    tables = GraphTables.for_prediction(store, default_encoder(store).fit(store).transform(store), edges, numbers)
    inputs = tables.inputs_of([torch.arange(0, 12), torch.arange(8, 24)], unknown=True)
    copies = tables.copies(2, inputs)
    batch = tables.batch(torch.arange(len(store)).expand(2, -1), inputs)
    for one, other in zip(tree_leaves(copies), tree_leaves(batch), strict=True):
        assert torch.equal(one, other) if torch.is_tensor(one) else one == other


@needs_triton
@given(stores(), st.data())
def test_with_room_to_spare_a_batch_is_the_same(store, data):
    assume(store.num_nodes)
    features = default_encoder(store, unknown=True).fit(store).transform(store)
    tables = GraphTables.build(store, features, edge_codes(store))
    models = data.draw(st.integers(1, 3))
    graphs = st.lists(st.integers(0, len(store) - 1), min_size=models, max_size=models)
    chosen = torch.tensor(data.draw(st.lists(graphs, min_size=1, max_size=3))).t().contiguous()
    inputs = tables.inputs_of([chosen[model, :1] for model in range(models)], unknown=data.draw(st.booleans()))
    exact = tables.batch(chosen, inputs)
    need = tables.capacity(chosen.numpy())
    more = data.draw(st.tuples(st.integers(0, 300), st.integers(0, 600)))
    with_capacity = tables.batch(chosen, inputs, Capacity(need.nodes + more[0], need.listed + more[1]))
    assert torch.equal(with_capacity.ptr, exact.ptr)
    assert torch.equal(with_capacity.x[: need.nodes], exact.x)
    assert with_capacity.x.shape[0] == need.nodes + more[0]
    assert not with_capacity.x[need.nodes :, ~number_columns(tables)].any()
    for got, want in zip(lists(with_capacity), lists(exact), strict=True):
        assert torch.equal(got[0][: need.nodes + 1], want[0])
        assert got[0][need.nodes :].eq(want[0][-1]).all()
        assert torch.equal(got[1][: len(want[1])], want[1])
        assert got[1][len(want[1]) :].eq(0).all()
    if tables.edge_kinds:
        for got, want in zip(with_capacity.neighbors.labels[:2], exact.neighbors.labels[:2], strict=True):
            assert torch.equal(got[: len(want)], want)
            assert got[len(want) :].eq(-1).all()


@needs_triton
def test_with_room_to_spare_columns_and_attributes_of_graphs_are_the_same():
    store = replace(rich_store(), edge_attributes=None, edge_weights=None)
    tables = rich_tables(store, ModelConfig(**rich_model(store)))
    inputs = tables.inputs_of([torch.arange(0, 12), torch.arange(8, 24)], unknown=True)
    chosen = torch.tensor([[3, 9, 3], [5, 11, 0]])
    exact = tables.batch(chosen, inputs)
    need = tables.capacity(chosen.numpy())
    padded = tables.batch(chosen, inputs, Capacity(need.nodes + 7, need.listed + 9))
    assert torch.equal(padded.x[: need.nodes], exact.x)
    assert torch.equal(padded.graph_x, exact.graph_x)
    mine, other = padded.neighbors.labels, exact.neighbors.labels
    assert torch.equal(mine.combinations, other.combinations)
    assert torch.equal(mine.codes[: need.listed], other.codes)


def edge_codes(store):
    return EdgeEncoder().fit(store).transform(store) if store.edge_labels is not None and store.num_edges else None


def lists(batch):
    return [(batch.neighbors.ptr, batch.neighbors.nodes), batch.neighbors.transposed]


def number_columns(tables):
    numbers = torch.zeros(tables.features.width, dtype=torch.bool)
    if tables.features.number_columns is not None:
        numbers[tables.features.number_columns] = True
    return numbers


def pairs(ptr, nodes):
    owners = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr.numpy()))
    return sorted(zip(owners.tolist(), nodes.tolist(), strict=True))


def triples(ptr, nodes, labels):
    owners = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr.numpy()))
    return sorted(zip(owners.tolist(), nodes.tolist(), labels.tolist(), strict=True))


@given(stores(undirected=True))
def test_undirected_graphs_have_one_set_of_lists(store):
    assume(store.num_nodes)
    tables = GraphTables.build(store, default_encoder(store).fit(store).transform(store))
    assert tables.transposed is None
    batch = tables.batch(torch.arange(len(store)).unsqueeze(0))
    assert batch.neighbors.transposed[1] is batch.neighbors.nodes


def test_graphs_without_labels_cannot_be_learned():
    store = pack([Graph(2, [(0, 1), (1, 0)])], name="plain")
    with pytest.raises(DataError, match="plain has neither labels nor targets"):
        GraphTables.build(store, default_encoder(store).fit(store).transform(store))


def test_labels_are_counted_through_the_models():
    store = little_store()
    tables = tables_of(store)
    alone = tables.batch(torch.tensor([[3, 4]]))
    together = tables.batch(torch.tensor([[3, 4], [3, 4], [3, 4]]))
    listed = alone.neighbors.labels.codes
    kinds = tables.edge_kinds
    assert kinds == EDGE_LABELS + 1
    want = [torch.where(listed < 0, -1, listed + model * kinds) for model in range(3)]
    assert torch.equal(together.neighbors.labels.codes, torch.cat(want))
    assert together.neighbors.labels.transposed is together.neighbors.labels.codes  # undirected


def test_an_edge_whose_directions_differ_has_lists_of_its_own():
    store = pack([Graph(2, [(0, 1), (1, 0)], 0, edge_labels=["up", "down"]), Graph(1, label=1)])
    tables = tables_of(store)
    neighbors = tables.batch(torch.tensor([[0]])).neighbors
    assert (neighbors.labels.codes.tolist(), neighbors.labels.transposed.tolist()) == ([-1, 0, 1, -1], [-1, 1, 0, -1])


def test_which_edge_labels_some_graphs_have():
    store = pack([Graph(2, [(0, 1)], 0, edge_labels=[kind]) for kind in ("a", "b", "c")] + [Graph(1, label=1)])
    tables = tables_of(store)
    assert tables.edge_labels_used(torch.tensor([0, 2, 3])).tolist() == [True, False, True]
    assert tables.edge_labels_used(torch.tensor([3])).tolist() == [False] * 3
