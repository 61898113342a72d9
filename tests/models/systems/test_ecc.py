"""ECC beside PyG's NNConv."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.nn import NNConv, global_mean_pool
from torch_geometric.utils import add_self_loops

from sopool.data import load
from sopool.data.extras import CoarserBatch
from sopool.estimator import GraphClassifier
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import SYSTEMS
from sopool.models import make_model
from sopool.models.systems.networks import ecc
from sopool.models.systems.networks.ecc import LabelConvolution, LabelledEdges, NumberConvolution, NumberedEdges
from sopool.training.runs.store import RunStore

EDGES = torch.tensor([[1, 3, 0, 2, 1, 3, 4, 2, 0, 5, 2, 2], [0, 0, 1, 1, 2, 2, 2, 3, 3, 5, 4, 4]])
NODES = 7
LABELS = torch.tensor([0, 2, 0, 1, 1, 1, 0, 1, 2, 0, 0, 1])
NUMBERS = torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def nn_conv(part, attributes):
    """The layer of PyG with the same parameters, which makes a matrix for each edge."""
    width = len(part.bias)
    if isinstance(part, LabelConvolution):
        matrices = part.weight.data.view(attributes, -1)
        filters = torch.nn.Linear(*matrices.shape, bias=False)
        layer = NNConv(matrices.shape[1] // width, width, filters, "mean", False).double()
        filters.weight.data = matrices.T
    else:
        first, *others = part.weight.data.view(part.filter.out_features + 1, -1)
        last = torch.nn.Linear(len(others), len(first))
        filters = torch.nn.Sequential(copy.deepcopy(part.filter), torch.nn.ReLU(), last)
        layer = NNConv(len(first) // width, width, filters, "mean", False).double()
        filters[0].load_state_dict(part.filter.state_dict())
        last.weight.data = torch.stack(others, 1)
        last.bias.data = first
    layer.bias.data = part.bias.data
    return layer


def with_loops(edges, attributes, nodes, own):
    """Edges of nodes to themselves, too, each with the attributes ``own``."""
    edges, _ = add_self_loops(edges, num_nodes=nodes)
    return edges, torch.cat([attributes, own.expand(nodes, -1)])


def labelled(labels, kinds):
    """Labels one-hot, with one more for the edges of nodes to themselves."""
    codes = torch.nn.functional.one_hot(labels, kinds).double()
    own = torch.zeros(1, kinds).double()
    own[0, -1] = 1
    return codes, own


def same_with_gradients(part, layer, x, edges, every, attributes):
    x = x.requires_grad_()
    results = part(x, edges), layer(x, every, attributes)
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)
    factors = torch.randn_like(results[0])
    gradients = [torch.autograd.grad((result * factors).sum(), [x]) for result in results]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kinds", [4, 1])
def test_labels_choose_the_matrix(kinds):
    """Of a single kind, nodes themselves are as their neighbors: a convolution by the mean."""
    part = LabelConvolution(3, 5, kinds).double()
    labels = LABELS if kinds > 1 else LABELS * 0
    codes, own = labelled(labels, kinds)
    every, attributes = with_loops(EDGES, codes, NODES, own)
    x = torch.rand(NODES, 3, dtype=torch.float64)
    edges = LabelledEdges.of(EDGES, labels, NODES, kinds)
    same_with_gradients(part, nn_conv(part, kinds), x, edges, every, attributes)
    adjacency = torch.zeros(NODES, NODES).double().index_put((every[1], every[0]), torch.ones(1).double(), True)
    mean = adjacency / adjacency.sum(1, keepdim=True) @ x
    torch.testing.assert_close(edges.mean(x), mean)
    if kinds == 1:
        torch.testing.assert_close(part(x, edges), mean @ part.weight + part.bias)


def test_a_small_network_makes_the_matrix_of_numbers():
    part = NumberConvolution(3, 5, 2).double()
    every, attributes = with_loops(EDGES, NUMBERS, NODES, torch.zeros(1, 2).double())
    edges = NumberedEdges.of(EDGES, NUMBERS, NODES)
    same_with_gradients(part, nn_conv(part, 2), torch.rand(NODES, 3).double(), edges, every, attributes)
    x = torch.rand(NODES, 3).double()
    torch.testing.assert_close(edges.mean(x), LabelledEdges.of(EDGES, LABELS, NODES, 4).mean(x))


def test_edges_with_labels_of_no_training_graph_are_left_out():
    part = LabelConvolution(3, 5, 3).double()
    x = torch.rand(NODES, 3).double()
    known = LABELS < 2
    found = part(x, LabelledEdges.of(EDGES, LABELS, NODES, 3))
    torch.testing.assert_close(found, part(x, LabelledEdges.of(EDGES[:, known], LABELS[known], NODES, 3)))


@pytest.mark.parametrize("options", [{"kinds": 3}, {"width": 2}])
def test_it_is_the_network(options):
    """Three convolutions, the means of neighbors for a coarser graph, and three more by the weights of its edges."""
    torch.manual_seed(0)
    config = replace(SYSTEMS["ecc"].model, hidden=5, pool_options=options)
    model = make_model(config, 3, 2).network.double().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    coarser = CoarserBatch(
        kept=torch.tensor([0, 2, 5, 6]),
        edge_index=torch.tensor([[1, 0], [0, 1]]),
        weights=torch.tensor([0.5, 0.5]),
        batch=torch.tensor([0, 0, 1, 1]),
    )
    batch = torch.tensor([0, 0, 0, 0, 0, 1, 1])
    start = torch.rand(NODES, 3).double()
    if "kinds" in options:
        codes, own = labelled(LABELS, 4)
    else:
        codes, own = model.scale(NUMBERS), torch.zeros(1, 2).double()
    every, attributes = with_loops(EDGES, codes, NODES, own)
    above, weights = with_loops(coarser.edge_index, coarser.weights.double().view(2, 1), 4, torch.zeros(1, 1).double())
    with torch.no_grad():
        x = start
        for part, norm in zip(model.fine.convolutions, model.fine.norms, strict=True):
            x = norm(nn_conv(part, attributes.shape[1])(x, every, attributes)).relu()
        x = torch.stack([x[every[0, every[1] == node]].mean(0) for node in coarser.kept])
        for part, norm in zip(model.coarse.convolutions, model.coarse.norms, strict=True):
            x = norm(nn_conv(part, 1)(x, above, weights)).relu()
        want = model.head(model.dense(global_mean_pool(x, coarser.batch)).relu())
        found = model(start, EDGES, batch, labels=LABELS, numbers=NUMBERS, coarser=coarser)
    torch.testing.assert_close(found, want, rtol=1e-12, atol=1e-12)


def test_graphs_that_take_too_long_are_refused(monkeypatch):
    store = load("MUTAG")
    assert SYSTEMS["ecc"].refuses(store) is None
    assert SYSTEMS["ecc"].refuses(store[:0]) is None
    monkeypatch.setattr(ecc, "MOST_NODES", 20)
    assert SYSTEMS["ecc"].refuses(store) == "coarsening takes n^3 steps: 28 nodes in a graph, of at most 20"


def test_runs_use_what_edges_have(tmp_path, monkeypatch):
    """Labels, or attributes, or neither; as many as the training graphs of a fold have."""
    system = SYSTEMS["ecc"]
    monkeypatch.setitem(SYSTEMS, "ecc", replace(system, settings=system.settings[:2]))
    plain = load("MUTAG")[torch.arange(0, 188, 8)]
    plain = replace(plain, edge_labels=None, edge_label_names=())
    attributes = torch.rand(plain.num_edges, 3)
    for store, options in (
        (load("MUTAG")[torch.arange(0, 188, 8)], {"kinds": 3, "width": 0}),  # the label of a triple bond is missing
        (replace(plain, edge_attributes=attributes), {"width": 3}),
        (plain, {"kinds": 1, "width": 0}),
    ):
        evaluator = Evaluator(store, Request(["ecc"], ["last-epoch"], folds=2, epochs=1), RunStore(tmp_path))
        (found,) = evaluator.evaluate(workers=1)
        assert found.missing == {}
        for run in found.runs["test"]:
            assert options.items() <= run.config.model.pool_options.items()


def test_a_saved_model_reads_attributes_of_edges(tmp_path):
    """As they are: the network standardizes them."""
    store = load("MUTAG")[torch.arange(0, 188, 8)]
    attributes = torch.rand(store.num_edges, 3, generator=torch.Generator().manual_seed(0))
    store = replace(store, edge_labels=None, edge_label_names=(), edge_attributes=attributes)
    model = GraphClassifier(system="ecc", n_models=1, epochs=1, random_state=0).fit(store)
    assert model.config_.pool_options["width"] == 3
    model.save(tmp_path / "model.sopool")
    loaded = GraphClassifier.load(tmp_path / "model.sopool")
    some = store[5:9]
    np.testing.assert_array_equal(loaded.predict_proba(some), model.predict_proba(some))
    np.testing.assert_allclose(loaded.predict_proba(some), model.predict_proba(store)[5:9], rtol=1e-5)
    other = replace(some, edge_attributes=some.edge_attributes + 1)
    assert not np.allclose(loaded.predict_proba(other), loaded.predict_proba(some), rtol=1e-6)
