"""EigenPooling called with edges: clusters that are computed, remembered or given."""

import numpy as np
import pytest
import torch

from sopool.data import Graph, pack
from sopool.data.analysis.spectral import ClusterSpec, spectral_clusters
from sopool.data.extras.clusters import ClusterTables
from sopool.nn import EigenPooling
from sopool.nn.pool import graph_clusters
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.structure import GraphStructure
from tests.helpers.strategies import draw_rows

# A path with a loop, two triangles joined by an edge, and single nodes with an empty graph between them.
EDGES = torch.tensor([[0, 1, 2, 2, 4, 5, 4, 7, 8, 7, 6], [1, 2, 3, 2, 5, 6, 6, 8, 9, 9, 7]])
BATCH = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 4])


@pytest.fixture
def remembered():
    graph_clusters._clusters_of.cache_clear()
    yield graph_clusters._clusters_of.cache_info
    graph_clusters._clusters_of.cache_clear()


def test_the_clusters_are_those_of_a_data_set():
    """Both ways of calling the layer give the same pooled graphs; in a data set the edges are sorted."""
    graphs = []
    for g in range(5):
        own = (g == BATCH).nonzero().squeeze(1)
        pairs = [(a - int(own[0]), b - int(own[0])) for a, b in EDGES.t().tolist() if BATCH[a] == g]
        graphs.append(Graph(len(own), sorted(pairs)))
    store = pack(graphs)
    tables = ClusterTables.of(spectral_clusters(store, ClusterSpec(2, 2)))
    batch = store.batch(range(5))
    clusters = tables.take(batch.graphs, batch.ptr, batch.nodes)
    none = torch.zeros(len(BATCH) + 1, dtype=torch.long), torch.empty(0, dtype=torch.long)
    layer = EigenPooling(3, vectors=2, size=2)
    x = draw_rows(0, len(BATCH), 3)
    want = layer.pool(x, GraphStructure(batch.ptr, Neighbors(*none, none, extras={"clusters": clusters})))
    got = layer(x, EDGES, batch=BATCH, batch_size=5)
    torch.testing.assert_close((got.x, got.ptr, got.lift(got.x)), (want.x, want.ptr, want.lift(want.x)))
    assert sorted(got.edge_index.t().tolist()) == sorted(want.edge_index.t().tolist())


def test_given_clusters_are_the_formula():
    """Any integers, the same in several graphs; pooled nodes are in their order."""
    cluster = torch.tensor([7, -1, 7, -1, 3, 3, 3, 9, 9, 9, 0, 0])
    x = draw_rows(0, len(BATCH), 3)
    out = EigenPooling(3, vectors=2, size=4)(x, EDGES, batch=BATCH, batch_size=5, cluster=cluster)
    assert out.ptr.tolist() == [0, 2, 4, 5, 5, 6]
    found = [tuple(edge) for edge in out.edge_index.t().tolist()]
    assert {edge: found.count(edge) for edge in found} == {(0, 1): 1, (1, 0): 2, (2, 3): 1}
    whole = torch.zeros(12, 12, dtype=torch.float64).index_put((EDGES[0], EDGES[1]), torch.tensor(0.5).double(), True)
    whole = (whole + whole.t()).fill_diagonal_(0)
    for number, (graph, name) in enumerate([(0, -1), (0, 7), (1, 3), (1, 9), (2, 0), (4, 0)]):
        rows = ((graph == BATCH) & (cluster == name)).nonzero().squeeze(1)
        own = whole[rows][:, rows]
        # A triangle has two equal eigenvalues, and any basis of their vectors is right.
        known = 1 if graph == 1 else 2
        vectors = torch.linalg.eigh(torch.diag(own.sum(1)) - own)[1][:, :known]
        here = out.x[number].view(2, 3)[:known]
        torch.testing.assert_close(
            here.t() @ here, (vectors.t() @ x[rows]).t() @ vectors.t() @ x[rows], rtol=1e-5, atol=1e-5
        )
        if graph != 1:
            torch.testing.assert_close(out.lift(out.x)[rows], vectors @ vectors.t() @ x[rows], rtol=1e-5, atol=1e-5)


def test_clusters_of_a_graph_are_computed_once(remembered, monkeypatch):
    """In other batches, in another order of the edges, and by other layers with the same options."""
    x = draw_rows(0, len(BATCH), 3)
    want = EigenPooling(3, size=2)(x, EDGES, batch=BATCH, batch_size=5)
    monkeypatch.setattr(graph_clusters, "cluster_graphs", lambda *_: pytest.fail("they were remembered"))
    got = EigenPooling(3, size=2)(x, EDGES.flip(1), batch=BATCH, batch_size=5)
    torch.testing.assert_close(got.x, want.x)
    second = (EDGES[0] >= 4).nonzero().squeeze(1)
    EigenPooling(3, size=2)(x[4:10], EDGES[:, second] - 4)
    assert remembered().currsize == 4  # of the two single nodes, one
    with pytest.raises(pytest.fail.Exception):
        EigenPooling(3, size=3)(x, EDGES, batch=BATCH)


def test_what_is_remembered_does_not_change(remembered):
    layer = EigenPooling(3, size=2)
    x = draw_rows(0, 4, 3)
    edges = EDGES[:, :3]
    first = layer(x, edges)
    for tensor in (first.edge_index, first.lift.rows, first.lift.vectors):
        tensor.zero_()
    assert np.any(layer(x, edges).lift.vectors.numpy())
    assert layer(x, edges).lift.rows.sort().values.tolist() == [0, 1, 2, 3]
