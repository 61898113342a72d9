"""EigenGCN beside plain matrices, one graph at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sopool.data import NodeLabelEncoder, load
from sopool.data.analysis.spectral import spectral_clusters
from sopool.data.pack import Graph, pack
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import SYSTEMS
from sopool.models import make_model
from sopool.models.systems.networks.eigengcn import CLUSTERS
from sopool.training.bank.batching import GraphTables
from sopool.training.runs.store import RunStore
from tests.helpers.convolutions import convolved

SIZES = (25, 130, 0, 4, 1)


def random_graph(nodes, random):
    """A tree with further edges, and labels of nodes."""
    pairs = {(int(random.integers(0, child)), child) for child in range(1, nodes)}
    pairs |= {(a, b) for a, b in random.integers(0, max(1, nodes), (nodes, 2)).tolist() if a < b}
    edges = [pair for a, b in sorted(pairs) for pair in ((a, b), (b, a))]
    return Graph(nodes, edges, nodes % 2, random.integers(0, 3, nodes).tolist())


STORE = pack([random_graph(nodes, np.random.default_rng(nodes)) for nodes in SIZES], "toy")


def classifier(vectors):
    torch.manual_seed(0)
    config = replace(SYSTEMS["eigengcn"].model, hidden=8, system_options={"vectors": vectors})
    return make_model(config, 3, 2).double().eval()


def matrix(edges, nodes):
    """How often each node has an edge from each other."""
    found = torch.zeros(nodes, nodes).double()
    for source, target in edges.T.tolist():
        found[target, source] += 1
    return found


def pooled(h, level, number, first, vectors):
    """The projections of each cluster of a graph whose nodes start at ``first``, and the matrix of the clusters."""
    start, stop = level.node_ptr[number : number + 2]
    rows = level.rows[first : first + len(h)]
    values = torch.from_numpy(level.vectors[first : first + len(h), :vectors]).double()
    sizes = level.sizes[start:stop].tolist()
    parts = zip(torch.from_numpy(rows).split(sizes), values.split(sizes), strict=True)
    found = torch.stack([torch.cat([u @ h[members] for u in some.T]) for members, some in parts])
    return found, matrix(level.edges[:, level.edge_ptr[number] : level.edge_ptr[number + 1]], stop - start)


def reference(net, x, vectors):
    """Scores of the graphs that have nodes."""
    first, second = spectral_clusters(STORE, CLUSTERS)
    scores = []
    for number in (number for number, size in enumerate(SIZES) if size):
        start, stop = STORE.node_ptr[number : number + 2].tolist()
        edges = STORE.edge_index[:, STORE.edge_ptr[number] : STORE.edge_ptr[number + 1]]
        (h,) = convolved(net.first, [x[start:stop]], [matrix(edges, stop - start)])
        smaller, weights = pooled(h, first, number, start, vectors)
        (g,) = convolved(net.second, [smaller], [weights])
        last, _ = pooled(g, second, number, first.node_ptr[number], vectors)
        scores.append(net.head(torch.cat([rows.amax(0) for rows in (h, g, last)])))
    return torch.stack(scores)


def scored(model, store, order):
    """Scores of graphs in an order."""
    tables = GraphTables.for_prediction(store, NodeLabelEncoder(unknown=False).fit(STORE).transform(store))
    tables = tables.with_extras(store, SYSTEMS["eigengcn"].extras, cached=False)
    with torch.no_grad():
        return model(*tables.batch(order.unsqueeze(0)).to(torch.float64))


@pytest.mark.parametrize("vectors", [1, 3])
def test_it_is_the_network_of_the_paper(vectors):
    """In a batch in another order; one graph has several clusters of clusters."""
    model = classifier(vectors)
    order = torch.tensor([3, 0, 2, 4, 1])
    found = scored(model, STORE, order)
    with torch.no_grad():
        x = torch.nn.functional.one_hot(STORE.node_labels.long(), 3).double()
        want = torch.zeros(5, 2).double()
        want[[0, 1, 3, 4]] = reference(model.network, x, vectors)
    torch.testing.assert_close(found, want[order], rtol=1e-9, atol=1e-9)


def test_the_order_of_nodes_makes_no_difference_to_distinct_eigenvectors():
    """Of one cluster; the order of the nodes is where k-means begins, and it decides between equal eigenvalues."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (2, 8), (5, 8), (3, 7), (0, 2)]
    scores = []
    for place in (np.arange(9), np.random.default_rng(0).permutation(9)):
        both = [(int(place[a]), int(place[b])) for pair in edges for a, b in (pair, pair[::-1])]
        labels = np.zeros(9, int)
        labels[place] = [0, 1, 2, 0, 1, 2, 0, 1, 2]
        scores.append(scored(classifier(3), pack([Graph(9, both, 0, labels.tolist())], "one"), torch.tensor([0])))
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-5)  # eigenvectors are stored in single precision


def test_there_are_only_so_many_eigenvectors():
    with pytest.raises(ValueError, match="vectors=4: it must be from 1 to 3"):
        classifier(4)


def test_runs_of_every_setting_share_clusters(tmp_path, monkeypatch):
    system = SYSTEMS["eigengcn"]
    monkeypatch.setitem(SYSTEMS, "eigengcn", replace(system, recipe=replace(system.recipe, epochs=1, steps=1)))
    store = load("MUTAG")[torch.arange(0, 188, 4)]
    evaluator = Evaluator(store, Request(["eigengcn"], ["last-epoch"], folds=2), RunStore(tmp_path))
    (found,) = evaluator.evaluate(workers=1)
    assert found.missing == {}
    assert [dict(run.config.setting.options)["vectors"] for run in found.runs["test"]] == [1, 1, 2, 2, 3, 3]
