"""DiffPool beside PyG's dense layer and plain matrices, and the losses that a network may add."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.nn import dense_diff_pool

from sopool.data import load
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import SYSTEMS
from sopool.models import make_model, stack
from sopool.models.systems.networks.diffpool import clusters_of
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.training.runs.store import RunStore
from tests.helpers.convolutions import convolved

SIZES = [5, 1, 9, 0, 6]


def classifier(poolings, seed=0):
    torch.manual_seed(seed)
    options = {"system_options": {"poolings": poolings}, "pool_options": {"nodes": 20}}
    return make_model(replace(SYSTEMS["diffpool-net"].model, hidden=8, **options), 3, 2).double()


def random_graphs():
    """Features, edges ``[2, E]`` with loops and repeats in some of the graphs, and the dense A of each."""
    random = np.random.default_rng(0)
    edges, dense = [], []
    for start, size in zip(np.cumsum([0, *SIZES]), SIZES, strict=False):
        matrix = torch.from_numpy(random.integers(0, 3, (size, size)) * (random.random((size, size)) < 0.4)).double()
        rows = np.argwhere(matrix.numpy())
        repeats = matrix.numpy()[tuple(rows.T)].astype(int)
        edges.append(np.repeat(rows[:, ::-1], repeats, axis=0).T + start)  # row i aggregates the edges into i
        dense.append(matrix)
    return torch.randn(sum(SIZES), 3).double(), torch.from_numpy(np.concatenate(edges, 1).copy()), dense


def reference(net, rows, matrices, training):
    """Scores and additional losses of graphs with nodes, one matrix for each graph."""
    readouts, penalty = [], 0
    for level, encoder in enumerate(net.encoders):
        h = convolved(encoder, rows, matrices, training)
        readouts.append(torch.stack([one.amax(0) for one in h]))
        if level < len(net.assigners):
            s = convolved(net.assigners[level], rows, matrices, training)
            logits = [net.logits[level](one) for one in s]
            pooled = [dense_diff_pool(*graph) for graph in zip(h, matrices, logits, strict=True)]
            ends = [len(x) * link + entropy for x, (*_, link, entropy) in zip(h, pooled, strict=True)]
            rows = [x[0] for x, *_ in pooled]
            matrices = [adj[0] for _, adj, *_ in pooled]
            penalty = penalty + torch.stack(ends)
    return net.head(torch.cat(readouts, 1)), penalty


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("poolings", [1, 2])
def test_it_is_the_network_of_the_paper(poolings, training):
    """With PyG's pooling, graph by graph; a graph without nodes has the scores 0."""
    model = classifier(poolings).train(training)
    x, edges, dense = random_graphs()
    ptr = torch.tensor(np.cumsum([0, *SIZES]))
    there = [number for number, size in enumerate(SIZES) if size]
    rows = [x[ptr[number] : ptr[number + 1]] for number in there]
    with torch.no_grad():
        want, penalty = reference(model.network, rows, [dense[number] for number in there], training)
        found = model.classify(x, neighbors_of(edges, len(x)), ptr)
    torch.testing.assert_close(found.scores[there], want, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.penalty[there], penalty, rtol=1e-5, atol=1e-6)  # PyG adds 1e-15 to logarithms
    assert not found.scores[3].any()
    assert found.penalty[3] == 0


def test_graphs_without_nodes_alone():
    x, edges, _ = random_graphs()
    ptr = torch.tensor([0, 0, 0, 5, 6])  # two graphs of each of two models
    together = stack([classifier(1, seed).eval() for seed in range(2)])
    inside = edges[:, edges[0] < 6]
    found = together.classify(x[:6], neighbors_of(inside, 6), ptr)
    assert not found.scores[:2].any()
    assert found.scores[2:].all()
    assert (found.penalty > 0).tolist() == [False, False, True, True]
    nothing = together.classify(x[:0], neighbors_of(edges[:, :0], 0), torch.zeros(3, dtype=torch.long))
    assert nothing.scores.tolist() == [[0, 0], [0, 0]]
    assert nothing.penalty is None


def test_losses_of_stacked_networks_are_those_of_each():
    x, edges, _ = random_graphs()
    lists = neighbors_of(torch.cat([edges, edges + len(x)], 1), 2 * len(x))
    ptr = torch.tensor(np.cumsum([0, *SIZES, *SIZES]))
    models = [classifier(2, seed).eval() for seed in range(2)]
    together = stack(models).classify(torch.cat([x, x]), lists, ptr)
    for model, scores, penalty in zip(models, together.scores.split(5), together.penalty.split(5), strict=True):
        alone = model.classify(x, neighbors_of(edges, len(x)), ptr[:6])
        torch.testing.assert_close(scores, alone.scores)
        torch.testing.assert_close(penalty, alone.penalty)


def test_clusters_follow_from_the_largest_training_graph(tmp_path, monkeypatch):
    assert clusters_of(28, 1) == [2]
    assert clusters_of(28, 2) == [7, 2]
    assert clusters_of(492, 1) == [49]
    assert clusters_of(5748, 2) == [128, 32]
    with pytest.raises(ValueError, match="poolings=3: it must be 1 or 2"):
        clusters_of(28, 3)
    system = SYSTEMS["diffpool-net"]
    small = replace(system, recipe=replace(system.recipe, epochs=1, steps=1), settings=system.settings[:1])
    monkeypatch.setitem(SYSTEMS, "diffpool-net", small)
    store = load("MUTAG")[torch.arange(0, 188, 4)]
    (found,) = Evaluator(store, Request(["diffpool-net"], ["last-epoch"], folds=3), RunStore(tmp_path)).evaluate(
        workers=1
    )
    for run in found.runs["test"]:
        train = np.setdiff1d(np.arange(len(store)), run.predictions["test_graphs"])
        assert run.config.model.pool_options == {"nodes": int(store.sizes[torch.from_numpy(train)].max())}
        assert run.curves["step_loss"][0] > run.curves["train_loss"][0]  # the additional losses are part of it
        assert (run.config.clip, run.config.batch_size, run.config.optimizer) == (2.0, 20, "adam")
