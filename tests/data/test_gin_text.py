import tempfile
import zipfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.data.formats import archive
from sopool.data.formats.gin import read_gin
from sopool.data.formats.tu import read_tu
from sopool.data.graphs import check_values
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from tests.helpers.shared import DATA

SMALL = "2\n3 1\n5 1 1\n0 2 0 2\n5 1 1\n2 0\n0 1 1\n0 1 0\n"
WITH_ATTRIBUTES = "1\n2 -1\n0 1 1 0.5 7\n-3 1 0 1e2 -1\n"


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def gin_text(graphs, blank=" "):
    lines = [str(len(graphs))]
    for graph in graphs:
        lines.append(f"{graph.num_nodes}{blank}{graph.label}")
        for node in range(graph.num_nodes):
            targets = [b for a, b in graph.edges if a == node]
            attributes = [] if graph.node_attributes is None else map(repr, map(float, graph.node_attributes[node]))
            lines.append(blank.join(map(str, [graph.node_labels[node], len(targets), *targets, *attributes])))
    return "".join(line + "\n" for line in lines)


def assert_equal(found, expected):
    assert found.tensors().keys() == expected.tensors().keys()
    for name, tensor in expected.tensors().items():
        assert found.tensors()[name].dtype == tensor.dtype, name
        assert torch.equal(found.tensors()[name], tensor), name
    assert found.classes == expected.classes
    assert found.node_label_names == expected.node_label_names


def test_small(tmp_path):
    store = read_gin(write(tmp_path / "TINY.txt", SMALL))
    assert store.name == "TINY"
    assert store.node_ptr.tolist() == [0, 3, 5]
    assert store.edge_ptr.tolist() == [0, 4, 6]
    assert store.edge_index.tolist() == [[0, 1, 1, 2, 0, 1], [1, 0, 2, 1, 1, 0]]
    assert (store.labels.tolist(), store.classes) == ([1, 0], (0, 1))
    assert (store.node_labels.tolist(), store.node_label_names) == ([1, 0, 1, 0, 0], (0, 5))
    assert store.node_attributes is None
    assert read_gin(tmp_path / "TINY.txt", name="other").name == "other"


def test_attributes(tmp_path):
    store = read_gin(write(tmp_path / "a.txt", WITH_ATTRIBUTES))
    assert store.node_attributes.tolist() == [[0.5, 7], [100, -1]]
    assert (store.classes, store.node_label_names) == ((-1,), (-3, 0))


def test_zip(tmp_path):
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / f"{method}.zip", "w", method) as out:
            out.writestr("data/TINY.txt", SMALL)
            out.writestr("data/README.md", "not this")
            out.writestr("__MACOSX/data/._TINY.txt", b"\0")
        store = read_gin(tmp_path / f"{method}.zip")
        assert store.name == "TINY"
        assert_equal(store, read_gin(write(tmp_path / "a.txt", SMALL)))


def test_only_graphs_without_nodes(tmp_path):
    store = read_gin(write(tmp_path / "a.txt", "2\n0 4\n0 4\n"))
    assert store.sizes.tolist() == [0, 0]
    assert (store.labels.tolist(), store.classes) == ([0, 0], (4,))


@pytest.mark.parametrize(
    "change", [("\n", "\r\n"), (" ", "\t"), (" ", "  "), ("\n", " \n"), ("1\n0 1 0\n", "1\n0 1 0\n\n")]
)
def test_blanks(tmp_path, change):
    assert_equal(
        read_gin(write(tmp_path / "odd.txt", SMALL.replace(*change))), read_gin(write(tmp_path / "a.txt", SMALL))
    )


@st.composite
def graph_sets(draw):
    numbers = st.integers(-(2**63), 2**63 - 1) if draw(st.booleans()) else st.integers(0, 12)
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    width = draw(st.integers(0, 2))
    graphs = []
    # With attributes there must be a node to have them.
    sizes = [*draw(st.lists(st.integers(0, 5), max_size=5)), draw(st.integers(1, 5))]
    for size in sizes:
        ends = st.tuples(*[st.integers(0, size - 1)] * 2) if size else st.nothing()
        edges = sorted(draw(st.lists(ends, max_size=8)), key=lambda pair: pair[0]) if size else []
        rows = [[draw(floats) for _ in range(width)] for _ in range(size)]
        attributes = np.array(rows, np.float32).reshape(size, width) if width else None
        tags = [draw(numbers) for _ in range(size)]
        graphs.append(Graph(size, edges, draw(numbers), node_labels=tags, node_attributes=attributes))
    return graphs


@given(graph_sets(), st.sampled_from([" ", "\t", "  "]), st.integers(1, 40))
def test_round_trip(graphs, blank, chunk):
    text = gin_text(graphs, blank)
    expected = pack(graphs)
    with tempfile.TemporaryDirectory() as folder, patch.object(archive, "CHUNK", chunk):
        assert_equal(read_gin(write(Path(folder) / "a.txt", text)), expected)
        with zipfile.ZipFile(Path(folder) / "a.zip", "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("a.txt", text)
        assert_equal(read_gin(Path(folder) / "a.zip"), expected)


@pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not here")
@pytest.mark.parametrize("name", ["MUTAG", "PTC"])
def test_same_as_tu(tmp_path, name):
    """Data sets that came from GIN text, written as such again."""
    store = read_tu(DATA / f"{name}.zip")
    graphs = [
        Graph(
            graph.num_nodes,
            graph.edge_index.t().tolist(),
            store.classes[int(graph.labels)],
            node_labels=[store.node_label_names[code] for code in graph.node_labels.tolist()],
        )
        for graph in store
    ]
    assert_equal(read_gin(write(tmp_path / "a.txt", gin_text(graphs))), store)


BAD_TEXT = {
    "empty": ("", None, r"the file is empty"),
    "blank": (" \n\n", None, r"the file is empty"),
    "no count": ("x\n", 1, r"'x' is not a number"),
    "count not alone": ("1 2\n1 0\n0 0\n", 1, r"2 words, expected only the number of graphs"),
    "count not whole": ("1.5\n1 0\n0 0\n", 1, r"found 1.5, expected a 64-bit integer"),
    "zero graphs": ("0\n", 1, r"0 graphs, expected one or more"),
    "fewer graphs than none": ("-1\n", 1, r"-1 graphs, expected one or more"),
    "too few graphs": ("3\n1 0\n0 0\n1 1\n0 0\n", 1, r"3 graphs were announced, but the file ends after 2"),
    "too many graphs": ("1\n1 0\n0 0\n1 1\n0 0\n", 4, r"announced 1 graphs, but the file continues after them"),
    "huge count": ("999999999999999\n1 0\n0 0\n", 1, r"the file ends after 1"),
    "header too long": ("1\n1 0 0\n0 0\n", 2, r"3 words, expected the number of nodes and the graph's label"),
    "header too short": ("1\n1\n0 0\n", 2, r"1 words, expected the number of nodes"),
    "negative size": ("1\n-1 0\n0 0\n", 2, r"a graph of -1 nodes"),
    "size too large": ("1\n3 0\n0 0\n", 2, r"a graph of 3 nodes, but 1 lines follow"),
    "huge size": ("1\n9223372036854775807 0\n0 0\n", 2, r"a graph of 9223372036854775807 nodes"),
    "label not whole": ("1\n1 0.5\n0 0\n", 2, r"found 0.5, expected a 64-bit integer"),
    "label too large": ("1\n1 9223372036854775808\n0 0\n", 2, r"found 9.22337e\+18, expected a 64-bit integer"),
    "tag not whole": ("1\n1 0\n1.5 0\n", 3, r"found 1.5, expected a 64-bit integer"),
    "tag NaN": ("1\n1 0\nnan 0\n", 3, r"found nan, expected a 64-bit integer"),
    "no degree": ("1\n1 0\n7\n", 3, r"1 words, expected a tag, a degree"),
    "degree too large": ("1\n2 0\n0 0\n0 2 0\n", 4, r"degree 2, but 1 words follow"),
    "degree negative": ("1\n2 0\n0 0\n0 -1 0\n", 4, r"degree -1, but 1 words follow"),
    "degree huge": ("1\n2 0\n0 0\n0 9223372036854775807 0\n", 4, r"degree 9223372036854775807"),
    "degree too small": ("1\n2 0\n0 1 1\n0 0 0\n", 4, r"1 words after the neighbors, but 0 at the first node"),
    "neighbour too high": ("1\n2 0\n0 0\n0 1 2\n", 4, r"neighbor 2, but the graph's nodes are 0 to 1"),
    "neighbour negative": ("1\n2 0\n0 0\n0 1 -1\n", 4, r"neighbor -1, but"),
    "neighbour not whole": ("1\n2 0\n0 0\n0 1 0.5\n", 4, r"found 0.5, expected a 64-bit integer"),
    "neighbour overflow": ("1\n2 0\n0 0\n0 1 99999999999999999999\n", 4, r"found 1e\+20, expected a 64-bit integer"),
    "attribute NaN": ("1\n2 0\n0 0 1\n0 0 nan\n", 4, r"attribute nan, expected a finite float32"),
    "attribute infinite": ("1\n2 0\n0 0 1\n0 0 inf\n", 4, r"attribute inf, expected a finite"),
    "attribute too large": ("1\n2 0\n0 0 1\n0 0 1e39\n", 4, r"attribute 1e\+39, expected a finite"),
    "word": ("1\n2 0\n0 0\n0 x\n", 4, r"'x' is not a number"),
    "underscore": ("1\n2 0\n0 0\n0 1 1_0\n", 4, r"'1_0' is not a number"),
    "NUL": ("1\n2 0\n0 0\n0 0\0\n", 4, r"is not a number"),
    "not UTF-8": (b"1\n2 0\n0 0\n0 \xff\n", 4, r"is not a number"),
    "blank line": ("1\n2 0\n\n0 0\n0 0\n", 3, r"a blank line, expected numbers"),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_TEXT.values(), ids=BAD_TEXT.keys())
def test_bad_text(tmp_path, text, line, message):
    path = write(tmp_path / "a.txt", text)
    with pytest.raises(DataError, match=message) as caught:
        read_gin(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}: " if line is None else f"{path}, line {line}: ")


def test_bad_files(tmp_path):
    with pytest.raises(DataError, match=r"no such file"):
        read_gin(tmp_path / "nowhere.txt")
    with pytest.raises(DataError, match=r"this is a folder, expected a file"):
        read_gin(tmp_path)
    with pytest.raises(DataError, match=r"a.zip: cannot be read \(File is not a zip file\)"):
        read_gin(write(tmp_path / "a.zip", SMALL))
    for names in (["a.txt", "b.txt"], ["a.csv", "b.csv"], []):
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as out:
            for name in names:
                out.writestr(name, SMALL)
        with pytest.raises(DataError, match=r"b.zip: (0|2) text files, expected one"):
            read_gin(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as out:
        out.writestr("x/a.txt", SMALL.replace("5 1 1", "5 1 9"))
    with pytest.raises(DataError, match=r"c.zip: x/a.txt, line 3: neighbor 9"):
        read_gin(tmp_path / "c.zip")


pieces = st.sampled_from(
    [b"", b"\n", b"-", b"0", b"9" * 25, b" ", b"\r", b"\0", b".", b"\xff", b" nan", b"\n\n", b"1 1\n"]
)
mutations = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), st.one_of(pieces, st.binary(max_size=3))), min_size=1, max_size=4
)


@given(st.sampled_from([SMALL, WITH_ATTRIBUTES]), mutations, st.integers(1, 30))
def test_fuzz(text, changes, chunk):
    """Bytes replaced anywhere: graphs that make sense come out, or the one error."""
    data = text.encode()
    for place, length, new in changes:
        start = round(place * len(data))
        data = data[:start] + new + data[start + length :]
    with tempfile.TemporaryDirectory() as folder, patch.object(archive, "CHUNK", chunk):
        read_or_refuse(write(Path(folder) / "a.txt", data))


@given(st.one_of(st.binary(max_size=200), st.text("0123456789 \n-.", max_size=60).map(str.encode)))
def test_fuzz_random(data):
    with tempfile.TemporaryDirectory() as folder:
        read_or_refuse(write(Path(folder) / "a.txt", data))


def read_or_refuse(path):
    try:
        store = read_gin(path)
    except DataError:
        return
    check_values(store)
