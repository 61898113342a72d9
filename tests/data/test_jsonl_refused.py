"""Lines that are not graphs get an error that says what and where, and nothing else happens."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sopool.data.formats import limits
from sopool.data.formats.json_graph import KEYS
from sopool.data.formats.jsonl import read_jsonl
from sopool.errors import DataError
from tests.helpers.json_lines import LINE, read


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[1]", "expected an object"),
        ("3", "expected an object"),
        ('{"nodes": 1, "nodes": 2}', "'nodes' occurs twice"),
        ('{"nodes": 1' + "0" * 5000 + "}", "line 2: "),
        ("[" * 100_000, "line 2: not JSON: "),
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
        ({"edges": [[0, 1], [1, 0]]}, r"\[0, 1\] and \[1, 0\] are the same.*directed"),
        ({"directed": 1}, "directed must be true or false, found 1"),
        ({"label": True}, "label must be a string, a number or a list of numbers, found True"),
        ({"label": {"a": 1}}, "label must be a string, a number or a list of numbers, found"),
        ({"label": ["a"]}, "the target 'target' is 'a', expected a number, or None if it is missing"),
        ({"label": [1, [2]]}, r"the target 'target 2' is \[2\], expected a number"),
        ({"label": []}, "0 targets, expected 1 to 65,536"),
        ({"label": [0] * 65_537}, "65,537 targets, expected 1 to 65,536"),
        ({"label": [1, -(10**400)]}, "the target 'target 2' is .*, expected a number of at most 1e"),
        ({"label": "\ud800"}, "half a character"),
        ({"id": 1.5}, "id must be"),
        ({"id": "a"}, "'a' is already on line 1"),
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
        (
            {"node_categories": [0, 0, 1]},
            r"node_categories must be an object of column names and lists, found \[0, 0, 1\]",
        ),
        (
            {"node_categories": {"charge": 0}},
            "node_categories of 'charge' must be a list, one entry for each of the nodes",
        ),
        ({"node_categories": {"charge": [0, 1]}}, "2 node_categories of 'charge' for 3 nodes"),
        ({"node_categories": {"charge": [0, 1, 0.5]}}, "node_categories of 'charge' must be whole.*found 0.5"),
        ({"node_categories": {"": [0, 1, 2]}}, "'' is the name of a column of node categories, expected strings"),
        ({"node_categories": {"charge": ["\ud800"] * 3}}, "half a character"),
        ({"node_categories": {"\ud800": [0, 1, 2]}}, "half a character"),
        (
            {"node_categories": {"charge": [0, 0, 0]}},
            r"line 2: the node_categories are \['charge'\], but \['charge', 'ring'\] on line 1",
        ),
        ({"node_categories": {}}, r"line 2: the node_categories are \[\], but \['charge', 'ring'\] on line 1"),
        ({"edge_categories": {"stereo": ["any", "none", "none"]}}, "3 edge_categories of 'stereo' for 2 edges"),
        ({"edge_categories": None}, "line 2: this line has no edge_categories, but line 1 has"),
        ({"edge_attributes": [[1, 2], [3, 4]]}, "line 2: 2 edge_attributes each, but 1 on line 1"),
        ({"graph_attributes": 20}, "graph_attributes must be an object of numbers, or a list of them, found 20"),
        (
            {"graph_attributes": {"temperature": "warm"}},
            "graph attribute 'temperature' must be null or a number of.*'warm'",
        ),
        ({"graph_attributes": {"temperature": True}}, "must be null or a number of at most.* found True"),
        ({"graph_attributes": {"temperature": 1e39}}, r"at most 1e\+38 in size, found 1e\+39"),
        ({"graph_attributes": {"temperature": 10**400}}, r"at most 1e\+38 in size"),
        ({"graph_attributes": {"temperature": float("nan")}}, "NaN is not JSON"),
        (
            {"graph_attributes": {"temperature": 1}},
            r"the graph_attributes are \['temperature'\], but \['pressure', 'temperature'\] on line 1",
        ),
        (
            {"graph_attributes": {"temperature": 1, "heat": 1}},
            r"the graph_attributes are \['heat', 'temperature'\], but",
        ),
        ({"graph_attributes": [0] * 65_537}, "65,537 graph_attributes, expected at most 65,536"),
        ({"node_categories": {str(i): [0] * 3 for i in range(4097)}}, "4,097 node_categories, expected at most 4,096"),
        ({"graph_attributes": None}, "line 2: this line has no graph_attributes, but line 1 has"),
        ({"node_attributes": [1, 2, 3]}, "line 2: 1 node_attributes each, but 2 on line 1"),
        ({"lable": 1}, "unknown key 'lable'. Did you mean 'label'?"),
        ({"qqq": 1}, "unknown key 'qqq'. The keys are nodes, edges, directed"),
        ({"label": None}, "line 2: this line has no label, but line 1 has: give it on every line or on none"),
        ({"node_labels": None}, "line 2: this line has no node_labels"),
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
    with pytest.raises(DataError, match="this line has no label, but line") as caught:
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
        with pytest.raises(DataError, match="truncated, damaged or not a gzip file"):
            read_jsonl(packed)


@pytest.mark.parametrize("content", [b" " * 5000, b"\n" * 5000])
def test_a_packed_file_may_not_grow_without_end(tmp_path, monkeypatch, content):
    monkeypatch.setattr(limits, "MAX_UNPACKED", 4999)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match="unpacks to more than 4,999 bytes"):
        read_jsonl(path)
    monkeypatch.setattr(limits, "MAX_UNPACKED", 5000)
    assert len(read_jsonl(path)) == 0


def attempt(read, *arguments):
    """What reading gives: a store or a DataError, nothing else."""
    try:
        return read(*arguments)
    except DataError as error:
        return error


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@given(st.dictionaries(st.sampled_from(KEYS), anything, max_size=3), st.sampled_from(sorted(LINE)))
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


@pytest.mark.parametrize("key", ["label", "node_labels", "edge_labels"])
def test_a_number_and_a_word_that_read_alike_are_refused(key):
    def line(name):
        return LINE | {"id": None, key: name if key == "label" else [name] * len(LINE[key])}

    with pytest.raises(DataError, match=f"{key}: the labels contain both 1, of type int, and the string '1'"):
        read(line(1), line("1"))
    read(line(1), line("one"))
