import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.deletion import delete_in_order, without_nodes
from sopool import GraphClassifier
from sopool.data import load
from sopool.data.formats.convert import to_networkx
from sopool.data.splits import stratified_folds
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.training_graphs import little_store

FULL = [g for g in range(40) if STORE.sizes[g]]
DIRECTED = little_store(directed=True)


@given(number=st.sampled_from([g for g in range(len(DIRECTED)) if DIRECTED.sizes[g]]), data=st.data())
def test_it_is_what_networkx_leaves(number, data):
    graph = DIRECTED[number]
    gone = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), unique=True))
    left = without_nodes(graph, torch.tensor(gone, dtype=torch.long))
    expected = to_networkx(graph)[0]
    expected.remove_nodes_from(gone)
    expected = nx.convert_node_labels_to_integers(expected, ordering="default")
    found = to_networkx(left)[0]
    assert dict(found.nodes(data=True)) == dict(expected.nodes(data=True))
    assert sorted(found.edges()) == sorted(expected.edges())
    stays = [node for node in range(graph.num_nodes) if node not in gone]
    assert torch.equal(left.node_attributes, graph.node_attributes[stays])


def test_one_graph_at_a_time():
    with pytest.raises(ValueError, match="pass one graph"):
        without_nodes(DIRECTED, torch.tensor([0]))


@pytest.fixture(scope="module", params=["sopool-bimap", "sopool-attn", "sopool-m-attn"])
def on_mutag(request):
    """A model trained in seconds on four fifths of MUTAG, and the rest."""
    store = load("MUTAG")
    train, test = next(iter(stratified_folds(store.labels.numpy(), 5)))
    model = GraphClassifier(pool=request.param, epochs=8, n_models=2, hidden=16, random_state=0, device="cpu")
    return model.fit(store[train.tolist()], store.class_labels[train]), store[test.tolist()]


def test_deleting_what_the_explanation_names_first_costs_more_than_deleting_at_random(on_mutag):
    """For most of the 38 graphs, and in their mean, against the mean of 10 random orders."""
    model, store = on_mutag
    shares = (0.0, 0.1)
    telling = [np.argsort(-one.decompose().nodes) for one in model.explain(store, top=0)]
    first = delete_in_order(model, store, telling, shares).margins
    random = np.random.default_rng(0)
    orders = [[random.permutation(int(n)) for n in store.sizes] for _ in range(10)]
    drawn = np.mean([delete_in_order(model, store, order, shares).margins for order in orders], axis=0)
    np.testing.assert_allclose(first[:, 0], drawn[:, 0], rtol=1e-4, atol=1e-4)
    less = drawn[:, 1] - first[:, 1]
    assert (less > 0).mean() > 0.6
    assert first[:, 1].mean() < drawn[:, 1].mean()
    last = delete_in_order(model, store, [order[::-1] for order in telling], shares).margins
    assert last[:, 1].mean() > drawn[:, 1].mean()


def test_one_node_is_left():
    model = tiny().fit(STORE, LABELS)
    found = delete_in_order(model, STORE[FULL], [np.arange(int(n)) for n in STORE.sizes[FULL]], (1.0,))
    assert np.isfinite(found.margins).all()
    assert found.probabilities.shape == (len(FULL), 1)
