"""Clusters and eigenvectors against dense linear algebra, and what is awkward about graphs."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from sopool._files.sealed import seal
from sopool.data import Graph, pack
from sopool.data.analysis import cluster_cache
from sopool.data.analysis.cluster_cache import clusters_of
from sopool.data.analysis.spectral import ClusterSpec, spectral_clusters
from sopool.ops.message_passing.eigenvectors import LARGE, laplacian_vectors, leading_vectors
from tests.helpers.training_graphs import little_store

SPEC = ClusterSpec(size=3, vectors=2, levels=2)


def adjacency(edges, nodes):
    """Without direction and without loops."""
    out = np.zeros((nodes, nodes))
    np.add.at(out, tuple(edges), 0.5)
    out = out + out.T
    np.fill_diagonal(out, 0)
    return out


def check(level, store):
    """Every node is in one cluster of its graph; vectors and edges are those of the clusters."""
    first = 0
    for number, graph in enumerate(store):
        nodes = graph.num_nodes
        edges = graph.edge_index.numpy()
        start, stop = level.node_ptr[number : number + 2]
        rows = level.rows[first : first + nodes]
        sizes = level.sizes[start:stop]
        assert sorted(rows) == list(range(nodes))
        assert sizes.sum() == nodes
        of = np.empty(nodes, int)
        of[rows] = np.repeat(np.arange(len(sizes)), sizes)
        between = of[edges]
        want = between[:, between[0] != between[1]]
        got = level.edges[:, level.edge_ptr[number] : level.edge_ptr[number + 1]]
        assert sorted(map(tuple, got.T)) == sorted(map(tuple, want.T))
        whole = adjacency(edges, nodes)
        for members in np.split(np.arange(nodes), sizes.cumsum()[:-1]) if nodes else []:
            own = whole[np.ix_(rows[members], rows[members])]
            laplacian = np.diag(own.sum(1)) - own
            values = np.linalg.eigvalsh(laplacian)
            vectors = level.vectors[first + members].astype(float)
            known = min(len(members), vectors.shape[1])
            np.testing.assert_allclose(vectors.T @ vectors, np.diag(np.arange(vectors.shape[1]) < known), atol=1e-5)
            for i in range(known):
                np.testing.assert_allclose(laplacian @ vectors[:, i], values[i] * vectors[:, i], atol=1e-5)
        first += nodes


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("spec", [SPEC, ClusterSpec(None, 3)])
def test_clusters_of_awkward_graphs(spec, directed):
    """Empty graphs, single nodes, isolated nodes, loops and repeated edges, level by level."""
    store = little_store(directed=directed)
    for level in spectral_clusters(store, spec):
        check(level, store)
        graphs = zip(level.node_ptr[:-1], level.node_ptr[1:], level.edge_ptr[:-1], level.edge_ptr[1:], strict=True)
        store = pack([Graph(int(b - a), level.edges[:, c:d].T) for a, b, c, d in graphs])


def test_about_as_many_clusters_as_asked_for():
    ring = [(i, (i + 1) % 60) for i in range(60)]
    (level,) = spectral_clusters(pack([Graph(60, [*ring, *((b, a) for a, b in ring)])]), ClusterSpec(6, 1))
    assert len(level.sizes) == 10
    assert level.sizes.max() <= 18


def test_whole_graphs_are_one_cluster_each_even_empty_ones():
    store = little_store()
    (level,) = spectral_clusters(store, ClusterSpec(None, 2))
    assert level.sizes.tolist() == store.sizes.tolist()


def test_parts_of_a_disconnected_graph_are_not_mixed():
    """Two complete graphs of 4 nodes each."""
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    store = pack([Graph(8, pairs + [(i + 4, j + 4) for i, j in pairs])])
    (level,) = spectral_clusters(store, ClusterSpec(4, 2))
    assert {frozenset(part) for part in np.split(level.rows, level.sizes.cumsum()[:-1])} == {
        frozenset(range(4)),
        frozenset(range(4, 8)),
    }
    assert level.edges.shape == (2, 0)


def test_the_same_again_and_without_warnings():
    """A complete graph has fewer different points than clusters."""
    pairs = [(i, j) for i in range(12) for j in range(12) if i != j]
    store = pack([Graph(12, pairs)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = spectral_clusters(store, SPEC)
        second = spectral_clusters(store, SPEC)
    for a, b in zip(first, second, strict=True):
        for mine, theirs in zip(a, b, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_large_graphs_by_lanczos_iterations():
    """A path, whose eigenvalues are all different: 2 - 2 cos(pi k / n)."""
    nodes = LARGE + 50
    source = np.arange(nodes - 1)
    edges = np.stack([np.concatenate([source, source + 1]), np.concatenate([source + 1, source])])
    vectors = laplacian_vectors(*edges, np.array([nodes]), 3).astype(float)
    places = (np.arange(nodes) + 0.5) / nodes
    for k in range(3):
        want = np.cos(np.pi * k * places)
        want /= np.linalg.norm(want)
        assert abs(want @ vectors[:, k]) == pytest.approx(1, abs=1e-4)
    leading = leading_vectors(edges, nodes, 4)
    assert leading.shape == (nodes, 4)
    np.testing.assert_allclose(leading.T @ leading, np.eye(4), atol=1e-3)


def test_leading_vectors_are_those_of_the_normalised_adjacency():
    graph = little_store(seed=4)[3]
    edges = graph.edge_index.numpy()
    nodes = graph.num_nodes
    whole = np.eye(nodes)
    np.add.at(whole, tuple(edges), 0.5)
    np.add.at(whole, tuple(edges[::-1]), 0.5)
    share = whole.sum(1) ** -0.5
    normalised = share[:, None] * whole * share
    vectors = leading_vectors(edges, nodes, 2)
    for value, vector in zip(np.linalg.eigvalsh(normalised)[::-1], vectors.T, strict=False):
        np.testing.assert_allclose(normalised @ vector, value * vector, atol=1e-9)


def test_signs_follow_the_nodes():
    """A star with a tail has vectors without symmetry: permuting nodes permutes them, sign and all."""
    edges = np.array([[0, 0, 0, 3, 4], [1, 2, 3, 4, 5]])
    order = np.random.default_rng(0).permutation(6)
    place = np.argsort(order)
    plain = laplacian_vectors(*edges, np.array([6]), 2)
    moved = laplacian_vectors(*place[edges], np.array([6]), 2)
    np.testing.assert_allclose(moved, plain[order], atol=1e-5)


def test_clusters_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    store = little_store()
    first = clusters_of(store, SPEC)
    (path,) = tmp_path.iterdir()
    monkeypatch.setattr(cluster_cache, "spectral_clusters", lambda *_: pytest.fail("they were in the cache"))
    again = clusters_of(store, SPEC)
    for a, b in zip(first, again, strict=True):
        for mine, theirs in zip(a, b, strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
    monkeypatch.undo()
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    path.write_bytes(b"not a file of clusters")
    with pytest.warns(UserWarning, match="Creating it again"):
        assert len(clusters_of(store, SPEC)) == 2
    clusters_of(store[:5], SPEC)
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="could not be written to the cache"):
        clusters_of(store, SPEC)


def other(array, at, value):
    out = array.copy()
    out[at] = value
    return out


@pytest.mark.parametrize(
    "change",
    [
        {"rows_0": lambda rows: other(rows, 3, 1000)},
        {"rows_1": lambda rows: other(rows, 0, -1)},
        {"rows_0": lambda rows: rows[:-1]},
        {"rows_0": lambda rows: rows.astype(np.int64)},
        {"vectors_0": lambda vectors: other(vectors, (0, 0), np.nan)},
        {"vectors_0": lambda vectors: vectors[:, :1]},
        {"sizes_0": lambda sizes: other(sizes, 0, sizes[0] + 1)},
        {"sizes_0": lambda sizes: other(sizes, 0, -1)},
        {"sizes_0": lambda sizes: sizes[:, None]},
        {"node_ptr_1": lambda ptr: other(ptr, 1, 2**40)},
        {"node_ptr_0": lambda ptr: ptr[:-1]},
        {"edges_0": lambda edges: other(edges, (0, 0), 1000)},
        {"edges_0": lambda edges: edges[0]},
        {"edge_ptr_0": lambda ptr: other(ptr, -1, 7)},
        {"rows_0": lambda _: np.zeros((), np.int32)},
    ],
)
def test_a_forged_file_of_clusters_is_not_used_even_with_a_right_digest(change, tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    store = little_store()
    expected = clusters_of(store, SPEC)
    (path,) = tmp_path.iterdir()
    arrays = load_file(path)
    for name, forged in change.items():
        arrays[name] = forged(arrays[name])
    path.write_bytes(seal(arrays, {"entry": path.name}))
    with pytest.warns(UserWarning, match=r"does not hold valid clusters: .* Creating it again"):
        found = clusters_of(store, SPEC)
    for mine, theirs in zip(expected, found, strict=True):
        assert all(map(np.array_equal, mine, theirs))


def test_clusters_of_other_graphs_and_changed_ones_are_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    store = little_store()
    clusters_of(store, SPEC)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    clusters_of(store[:5], SPEC)
    (second,) = set(tmp_path.iterdir()) - {path}
    second.write_bytes(content)
    with pytest.warns(UserWarning, match="the clusters of other graphs"):
        clusters_of(store[:5], SPEC)
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.warns(UserWarning, match="the digest differs"):
        clusters_of(store, SPEC)


def test_the_name_of_a_store_cannot_lead_out_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path / "a" / "b"))
    clusters_of(replace(little_store(), name="../../out"), SPEC)
    assert [path.parent for path in tmp_path.rglob("*.clusters")] == [tmp_path / "a" / "b"]


def test_device_and_types():
    (level, _) = spectral_clusters(little_store(), SPEC)
    types = {name: getattr(level, name).dtype for name in level._fields}
    whole = np.dtype(np.int64)
    assert types == {
        "rows": np.dtype(np.int32),
        "vectors": np.dtype(np.float32),
        "sizes": whole,
        "node_ptr": whole,
        "edges": np.dtype(np.int32),
        "edge_ptr": whole,
    }
    assert torch.from_numpy(level.vectors).isfinite().all()
