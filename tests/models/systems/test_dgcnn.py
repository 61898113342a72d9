"""DGCNN beside a plain reference, and the number of nodes that it reads."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sopool.data import load
from sopool.experiments import Evaluator, Request
from sopool.experiments.stored import find_experiments
from sopool.experiments.systems import SYSTEMS
from sopool.models import make_model
from sopool.models.presets import sort_size
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5), (5, 5), (6, 7), (7, 8), (8, 9), (9, 10), (10, 6), (1, 11)]


def network(k):
    torch.manual_seed(0)
    config = replace(SYSTEMS["dgcnn"].model, pool_options={"k": k}, hidden=32)
    return make_model(config, 3, 2).network.double().eval()


def reference(model, x, adjacency, k):
    """Scores of one graph by dense matrices and PyTorch's convolutions."""
    inside = adjacency + torch.eye(len(x)).double()
    inverse = torch.diag(1 / inside.sum(1))
    layers = [x]
    for weight in model.weights:
        layers.append(torch.tanh(inverse @ inside @ layers[-1] @ weight))
    every = torch.cat(layers[1:], 1)
    assert every.shape[1] == 97
    kept = every[every[:, -1].argsort(descending=True)][:k]
    rows = torch.cat([kept, torch.zeros(k - len(kept), 97).double()])
    part = model.readout
    first = torch.nn.Conv1d(1, 16, 97, 97)
    second = torch.nn.Conv1d(16, 32, 5)
    first.weight.data = part.weight.T.unsqueeze(1)
    first.bias.data = part.bias
    second.weight.data = part.next_weight.view(5, 16, 32).permute(2, 1, 0)
    second.bias.data = part.next_bias
    pairs = torch.nn.functional.max_pool1d(first(rows.view(1, 1, -1)).relu(), 2)
    embedding = second(pairs).relu()[0].T.flatten()
    return model.head(model.dense(embedding).relu())


@pytest.mark.parametrize("k", [10, 15])  # fewer than the 12 nodes, and more
def test_it_is_the_network_of_the_paper(k):
    model = network(k)
    edges = torch.tensor([*EDGES, *((b, a) for a, b in EDGES if a != b)]).T
    x = torch.rand(12, 3, dtype=torch.float64)
    adjacency = torch.zeros(12, 12, dtype=torch.float64)
    adjacency[edges[1], edges[0]] = 1
    found = model(torch.cat([x, x]), torch.cat([edges, edges + 12], 1), torch.arange(2).repeat_interleave(12))
    with torch.no_grad():
        want = reference(model, x, adjacency, k)
    torch.testing.assert_close(found, want.expand(2, 2), rtol=1e-12, atol=1e-12)


def test_runs_read_as_many_nodes_as_training_graphs_have(tmp_path, monkeypatch):
    """In each fold; no test graph has a part in it, and the folds remain one experiment."""
    system = SYSTEMS["dgcnn"]
    monkeypatch.setitem(SYSTEMS, "dgcnn", replace(system, recipe=replace(system.recipe, epochs=1, steps=1)))
    store = load("MUTAG")[torch.arange(0, 188, 4)]
    request = Request(["dgcnn", "size"], ["fair", "last-epoch"], folds=3)
    evaluator = Evaluator(store, request, RunStore(tmp_path))
    (found, _) = evaluator.evaluate(workers=1)
    assert found.missing == {}
    for run in found.runs["test"]:
        train = np.setdiff1d(np.arange(len(store)), run.predictions["test_graphs"])
        want = sort_size(store.sizes[torch.from_numpy(train)])
        assert run.config.model.pool_options == {"k": want}
        assert (run.config.setting.hidden, run.config.batch_size, run.config.epochs) == (32, 50, 1)
        assert RunConfig.from_json(run.config.to_json()) == run.config
    assert len({run.config.model.pool_options["k"] for run in found.runs["test"]}) > 1
    (together,) = find_experiments(one for one in evaluator.runs.list() if one.config.model.system == "dgcnn")
    assert together.shared.model.pool_options == {}
