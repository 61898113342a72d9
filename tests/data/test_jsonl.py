import gzip
import io
import json
import stat
from collections import Counter

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sopool.data import jsonl, lines
from sopool.data.errors import DataError
from sopool.data.jsonl import read_jsonl, write_jsonl
from sopool.data.pack import Graph, pack
from tests.data.graphs import as_lists, names, stores

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
LINE = {
    "id": "ethanol",
    "nodes": 3,
    "edges": [[0, 1], [1, 2]],
    "directed": False,
    "label": "soluble",
    "node_labels": ["C", "C", "O"],
    "node_attributes": [[0.5, 1], [2, 3], [4, 5]],
    "edge_labels": ["single", "single"],
    "edge_attributes": [7, 8.5],
    "edge_weights": [1, 2],
}


def read(*records):
    return read_jsonl(io.StringIO("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records)))


def as_multisets(store):
    """What a store says, whatever the order of the edges."""
    result = as_lists(store)
    for graph in result:
        columns = [graph.pop(key) for key in ("edge_labels", "edge_attributes", "edge_weights")]
        rows = [None if some is None else some[i] for i in range(len(graph["edges"])) for some in columns]
        width = len(columns)
        graph["edges"] = Counter(
            (tuple(edge), repr(rows[width * i : width * (i + 1)])) for i, edge in enumerate(graph["edges"])
        )
        graph["columns"] = [some is None for some in columns]
    return result


@st.composite
def symmetric_stores(draw):
    """Undirected graphs whose edges have labels, attributes and weights; now and then one end of one is changed."""
    graphs = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 4))
        node = st.integers(0, n - 1)
        number = st.floats(width=32, allow_nan=False, allow_infinity=False)
        kept = draw(st.lists(st.tuples(node, node, names, number, number), max_size=6))
        edges = [row for a, b, *rest in kept for row in ([(a, b, *rest), (b, a, *rest)] if a != b else [(a, b, *rest)])]
        edges = draw(st.permutations(edges))
        if edges and draw(st.booleans()):
            edges[0] = (*edges[0][:3], 17.0, edges[0][4])
        pairs, labels, attributes, weights = ([row[i] for row in edges] for i in (slice(2), 2, 3, 4))
        graphs.append(
            Graph(n, pairs, edge_labels=labels, edge_attributes=[[a, a] for a in attributes], edge_weights=weights)
        )
    return pack(graphs)


@SHARED_FOLDER
@given(
    st.one_of(stores(min_size=0), stores(undirected=True), symmetric_stores()), st.sampled_from(["jsonl", "jsonl.gz"])
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
    store = pack([Graph(1, edge_labels=[], edge_attributes=[], edge_weights=[])])
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
        }
    ]


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[1]", "expected an object"),
        ("3", "expected an object"),
        ('{"nodes": 1, "nodes": 2}', "'nodes' is there twice"),
        ('{"nodes": 1' + "0" * 5000 + "}", "line 2: "),
        ("[" * 100_000, "line 2: not JSON that can be read"),
        ({"nodes": None}, "nodes is missing"),
        ({"nodes": True}, "found True"),
        ({"nodes": 1.0}, "nodes must be 0 to 16777216, found 1.0"),
        ({"nodes": -1}, "found -1"),
        ({"nodes": 2**24 + 1}, "found 16777217"),
        ({"edges": None}, r"edges is missing.*\[\] for none"),
        ({"edges": {}}, "edges must be a list of pairs, found {}"),
        ({"edges": [[0, 1], [1]]}, r"pair \[source, target\], found \[1\]"),
        ({"edges": [[0, 1], 5]}, "found 5"),
        ({"edges": [[0, True], [0, 1]]}, r"two whole numbers, found \[0, True\]"),
        ({"edges": [[0, 1.0], [0, 1]]}, "two whole numbers"),
        ({"edges": [[0, 1], [2, 3]]}, r"edge \[2, 3\] leaves the graph, whose nodes are 0 to 2"),
        ({"edges": [[0, -1], [0, 1]]}, "leaves the graph"),
        ({"edges": [[0, 10**30], [0, 1]]}, "leaves the graph"),
        ({"edges": [[0, 1], [1, 0]]}, r"\[0, 1\] and \[1, 0\] are the same one.*directed"),
        ({"directed": 1}, "directed must be true or false, found 1"),
        ({"label": True}, "label must be whole numbers or strings, found True"),
        ({"label": 1.5}, "label must be"),
        ({"label": ["a"]}, "label must be"),
        ({"label": "\ud800"}, "half a character"),
        ({"id": 1.5}, "id must be"),
        ({"id": "a"}, "'a' is on line 1 already"),
        ({"node_labels": "CCO"}, "node_labels must be a list, one entry for each of the nodes"),
        ({"node_labels": ["C", "O"]}, "2 node_labels for 3 nodes"),
        ({"node_labels": ["C", "O", None]}, "node_labels must be .*found None"),
        ({"node_labels": ["C", "O", True]}, "found True"),
        ({"edge_labels": ["single"]}, "1 edge_labels for 2 edges"),
        ({"edge_weights": [1, 2, 3]}, "3 edge_weights for 2 edges"),
        ({"edge_weights": [[1], [2]]}, r"edge_weights must be numbers, found \[1\]"),
        ({"edge_weights": [1, "2"]}, "found '2'"),
        ({"edge_weights": [1, True]}, "found True"),
        ({"edge_weights": [1, 1e39]}, r"at most 3.4028235e\+38 in size, found 1e\+39"),
        ({"edge_weights": [1, 10**400]}, "at most 3.4028235e"),
        ({"edge_weights": [1, float("nan")]}, "NaN is not JSON"),
        ({"edge_weights": [1, -float("inf")]}, "-Infinity is not JSON"),
        ('{"nodes": 1, "edges": [], "node_attributes": [1e999]}', "in size, found inf"),
        ({"node_attributes": [[1, 2], [1], [1, 2]]}, r"must have 2 numbers each, as the first, found \[1\]"),
        ({"node_attributes": [[1, 2], 3, [1, 2]]}, "all lists or all numbers, found 3"),
        ({"node_attributes": [[1, 2], [[3], 4], [1, 2]]}, r"must be numbers, found \[3\]"),
        ({"node_attributes": [1, 2, 3]}, "line 2: 1 node_attributes each, but 2 on line 1"),
        ({"lable": 1}, "unknown key 'lable'. Did you mean 'label'?"),
        ({"qqq": 1}, "unknown key 'qqq'. The keys are nodes, edges, directed"),
        ({"label": None}, "line 2: no label here, but on line 1: give it on every line or on none"),
        ({"node_labels": None}, "line 2: no node_labels here"),
    ],
)
def test_errors_say_what_and_where(change, message):
    bad = change if isinstance(change, str) else LINE | {"id": "b"} | change
    with pytest.raises(DataError, match=rf"stream, line 2: .*{message}|stream, {message}") as caught:
        read(LINE | {"id": "a"}, bad)
    assert caught.value.line == 2


def test_the_id_is_in_the_message():
    with pytest.raises(DataError, match="line 1: graph 'mol 7': 0 node_labels for 1 nodes"):
        read({"id": "mol 7", "nodes": 1, "edges": [], "node_labels": []})


@pytest.mark.parametrize("first", [True, False])
def test_a_label_missing_on_some_lines(first):
    plain = {"nodes": 1, "edges": []}
    with pytest.raises(DataError, match="no label here, but on line") as caught:
        read(*([plain, plain | {"label": 1}] if first else [plain | {"label": 1}, plain]))
    assert caught.value.line == (1 if first else 2)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_jsonl(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="cannot be read"):
        read_jsonl(tmp_path)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"nodes": 1, "edges": []}\n{"nodes": 1, "label": "\xe9"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2: not UTF-8") as caught:
        read_jsonl(path)
    assert caught.value.line == 2
    with path.open(encoding="utf-8") as stream, pytest.raises(DataError, match="not UTF-8"):
        read_jsonl(stream)
    packed = tmp_path / "a.jsonl.gz"
    for content in (b"plain", gzip.compress(b"{}" * 1000)[:-9], gzip.compress(b"{}" * 1000)[:15] + b"abc"):
        packed.write_bytes(content)
        with pytest.raises(DataError, match="not a whole gzip file"):
            read_jsonl(packed)


@pytest.mark.parametrize("content", [b" " * 5000, b"\n" * 5000])
def test_a_packed_file_may_not_grow_without_end(tmp_path, monkeypatch, content):
    monkeypatch.setattr(lines, "MAX_UNPACKED", 4999)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match="unpacks to more than 4,999 bytes"):
        read_jsonl(path)
    monkeypatch.setattr(lines, "MAX_UNPACKED", 5000)
    assert len(read_jsonl(path)) == 0


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


def attempt(read, *arguments):
    """What reading gives: a store or a DataError, nothing else."""
    try:
        return read(*arguments)
    except DataError as error:
        return error


@SHARED_FOLDER
@given(st.binary(max_size=60), st.sampled_from(["a.jsonl", "a.jsonl.gz"]))
def test_random_bytes(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    result = attempt(read_jsonl, tmp_path / name)
    assert name in str(result) or len(result) == 0


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(jsonl.KEYS), anything, max_size=3), st.sampled_from(sorted(LINE)))
def test_values_of_any_kind(changes, dropped):
    record = {key: value for key, value in LINE.items() if key != dropped} | changes
    result = attempt(read, LINE | {"id": 0}, record)
    assert result.line in (1, 2) if isinstance(result, DataError) else len(result) == 2


CHARACTERS = st.sampled_from('{}[]",:0123456789.-eE \\untrfals\x00\ud800')


@given(st.lists(st.tuples(st.integers(0, 400), CHARACTERS), max_size=4))
def test_changed_characters(changes):
    text = list(json.dumps(LINE))
    for place, character in changes:
        text[place % len(text)] = character
    result = attempt(read, "".join(text))
    assert result.line == 1 if isinstance(result, DataError) else len(result) == 1
