"""PATCHY-SAN beside its formula, node by node."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sopool._files.sealed import seal
from sopool.data import Graph, load, pack
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import SYSTEMS
from sopool.models import make_model
from sopool.models.systems.networks import patchy_san
from sopool.models.systems.networks.patchy_san import Fields, mean_size
from sopool.training.runs.store import RunStore

RING = [(i, (i + 1) % 12) for i in range(12)]
GRAPHS = [
    Graph(14, [*RING, (0, 12), (12, 13), (3, 3)]),
    Graph(1, []),
    Graph(5, [(0, 1), (1, 2), (3, 4)]),
]


def reference(model, x, fields):
    """Scores of one graph by a loop over the sequence."""
    rows = []
    for place in range(model.nodes):
        field = fields[place, : model.k].tolist() if place < len(fields) else [-1] * model.k
        values = torch.cat([x[node] if node >= 0 else torch.zeros_like(x[0]) for node in field])
        rows.append((model.first.weight @ values + model.first.bias).relu())
    seen = []
    for start in range(model.nodes - 9):
        window = torch.stack(rows[start : start + 10], 1)  # [16, 10]
        seen.append(((model.second.weight * window).sum((1, 2)) + model.second.bias).relu())
    dense = model.dense(torch.stack(seen, 1).flatten()).relu()
    return model.head(dense)


@pytest.mark.parametrize("wide", [4, 5])
@pytest.mark.parametrize(("k", "nodes"), [(10, 10), (5, 12), (7, 20)])
def test_it_is_the_network_of_the_paper(k, nodes, wide, monkeypatch):
    """Sequences shorter and longer than the graphs; four features are many or few."""
    monkeypatch.setattr(patchy_san, "WIDE", wide)
    store = pack(GRAPHS)
    tables = Fields(10).build(store, cached=False)
    torch.manual_seed(0)
    config = replace(SYSTEMS["patchy-san"].model, system_options={"k": k}, pool_options={"nodes": nodes})
    model = make_model(config, 4, 2).network.double().eval()
    x = torch.randn(store.num_nodes, 4, dtype=torch.float64)
    batch = torch.tensor([0] * 14 + [1] + [2] * 5)
    fields = tables.take(torch.arange(3), store.node_ptr, torch.arange(store.num_nodes))
    found = model(x, torch.empty(2, 0, dtype=torch.long), batch, fields)
    want = [reference(model, x[batch == graph], tables.nodes[batch == graph]) for graph in range(3)]
    torch.testing.assert_close(found, torch.stack(want), rtol=1e-12, atol=1e-12)


def test_fields_are_kept_and_forged_ones_are_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    store = pack(GRAPHS)
    expected = Fields(4).build(store).nodes
    (path,) = tmp_path.glob("*.fields")
    whole = load_file(path)["nodes"]
    monkeypatch.setattr(patchy_san, "receptive_fields", lambda *_: pytest.fail("they are kept"))
    assert torch.equal(Fields(4).build(store).nodes, expected)
    monkeypatch.setattr(patchy_san, "receptive_fields", lambda *_: expected.numpy())
    for at, value in (((14, 0), 1), ((15, 2), 5), ((0, 1), -2)):
        forged = whole.clone()
        forged[at] = value
        for nodes in (forged, whole[:-1], whole.long()):
            path.unlink()
            path.write_bytes(seal({"nodes": nodes}, {"entry": path.name}))
            with pytest.warns(UserWarning, match="does not hold valid fields: .*Creating it again"):
                assert torch.equal(Fields(4).build(store).nodes, expected)


def test_graphs_that_are_too_large_are_refused(monkeypatch):
    assert SYSTEMS["patchy-san"].refuses(pack(GRAPHS)) is None
    monkeypatch.setattr(patchy_san, "MOST_NODES", 13)
    assert "up to 13 nodes; here one has 14" in SYSTEMS["patchy-san"].refuses(pack(GRAPHS))


def test_it_learns_on_mutag(tmp_path, monkeypatch):
    """With sequences as long as the training graphs of a fold are on average."""
    system = SYSTEMS["patchy-san"]
    monkeypatch.setitem(SYSTEMS, "patchy-san", replace(system, settings=system.settings[:1]))
    store = load("MUTAG")
    request = Request(["patchy-san", "majority"], ["last-epoch"], epochs=10, folds=2)
    network, majority = Evaluator(store, request, RunStore(tmp_path)).evaluate(workers=1)
    assert network.outcomes["last-epoch"].mean > majority.outcomes["last-epoch"].mean + 0.05
    for run in network.runs["test"]:
        train = np.setdiff1d(np.arange(len(store)), run.predictions["test_graphs"])
        assert run.config.model.pool_options == {"nodes": mean_size(store[train])}
        assert run.config.optimizer == "rmsprop"
