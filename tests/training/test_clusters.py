"""Clusters of a batch against clusters of each graph."""

import pytest
import torch

from sopool.data.analysis.spectral import ClusterSpec, spectral_clusters
from sopool.data.extras.clusters import ClusterTables
from sopool.nn import EigenPooling
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.structure import GraphStructure
from tests.helpers.strategies import draw_rows
from tests.helpers.training_graphs import little_store

SPEC = ClusterSpec(3, 2, 2)


def test_a_batch_holds_the_clusters_of_its_graphs():
    store = little_store()
    tables = ClusterTables.of(spectral_clusters(store, SPEC))
    chosen = torch.tensor([3, 5, 0, 3])
    batch = store.batch(chosen)
    found = tables.take(batch.graphs, batch.ptr, batch.nodes)
    start, first = 0, 0
    for graph, offset in zip(chosen.tolist(), batch.ptr.tolist(), strict=False):
        own = ClusterTables.of(spectral_clusters(store[graph], SPEC)).take(torch.tensor([0]), *alone(store[graph]))
        nodes = len(own.rows)
        clusters = own.ptr.numel() - 1
        assert torch.equal(found.rows[offset : offset + nodes], own.rows + offset)
        torch.testing.assert_close(found.vectors[offset : offset + nodes], own.vectors)
        assert torch.equal(found.ptr[start : start + clusters + 1] - found.ptr[start], own.ptr)
        ends = found.graphs.neighbors.ptr[start : start + clusters + 1]
        members = found.graphs.neighbors.nodes[ends[0] : ends[-1]]
        assert torch.equal(members, own.graphs.neighbors.nodes + start)
        above = found.graphs.neighbors.extras["clusters"]
        its = own.graphs.neighbors.extras["clusters"]
        assert torch.equal(above.rows[start : start + clusters], its.rows + start)
        start = start + clusters
        first = first + nodes
    assert found.graphs.ptr.tolist()[-1] == start


def alone(graph):
    return graph.node_ptr, torch.arange(graph.num_nodes)


def test_moved_to_a_device():
    tables = ClusterTables.of(spectral_clusters(little_store(), SPEC)).to("meta")
    assert tables.rows.device.type == tables.neighbors.nodes.device.type == tables.above.vectors.device.type == "meta"


def test_eigenpool_is_its_formula():
    """U_c^T H_c of each cluster, and back to the nodes through U_c."""
    store = little_store()
    batch = store.batch([1, 5, 7, 2])
    found = ClusterTables.of(spectral_clusters(store, SPEC)).take(batch.graphs, batch.ptr, batch.nodes)
    x = draw_rows(0, len(batch.nodes), 3)
    empty = torch.zeros(len(x) + 1, dtype=torch.long), torch.empty(0, dtype=torch.long)
    layer = EigenPooling(3, vectors=2, size=3)
    graphs = GraphStructure(batch.ptr, Neighbors(*empty, empty, extras={"clusters": found}))
    out = layer.pool(x, graphs)
    assert out.x.shape == (len(found.ptr) - 1, layer.out_channels)
    y = draw_rows(1, *out.x.shape)
    lifted = torch.zeros_like(x)
    for number, (first, last) in enumerate(zip(found.ptr[:-1], found.ptr[1:], strict=True)):
        rows = found.rows[first:last]
        vectors = found.vectors[first:last].double()
        torch.testing.assert_close(out.x[number], (vectors.t() @ x[rows]).flatten())
        lifted[rows] = vectors @ y[number].view(2, 3)
    torch.testing.assert_close(out.lift(y), lifted)
    assert out.graphs() is found.graphs
    with pytest.raises(ValueError, match="needs clusters with 3 eigenvectors each, but the graphs have 2"):
        EigenPooling(3, vectors=3).pool(x, graphs)
