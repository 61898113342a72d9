import gzip
import json
import stat
from collections import Counter

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sopool.data.formats import jsonl
from sopool.data.formats.jsonl import read_jsonl, write_jsonl
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from tests.helpers.data_graphs import as_lists, names, stores
from tests.helpers.json_lines import LINE, read

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def as_multisets(store):
    """What a store says, whatever the order of the edges."""
    result = as_lists(store)
    for graph in result:
        columns = [graph.pop(key) for key in ("edge_labels", "edge_attributes", "edge_weights")]
        categories = graph.pop("edge_categories", {})
        columns += categories.values()
        rows = [None if some is None else some[i] for i in range(len(graph["edges"])) for some in columns]
        width = len(columns)
        graph["edges"] = Counter(
            (tuple(edge), repr(rows[width * i : width * (i + 1)])) for i, edge in enumerate(graph["edges"])
        )
        graph["columns"] = [list(categories), *(some is None for some in columns)]
    return result


@st.composite
def symmetric_stores(draw):
    """Undirected graphs whose edges carry all there is; now and then one end of one is changed."""
    graphs = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 4))
        node = st.integers(0, n - 1)
        number = st.floats(width=32, allow_nan=False, allow_infinity=False)
        kept = draw(st.lists(st.tuples(node, node, names, number, number), max_size=6))
        edges = [row for a, b, *rest in kept for row in ([(a, b, *rest), (b, a, *rest)] if a != b else [(a, b, *rest)])]
        edges = draw(st.permutations(edges))
        if edges and draw(st.booleans()):
            edges[0] = draw(st.sampled_from([(*edges[0][:3], 17.0, edges[0][4]), (*edges[0][:2], "!", *edges[0][3:])]))
        pairs, labels, attributes, weights = ([row[i] for row in edges] for i in (slice(2), 2, 3, 4))
        carried = {
            "edge_labels": labels,
            "edge_categories": {"same": labels, "other": ["-"] * len(labels)},
            "edge_attributes": [[a, a] for a in attributes],
            "edge_weights": weights,
        }
        graphs.append(Graph(n, pairs, **carried))
    return pack(graphs)


@SHARED_FOLDER
@given(
    st.one_of(stores(min_size=0, more=True), stores(undirected=True), symmetric_stores()),
    st.sampled_from(["jsonl", "jsonl.gz"]),
)
def test_what_is_written_is_read(tmp_path, store, suffix):
    path = tmp_path / f"a.{suffix}"
    write_jsonl(store, path)
    again = read_jsonl(path)
    assert as_multisets(again) == as_multisets(store)
    for one, other, line in zip(store, again, read_text(path), strict=True):
        if "directed" in line:  # the order is kept
            assert torch.equal(one.edge_index, other.edge_index)
        else:  # each edge once
            loops = int((one.edge_index[0] == one.edge_index[1]).sum())
            assert len(line["edges"]) == (one.num_edges + loops) // 2
    before = path.read_bytes()
    write_jsonl(again, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    path.unlink()


def test_no_edges_at_all_but_features_for_them(tmp_path):
    store = pack([Graph(1, edge_labels=[], edge_categories={"a": []}, edge_attributes=[], edge_weights=[])])
    write_jsonl(store, tmp_path / "a.jsonl")
    assert as_lists(read_jsonl(tmp_path / "a.jsonl")) == as_lists(store)


def read_text(path):
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
@example([0.1, -0.0, 1e-45, 3.4028234663852886e38])
def test_numbers_come_back_bit_by_bit(values):
    values = torch.tensor(values)
    record = next(jsonl._records(pack([Graph(len(values), node_attributes=values[:, None])])))
    again = read(record).node_attributes
    assert torch.equal(again[:, 0].view(torch.int32), values.view(torch.int32))


def test_every_key():
    store = read(LINE)
    assert as_lists(store) == [
        {
            "nodes": 3,
            "edges": [[0, 1], [1, 0], [1, 2], [2, 1]],
            "label": "soluble",
            "node_labels": ["C", "C", "O"],
            "node_attributes": [[0.5, 1], [2, 3], [4, 5]],
            "edge_labels": ["single"] * 4,
            "edge_attributes": [[7], [7], [8.5], [8.5]],
            "edge_weights": [1, 1, 2, 2],
            "node_categories": {"charge": [0, 0, -1], "ring": ["no"] * 3},
            "edge_categories": {"stereo": ["none", "none", "any", "any"]},
            "graph_attributes": {"temperature": 20.5, "pressure": None},
        }
    ]


def test_graph_attributes_without_names_are_numbered():
    store = read({"nodes": 1, "edges": [], "graph_attributes": [1, None]})
    assert store.graph_attribute_names == ("attribute 0", "attribute 1")
    assert as_lists(store)[0]["graph_attributes"] == {"attribute 0": 1, "attribute 1": None}


def test_weights_may_be_zero_and_below():
    line = {"nodes": 2, "edges": [[0, 1], [1, 1]], "edge_weights": [0, -2.5]}
    assert read(line).edge_weights.tolist() == [0, 0, -2.5]


def test_edges_stand_for_both_directions_unless_directed():
    plain = {"nodes": 2, "edges": [[0, 1], [0, 1], [1, 1]]}
    assert read(plain).edge_index.tolist() == [[0, 1, 0, 1, 1], [1, 0, 1, 0, 1]]
    assert read(plain | {"directed": True}).edge_index.tolist() == [[0, 0, 1], [1, 1, 1]]


def test_null_is_as_good_as_absent():
    store = read({"nodes": 1, "edges": [], "label": None, "node_labels": None, "id": None, "directed": None})
    assert store.labels is None
    assert store.node_labels is None


def test_a_graph_without_edges_needs_no_edge_labels():
    store = read({"nodes": 1, "edges": []}, {"nodes": 2, "edges": [[0, 1]], "edge_labels": ["x"], "edge_weights": [2]})
    assert store.edge_label_names == ("x",)
    assert store.edge_weights.tolist() == [2, 2]


def test_a_name_in_capitals_is_packed_as_it_is_read(tmp_path):
    path = tmp_path / "A.JSONL.GZ"
    write_jsonl(pack([Graph(1)]), path)
    assert path.read_bytes().startswith(b"\x1f\x8b")
    assert len(read_jsonl(path)) == 1


def test_names_of_stores(tmp_path):
    for name in ("some.jsonl", "some.jsonl.gz"):
        write_jsonl(pack([]), tmp_path / name)
        assert read_jsonl(tmp_path / name).name == "some"
        assert read_jsonl(str(tmp_path / name), name="other").name == "other"
    assert read().name == "graphs"
    assert len(read()) == 0


def test_a_file_may_have_blank_lines_a_mark_and_windows_ends(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\r\n{"nodes": 1, "edges": [], "label": "\xc3\xa9"}\r\n  \r\n\n')
    assert read_jsonl(path).classes == ("é",)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text("old")

    def interrupt(store):
        yield {}
        raise KeyboardInterrupt

    monkeypatch.setattr(jsonl, "_records", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_jsonl(pack([Graph(1)]), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write_jsonl(pack([Graph(1)]), tmp_path / "a.jsonl")
    assert stat.S_IMODE((tmp_path / "a.jsonl").stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


def test_a_store_that_is_no_store_is_not_written(tmp_path):
    store = pack([Graph(1, node_attributes=[[1.0]])])
    store.node_attributes[0, 0] = float("nan")
    with pytest.raises(DataError, match="finite"):
        write_jsonl(store, tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())
