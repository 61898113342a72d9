"""DCNN beside its formula, node by node."""

from dataclasses import replace

import numpy as np
import torch

from sopool.data import Graph, load, pack
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import SYSTEMS
from sopool.models import make_model
from sopool.models.systems.networks.dcnn import Visits
from sopool.training.runs.store import RunStore

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 4), (5, 6), (0, 1)]


def reference(model, x, edges):
    """Scores of one graph by dense matrices and loops over steps and columns."""
    nodes = len(x)
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    for a, b in edges:
        if a != b:
            adjacency[a, b] = adjacency[b, a] = 1
    move = adjacency @ torch.diag(1 / (adjacency.sum(1) + 1))
    rows = []
    for weight in model.weight:
        seen = torch.matrix_power(move, len(rows)) @ x
        rows.append(torch.stack([torch.tanh(weight[f] * seen[:, f].mean()) for f in range(x.shape[1])]))
    return model.head(torch.cat(rows))


def test_it_is_the_network_of_the_paper():
    graphs = [Graph(7, EDGES), Graph(1, []), Graph(3, [(0, 1), (1, 2)])]
    x = torch.rand(11, 4, dtype=torch.float64)
    batch = torch.tensor([0] * 7 + [1] + [2] * 3)
    shares = Visits(5).build(pack(graphs)).rows
    for hops in (1, 3, 5):
        torch.manual_seed(hops)
        config = replace(SYSTEMS["dcnn"].model, system_options={"hops": hops})
        model = make_model(config, 4, 2).network.double()
        found = model(x, torch.empty(2, 0, dtype=torch.long), batch, visits=shares)
        want = [reference(model, x[batch == number], graph.edges) for number, graph in enumerate(graphs)]
        torch.testing.assert_close(found, torch.stack(want), rtol=1e-12, atol=1e-12)


def test_it_learns_on_mutag(tmp_path, monkeypatch):
    system = SYSTEMS["dcnn"]
    monkeypatch.setitem(SYSTEMS, "dcnn", replace(system, settings=system.settings[:1]))
    request = Request(["dcnn", "majority"], ["last-epoch"], epochs=20, folds=3)
    network, majority = Evaluator(load("MUTAG"), request, RunStore(tmp_path)).evaluate(workers=1)
    assert network.outcomes["last-epoch"].mean > majority.outcomes["last-epoch"].mean + 0.02
    assert network.runs["test"][0].config.model.system_version == "1 visits=5-1"
    assert np.isfinite(network.runs["test"][0].curves["step_loss"]).all()
