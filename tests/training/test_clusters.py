"""Clusters of a batch against clusters of each graph."""

import torch

from sopool.data.spectral import ClusterSpec, cluster
from sopool.training.clusters import ClusterTables
from tests.training.graphs import little_store

SPEC = ClusterSpec(3, 2, 2)


def test_a_batch_holds_the_clusters_of_its_graphs():
    store = little_store()
    tables = ClusterTables.of(cluster(store, SPEC))
    chosen = torch.tensor([3, 5, 0, 3])
    batch = store.batch(chosen)
    found = tables.take(batch.graphs, batch.ptr, batch.nodes)
    start, first = 0, 0
    for graph, offset in zip(chosen.tolist(), batch.ptr.tolist(), strict=False):
        own = ClusterTables.of(cluster(store[graph], SPEC)).take(torch.tensor([0]), *alone(store[graph]))
        nodes, clusters = len(own.rows), own.ptr.numel() - 1
        assert torch.equal(found.rows[offset : offset + nodes], own.rows + offset)
        torch.testing.assert_close(found.vectors[offset : offset + nodes], own.vectors)
        assert torch.equal(found.ptr[start : start + clusters + 1] - found.ptr[start], own.ptr)
        ends = found.graphs.hears.ptr[start : start + clusters + 1]
        heard = found.graphs.hears.nodes[ends[0] : ends[-1]]
        assert torch.equal(heard, own.graphs.hears.nodes + start)
        above, its = found.graphs.hears.clusters, own.graphs.hears.clusters
        assert torch.equal(above.rows[start : start + clusters], its.rows + start)
        start, first = start + clusters, first + nodes
    assert found.graphs.ptr.tolist()[-1] == start


def alone(graph):
    return graph.node_ptr, torch.arange(graph.num_nodes)


def test_moved_to_a_device():
    tables = ClusterTables.of(cluster(little_store(), SPEC)).to("meta")
    assert tables.rows.device.type == tables.hears.nodes.device.type == tables.above.vectors.device.type == "meta"
