"""Coarser graphs, numbers of edges and histograms of resistances as extras of batches."""

from dataclasses import replace

import pytest
import torch

from sopool.data import load
from sopool.data.analysis.kron import coarsen
from sopool.data.extras import EdgeNumbers, KronPyramid, ResistanceHistograms, edge_numbers, kron, resistance
from sopool.data.pack import Graph, pack
from sopool.nn.pool.edge_list import list_edges
from sopool.ops.message_passing.neighbors import neighbors_of

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, 5)]
STORE = pack([Graph(3, [(0, 1), (1, 2)]), Graph(0), Graph(6, RING), Graph(1), Graph(4, [(0, 1), (1, 2), (2, 3)])])
BATCH = STORE.batch([2, 0, 1, 4, 2, 3])


@pytest.fixture
def found(monkeypatch, tmp_path):
    """A cache folder of its own, and what is computed instead of read."""
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    calls = []
    for module, name in ((kron, "coarsen"), (resistance, "resistance_histograms")):
        function = getattr(module, name)

        def counted(*args, function=function, name=name):
            calls.append(name)
            return function(*args)

        monkeypatch.setattr(module, name, counted)
    return calls


def test_batches_have_the_coarser_graphs_of_their_graphs():
    tables = KronPyramid(levels=2).build(STORE, cached=False)
    taken = tables.take(BATCH.graphs, BATCH.ptr, BATCH.nodes)
    nodes, ptr = BATCH.nodes, BATCH.ptr
    for level in coarsen(STORE, 2):
        batch = taken.batch
        assert batch.tolist() == sorted(batch.tolist())
        coarse = []  # the coarser nodes of the batch, as numbers in the store
        for place, graph in enumerate(BATCH.graphs.tolist()):
            first, last = level.node_ptr[graph], level.node_ptr[graph + 1]
            own = nodes[taken.kept[batch == place]]
            assert own.tolist() == level.kept[first:last].tolist()
            assert ((taken.kept[batch == place] >= ptr[place]) & (taken.kept[batch == place] < ptr[place + 1])).all()
            here = batch[taken.edge_index[0]] == place
            assert (batch[taken.edge_index[1]] == place).tolist() == here.tolist()
            start = int((batch < place).sum())
            stretch = slice(level.edge_ptr[graph], level.edge_ptr[graph + 1])
            assert (taken.edge_index[:, here] - start).tolist() == level.edge_index[:, stretch].tolist()
            torch.testing.assert_close(taken.weights[here], torch.from_numpy(level.weights[stretch]).float())
            coarse += range(first, last)
        sizes = torch.bincount(batch, minlength=len(BATCH.graphs))
        nodes, ptr = torch.tensor(coarse), torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        taken = taken.above
    assert taken is None
    moved = tables.to("meta")
    assert moved.kept.device.type == moved.above.weights.device.type == "meta"


def test_attributes_are_in_the_order_of_edges():
    edges = [(1, 0), (2, 1), (0, 1), (0, 1), (2, 2), (0, 2)]
    numbers = torch.rand(6, 2).tolist()
    store = pack([Graph(2, [(0, 1)], edge_attributes=[[7.0, 8.0]]), Graph(3, edges, edge_attributes=numbers)])
    assert edge_numbers(store) == 2
    batch = store.batch([1, 0, 1])
    taken = EdgeNumbers().build(store).take(batch.graphs, batch.ptr, batch.nodes)
    ends = list_edges(neighbors_of(batch.edge_index, 8)).edge_index
    own = {(*ends, *row) for ends, row in zip(edges, numbers, strict=True)}
    rows = [(*pair, *row) for pair, row in zip(ends.T.tolist(), taken.tolist(), strict=True)]
    assert set(rows[:6]) == own
    assert rows[6] == (3, 4, 7.0, 8.0)
    assert {(s - 5, t - 5, *row) for s, t, *row in rows[7:]} == own


def test_labels_take_the_place_of_attributes():
    plain = Graph(2, [(0, 1)])
    labelled = Graph(2, [(0, 1)], edge_labels=["a"], edge_attributes=[[1.0]])
    for store in map(pack, ([plain], [labelled])):
        assert edge_numbers(store) == 0
        assert EdgeNumbers().build(store).take(torch.tensor([0]), store.node_ptr, torch.arange(2)).shape == (1, 0)


def test_they_are_computed_once(found):
    store = load("MUTAG")[:10]
    for extra, name in ((KronPyramid(), "coarsen"), (ResistanceHistograms(), "resistance_histograms")):
        first = extra.build(store)
        again = extra.build(store)
        alone = extra.build(store, cached=False)
        assert found == [name, name]
        for one, other, third in zip(*(vars(tables).values() for tables in (first, again, alone)), strict=True):
            if one is not None:
                assert torch.equal(one, other)
                assert torch.equal(one, third)
        found.clear()
    assert KronPyramid(2).key != KronPyramid(1).key


FORGED = {
    "kept in another graph": {"kept_0": lambda kept: kept.flip(0)},
    "kept twice": {"kept_0": lambda kept: kept * 0},
    "too large": {"kept_0": lambda kept: kept + 100},
    "no nodes": {"kept_0": lambda kept: kept[:0]},
    "no offsets": {"node_ptr_0": lambda ptr: ptr[:0]},
    "offsets": {"edge_ptr_0": lambda ptr: ptr.flip(0)},
    "edges": {"edge_index_0": lambda edges: edges + 100},
    "shape": {"edge_index_0": lambda edges: edges.T},
    "type": {"edge_index_0": lambda edges: edges.long()},
    "weights": {"weights_0": lambda weights: weights * float("nan")},
    "negative": {"weights_0": lambda weights: -weights},
}


@pytest.mark.parametrize("name", FORGED)
def test_what_cannot_be_coarser_graphs_is_not_used(name):
    arrays = {f"{name}_0": torch.from_numpy(one) for name, one in coarsen(STORE, 1)[0]._asdict().items()}
    kron._check(arrays, STORE, 1)
    for field, forge in FORGED[name].items():
        arrays[field] = forge(arrays[field])
    with pytest.raises(ValueError, match=r"must|match|type"):
        kron._check(arrays, STORE, 1)


def test_what_cannot_be_histograms_is_not_used():
    counts = torch.ones(3, 64, dtype=torch.float64)
    resistance._check({"counts": counts}, 3)
    for wrong in (counts[:2], counts.float(), -counts, counts * float("inf")):
        with pytest.raises(ValueError, match="counts"):
            resistance._check({"counts": wrong}, 3)


def test_a_store_without_graphs():
    store = replace(STORE[:0], name="nothing")
    assert len(KronPyramid().build(store, cached=False).kept) == 0
    assert len(ResistanceHistograms().build(store, cached=False).rows) == 0
