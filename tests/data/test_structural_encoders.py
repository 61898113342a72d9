"""Return probabilities and heat kernels, against dense powers and exponentials of each graph's matrix."""

import gc
import json
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from sopool.data import (
    ConcatEncoder,
    DataError,
    DegreeEncoder,
    Graph,
    LaplacianEncoder,
    RandomWalkEncoder,
    concatenate,
    encoder_from_json,
    from_networkx,
    load,
    pack,
)
from sopool.data.analysis import walks
from sopool.data.analysis.refinement import duplicates
from sopool.data.analysis.walks import heat_diagonals, return_probabilities
from sopool.data.features import structural
from sopool.errors import SettingError
from tests.helpers.data_graphs import stores

STEPS = 6
TIMES = [0.5, 1.0, 7.0, 64.0]
KINDS = [RandomWalkEncoder, LaplacianEncoder]
NUMBERS = {
    "walks": lambda store: return_probabilities(store, STEPS),
    "heat": lambda store: heat_diagonals(store, TIMES),
}
every = pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
kinds = pytest.mark.parametrize("kind", KINDS)


def adjacency(graph):
    """The number of edges between each two nodes of a store of one graph."""
    found = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(found, tuple(graph.edge_index.numpy()), 1)
    return found


def walks_by_powers(store):
    out = []
    for graph in store:
        a = adjacency(graph)
        p = a / np.maximum(a.sum(1, keepdims=True), 1)
        out.append(np.stack([np.linalg.matrix_power(p, step).diagonal() for step in range(1, STEPS + 1)], 1))
    return np.concatenate(out)


def heat_by_exponentials(store):
    out = [np.zeros((0, len(TIMES)))]
    for graph in store:
        if graph.num_nodes:
            a = adjacency(graph)
            laplacian = nx.normalized_laplacian_matrix(nx.from_numpy_array((a + a.T) / 2)).toarray()
            out.append(np.stack([expm(-time * laplacian).diagonal() for time in TIMES], 1))
    return np.concatenate(out)


@pytest.fixture(params=["as it chooses", "dense", "sparse", "few columns"])
def way(request, monkeypatch):
    """Compute in each of the ways that graphs of other sizes and densities would take."""
    if request.param == "dense":
        monkeypatch.setattr(walks, "SPARSE", 10**9)
    if request.param in ("sparse", "few columns"):
        monkeypatch.setattr(walks, "SPARSE", -1)
    if request.param == "few columns":
        monkeypatch.setattr(walks, "CAPACITY", 9)
        monkeypatch.setattr(walks, "NARROWEST", 1)


@given(stores())
def test_numbers_are_those_of_each_graphs_matrix(way, store):
    for numbers, reference in ((NUMBERS["walks"], walks_by_powers), (NUMBERS["heat"], heat_by_exponentials)):
        found = numbers(store)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, reference(store), rtol=1e-6, atol=1e-7)


def random_graphs():
    """Graphs of many sizes and densities, so that all ways to compute occur at once."""
    random = np.random.default_rng(0)
    sizes = [0, 1, 2, 3, 40, 41, 70, 130, 131]
    dense = [nx.gnp_random_graph(n, 0.5, seed=n, directed=True) for n in sizes]
    sparse = [nx.gnp_random_graph(n, 2 / max(n, 2), seed=n) for n in sizes]
    graphs = dense + sparse
    random.shuffle(graphs)
    pairs = [np.array([*graph.edges, *(graph.reverse() if graph.is_directed() else graph).edges]) for graph in graphs]
    return pack([Graph(len(graph), edges.reshape(-1, 2)) for graph, edges in zip(graphs, pairs, strict=True)])


def test_graphs_of_all_sizes_together(monkeypatch):
    store = random_graphs()
    for capacity in (walks.CAPACITY, 10_000):
        monkeypatch.setattr(walks, "CAPACITY", capacity)
        np.testing.assert_allclose(NUMBERS["walks"](store), walks_by_powers(store), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(NUMBERS["heat"](store), heat_by_exponentials(store), rtol=1e-6, atol=1e-7)


def test_long_times_of_a_long_path():
    """Its smallest eigenvalues are close to zero, and the series has the most terms."""
    path = from_networkx([nx.path_graph(120)], labels=[0])
    found = heat_diagonals(path, [2.0**15])[:, 0]
    degrees = np.r_[1, np.full(118, 2), 1]
    np.testing.assert_allclose(found, degrees / degrees.sum(), rtol=1e-4)  # nearly what is left at last


@every
def test_it_does_not_matter_what_else_is_in_the_store(numbers):
    store = random_graphs()
    alone = np.concatenate([numbers(graph) for graph in store])
    np.testing.assert_allclose(numbers(store), alone, rtol=1e-6, atol=1e-7)
    doubled = concatenate([store[::2], store])
    np.testing.assert_allclose(numbers(doubled)[-store.num_nodes :], alone, rtol=1e-6, atol=1e-7)


@every
@given(stores(min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(numbers, store, random):
    graph = store[0]
    new = list(range(graph.num_nodes))
    random.shuffle(new)
    place = torch.tensor(new, dtype=torch.int32)
    other = replace(graph, edge_index=place[graph.edge_index.long()])
    np.testing.assert_allclose(numbers(other)[new], numbers(graph), rtol=1e-6, atol=1e-7)


@every
def test_nodes_that_a_symmetry_exchanges_are_equal(numbers):
    for graph in (nx.cycle_graph(9), nx.petersen_graph(), nx.hypercube_graph(4), nx.complete_bipartite_graph(5, 5)):
        found = numbers(from_networkx([nx.Graph(graph.edges)], labels=[0]))
        np.testing.assert_allclose(found, np.broadcast_to(found[:1], found.shape), rtol=1e-6)


@kinds
def test_graphs_that_message_passing_cannot_tell_apart(kind):
    hexagon = nx.cycle_graph(6)
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    store = from_networkx([hexagon, triangles], labels=[0, 1])
    assert duplicates(store).conflicting == 2
    one, two = kind().fit(store).transform(store).rows().view(2, 6, -1)
    assert (one - two).abs().max() > 1


def test_what_a_walk_does_at_awkward_nodes():
    graphs = [
        Graph(0),
        Graph(1),
        Graph(1, [(0, 0)]),
        Graph(2, [(0, 1)]),  # it ends in node 1
        Graph(2, [(0, 1), (0, 1), (0, 0), (1, 0)]),  # two times in three it leaves node 0
        Graph(3, [(0, 1), (1, 2), (2, 0)]),  # one way around
    ]
    expected = [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    expected += [[1 / 3, 1 / 9 + 2 / 3, 1 / 27 + 4 / 9], [0, 2 / 3, 2 / 9], *[[0, 0, 1]] * 3]
    np.testing.assert_allclose(return_probabilities(pack(graphs), 3), expected, rtol=1e-6)


def test_heat_at_awkward_nodes():
    """Isolated nodes keep it, and edges have no direction."""
    pair = [(1 + math.exp(-2 * time)) / 2 for time in TIMES]
    graphs = [Graph(0), Graph(1), Graph(1, [(0, 0)]), Graph(2, [(0, 1)]), Graph(2, [(0, 1), (1, 0)])]
    expected = [[1] * len(TIMES)] * 2 + [pair] * 4
    np.testing.assert_allclose(heat_diagonals(pack(graphs), TIMES), expected, rtol=1e-6)


@kinds
def test_standardized_over_the_fitted_graphs(kind):
    store = load("MUTAG")
    encoder = kind().fit(store, range(100))
    rows = encoder.transform(store).rows().double()
    assert rows.isfinite().all()
    assert rows.shape == (store.num_nodes, encoder.width)
    fitted = rows[: int(store.node_ptr[100])]
    spread = fitted.std(0, correction=0)
    torch.testing.assert_close(
        fitted.mean(0)[spread > 0], torch.zeros(int((spread > 0).sum())).double(), atol=1e-4, rtol=0
    )
    torch.testing.assert_close(spread, (spread > 0).double(), atol=1e-4, rtol=0)
    assert (spread > 0).sum() >= 7
    assert not torch.equal(rows, kind().fit(store).transform(store).rows().double())


@kinds
def test_rounding_is_not_standardized(kind):
    """All nodes of a cycle are alike, and what is computed differs by rounding at most."""
    store = from_networkx([nx.cycle_graph(50)], labels=[0])
    assert kind().fit(store).transform(store).rows().abs().max() < 1e-6


@kinds
def test_computed_once_for_each_store(kind, monkeypatch):
    calls = []
    for name in ("return_probabilities", "heat_diagonals"):
        compute = getattr(structural, name)
        monkeypatch.setattr(structural, name, lambda *given, compute=compute: calls.append(given) or compute(*given))
    store = load("MUTAG")[:5]
    before = len(structural._computed)
    first = kind().fit(store).transform(store)
    again = ConcatEncoder([DegreeEncoder(), kind()]).fit(store, [0, 1])
    assert torch.equal(kind().fit(store).transform(store).rows(), first.rows())
    assert not torch.equal(again.transform(store).rows()[:, again.number_columns], first.rows())
    assert len(calls) == 1
    kind(2).fit(store)
    kind().fit(store[:5])
    assert len(calls) == 3
    calls.clear()
    del store
    gc.collect()
    assert len(structural._computed) == before


@kinds
def test_a_graph_that_is_too_large_is_named(kind, monkeypatch):
    monkeypatch.setattr(walks, "LARGEST_GRAPH", 25)
    with pytest.raises(DataError, match=r"^graph 1 of MUTAG has 26 nodes, but .* for at most 25, because"):
        kind().fit(load("MUTAG")[:4])


@kinds
def test_settings(kind):
    (name,) = {"steps", "scales"} & set(kind.saved)
    for wrong in (0, -1, kind.most + 1, 2.0, True, None, "3"):
        with pytest.raises(SettingError, match=f"^{name} is .*, expected an integer from 1 to {kind.most}"):
            kind(wrong)
    assert repr(kind(3)) == f"{kind.__name__}(not fitted, {name}=3)"
    assert repr(kind(3).fit(load("MUTAG"))) == f"{kind.__name__}({name}=3)"


@kinds
def test_not_fitted(kind):
    store = load("MUTAG")[:2]
    for action in (lambda: kind().width, lambda: kind().transform(store), kind().to_json):
        with pytest.raises(RuntimeError, match="is not fitted yet: call fit first"):
            action()
    with pytest.raises(DataError, match="the graphs of MUTAG to fit on have no nodes, so there are no"):
        kind().fit(store, [])


@kinds
def test_json(kind):
    store = load("MUTAG")
    encoder = ConcatEncoder([DegreeEncoder(), kind(3)]).fit(store, range(50))
    back = encoder_from_json(json.loads(json.dumps(encoder.to_json())))
    assert (repr(back), back.to_json()) == (repr(encoder), encoder.to_json())
    assert back.feature_names == encoder.feature_names
    assert len(set(back.feature_names)) == back.width == encoder.width
    assert torch.equal(back.transform(store).rows(), encoder.transform(store).rows())
    part = encoder.parts[1].to_json()
    changes = [
        {part_name: wrong} for part_name in ("steps", "scales") if part_name in part for wrong in (0, 4, True, 10**9)
    ]
    changes += [{"mean": part["mean"][:2]}, {"std": [0.0] * 3}, {"mean": [math.nan] * 3}, {"mean": None}, {"more": 1}]
    for change in changes:
        with pytest.raises(DataError, match=r"^encoder: "):
            encoder_from_json(part | change)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@kinds
def test_the_same_on_cuda(kind):
    store = load("MUTAG")
    there = store.to("cuda")
    torch.testing.assert_close(
        kind().fit(there).transform(there).rows().cpu(), kind().fit(store).transform(store).rows()
    )
