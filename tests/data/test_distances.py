"""Lists of pairs of nodes over the packed store, against dense matrices of distances, and their cache."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from sopool._files.sealed import seal
from sopool.data import Graph, load, pack
from sopool.data.analysis import distance_cache, distances
from sopool.data.analysis.distance_cache import pairs_of
from sopool.data.analysis.distances import pair_lists
from sopool.errors import SettingError
from sopool.ops import find_pairs, segment_pairs
from sopool.ops.numba import dispatch as compiled
from tests.helpers.pair_graphs import distance_matrix
from tests.helpers.shared import DATA, needs_data
from tests.helpers.strategies import draw_rows
from tests.helpers.training_graphs import little_store

MOST = 3


@pytest.fixture(params=["loops", "torch"], autouse=True)
def way(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(compiled, "serves", lambda x: False)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    return tmp_path


def same(mine, theirs):
    assert (mine.reverse is None) == (theirs.reverse is None)
    tensors = [(mine.counts, theirs.counts), *zip(mine.lists[:4], theirs.lists[:4], strict=True)]
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in tensors)


def list_of_pairs(lists, graph):
    first, last = lists.lists.graph_ptr[graph : graph + 2]
    return lists.lists.nodes[first:last].tolist()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("together", [1, 2**16])
def test_pairs_of_awkward_graphs(directed, together, monkeypatch):
    """Empty graphs, single nodes, isolated nodes, loops and repeated edges, one by one and all at once."""
    monkeypatch.setattr(distances, "TOGETHER", together)
    store = little_store(directed=directed)
    lists = pair_lists(store, MOST)
    assert (lists.reverse is not None) == directed
    assert lists.counts.dtype == lists.lists.nodes.dtype == torch.int32
    for number, graph in enumerate(store):
        steps = distance_matrix(graph.edge_index.long(), graph.num_nodes)
        near = torch.stack([steps == k for k in range(1, MOST + 1)], 1)
        assert list_of_pairs(lists, number) == near.nonzero()[:, 2].tolist()
        first, last = store.node_ptr[number : number + 2]
        assert torch.equal(lists.counts[first:last], near.sum(2).int())
    assert lists.totals() == lists.counts.sum(0).tolist()


@pytest.mark.parametrize("directed", [False, True])
def test_a_batch_has_the_pairs_that_its_edges_have(directed):
    """Of some graphs in another order, one of them twice; with their gradients."""
    store = little_store(directed=directed)
    batch = store.batch([3, 5, 0, 7, 3])
    x = draw_rows(0, len(batch.nodes), 2).requires_grad_()
    results = []
    for pairs in (
        pair_lists(store, MOST).take(batch.graphs, batch.ptr, batch.nodes),
        find_pairs(batch.edge_index, len(batch.nodes), MOST),
    ):
        pooled = segment_pairs(x, pairs, batch.ptr, rest=True)
        results.append((pooled, torch.autograd.grad(pooled.square().sum(), x)[0]))
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_no_graphs():
    store = little_store()[[]]
    lists = pair_lists(store, 2)
    assert lists.totals() == [0, 0]
    batch = store.batch([])
    assert lists.take(batch.graphs, batch.ptr, batch.nodes).counts().shape == (0, 2)


def test_the_budget_decides_how_far():
    """The totals of the path 0 - 1 - 2 - 3 are 6, 4 and 2."""
    path = pack([Graph(4, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)])] * 2, name="paths")
    assert pair_lists(path, 5, most_pairs=24).distances == 5
    for most, allowed in ((23, 2), (20, 2), (19, 1), (12, 1)):
        with pytest.warns(UserWarning, match=f"paths has more than {most} pairs .* to distance {allowed} only"):
            assert pair_lists(path, 3, most).totals() == [12, 8][:allowed]
    with pytest.raises(SettingError, match="most_pairs=11, but paths has 12 pairs of nodes at distance 1 alone"):
        pair_lists(path, 3, 11)
    with pytest.raises(SettingError, match="distances=0"):
        pair_lists(path, 0)


def test_pairs_are_kept(cache, monkeypatch):
    store = little_store()
    first = pairs_of(store, MOST)
    (path,) = cache.iterdir()
    monkeypatch.setattr(distance_cache, "find_counts", lambda *_: pytest.fail("they were in the cache"))
    assert same(pairs_of(store, MOST), first)
    monkeypatch.undo()
    monkeypatch.setenv("SOPOOL_CACHE", str(cache))
    path.write_bytes(b"not a file of pairs")
    with pytest.warns(UserWarning, match="Creating it again"):
        assert same(pairs_of(store, MOST), first)
    pairs_of(store, MOST - 1)
    pairs_of(store[:5], MOST)
    assert len(list(cache.iterdir())) == 3


def test_a_short_budget_is_said_each_time(cache):
    store = little_store()
    at_1 = pair_lists(store, 1).totals()[0]
    for _ in range(2):
        with pytest.warns(UserWarning, match="to distance 1 only"):
            assert pairs_of(store, 4, most_pairs=at_1).distances == 1


def other(array, at, value):
    out = array.copy()
    out[at] = value
    return out


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": lambda nodes: other(nodes, 3, 1000)},
        {"nodes": lambda nodes: other(nodes, 0, -1)},
        {"nodes": lambda nodes: nodes[:-1]},
        {"nodes": lambda nodes: nodes.astype(np.int64)},
        {"counts": lambda counts: other(counts, (0, 0), -1)},
        {"counts": lambda counts: other(counts, (0, 0), 1000)},
        {"counts": lambda counts: counts[:-1]},
        {"counts": lambda counts: counts[:, 0]},
        {"counts": lambda counts: counts[:, :0]},
        {"counts": lambda counts: np.pad(counts, ((0, 0), (0, 1)))},
        {"counts": lambda counts: counts.astype(np.int64)},
        {"counts": None},
    ],
)
def test_a_forged_file_of_pairs_is_not_used_even_with_a_right_digest(change, cache):
    store = little_store()
    expected = pairs_of(store, MOST)
    (path,) = cache.iterdir()
    arrays = load_file(path)
    for name, forged in change.items():
        value = arrays.pop(name)
        if forged is not None:
            arrays[name] = forged(value)
    path.write_bytes(seal(arrays, {"entry": path.name}))
    with pytest.warns(UserWarning, match=r"does not hold valid pairs: .* Creating it again"):
        assert same(pairs_of(store, MOST), expected)


def test_pairs_of_other_graphs_are_not_used(cache):
    store = little_store()
    pairs_of(store, MOST)
    (path,) = cache.iterdir()
    content = path.read_bytes()
    pairs_of(store[:5], MOST)
    (second,) = set(cache.iterdir()) - {path}
    second.write_bytes(content)
    with pytest.warns(UserWarning, match="the pairs of other graphs"):
        pairs_of(store[:5], MOST)


@needs_data
@pytest.mark.parametrize("way", ["loops"], indirect=True)
def test_sizes_of_benchmark_data(cache):
    """Millions of ordered pairs at distances 0 to 6."""
    found = {}
    for name in ("NCI1", "PROTEINS"):
        store = load(name, DATA)
        found[name] = (store.num_nodes + sum(pairs_of(store, 6).totals())) / 1e6
    assert found == pytest.approx({"NCI1": 2.3, "PROTEINS": 1.5}, abs=0.05)
