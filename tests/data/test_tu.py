import shutil
import tempfile
import zipfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.datasets import TUDataset

from sopool.data.formats import archive
from sopool.data.formats.tu import read_tu
from sopool.data.graphs import check_values
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from tests.helpers.shared import DATA, needs_data
from tests.helpers.tu_files import SMALL, assert_equal, write_folder, write_zip

slow = pytest.mark.slow


def test_small(tmp_path):
    store = read_tu(write_folder(SMALL, tmp_path))
    assert store.name == "SMALL"
    assert store.node_ptr.tolist() == [0, 3, 5]
    assert store.edge_ptr.tolist() == [0, 4, 6]
    assert store.edge_index.tolist() == [[0, 1, 1, 2, 0, 1], [1, 0, 2, 1, 1, 0]]
    assert store.edge_index.dtype == torch.int32
    assert (store.labels.tolist(), store.classes) == ([1, 0], (-1, 1))
    assert (store.node_labels.tolist(), store.node_label_names) == ([1, 0, 1, 0, 0], (3, 7))
    assert (store.edge_labels.tolist(), store.edge_label_names) == ([0, 0, 1, 1, 0, 0], (0, 1))
    assert store.node_attributes[1].tolist() == pytest.approx([1e-3, 2])
    assert store.edge_attributes.tolist() == [[1.5], [1.5], [2], [2], [-3], [-3]]


def test_places(tmp_path):
    expected = read_tu(write_folder(SMALL, tmp_path / "plain"))
    assert_equal(read_tu(str(write_folder(SMALL, tmp_path / "pyg" / "raw").parent)), expected)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        assert_equal(read_tu(write_zip(SMALL, tmp_path / f"{method}.zip", method)), expected)


def test_hidden_doubles_of_macos_are_passed_over(tmp_path):
    path = write_zip(SMALL, tmp_path / "a.zip")
    with zipfile.ZipFile(path, "a") as out:
        out.writestr("__MACOSX/SMALL/._SMALL_A.txt", b"\x00\x05")
    assert len(read_tu(path)) == 2


def test_name_chooses_among_several(tmp_path):
    write_folder(SMALL, tmp_path, "ONE")
    write_folder(SMALL | {"graph_labels": "4\n5\n"}, tmp_path, "TWO")
    with pytest.raises(DataError, match=r"several data sets, ONE_A.txt, TWO_A.txt: give the name of one of them"):
        read_tu(tmp_path)
    assert read_tu(tmp_path, name="TWO").classes == (4, 5)
    with pytest.raises(DataError, match=r"no THREE_A.txt, only ONE_A.txt, TWO_A.txt"):
        read_tu(tmp_path, name="THREE")


def test_a_gap_is_a_graph_without_nodes(tmp_path):
    files = {"A": "1, 1\n2, 2\n", "graph_indicator": "2\n4\n", "graph_labels": "0\n1\n0\n1\n"}
    assert read_tu(write_folder(files, tmp_path)).sizes.tolist() == [0, 1, 0, 1]


def test_more_columns_of_labels_are_categories(tmp_path):
    files = {
        "node_labels": "0, 10\n0,3\n0, 10\n-1,  5\n0, 3\n",
        "edge_labels": "1,2,0\n1,2,0\n0,2,9\n0,2,9\n1,2,0\n1,2,0\n",
    }
    store = read_tu(write_folder(SMALL | files, tmp_path))
    assert (store.node_labels.tolist(), store.node_label_names) == ([1, 1, 1, 0, 1], (-1, 0))
    assert store.node_category_columns == (("label 1", (3, 5, 10)),)
    assert store.node_categories.tolist() == [[2], [0], [2], [1], [0]]
    assert store.edge_label_names == (0, 1)
    assert store.edge_category_columns == (("label 1", (2,)), ("label 2", (0, 9)))
    assert store.edge_categories.tolist() == [[0, 0], [0, 0], [0, 1], [0, 1], [0, 0], [0, 0]]
    check_values(store)


@pytest.mark.parametrize("ends", ["\r\n", "\n\n\n", "", " \n", "\t\n"], ids=repr)
def test_line_ends_and_blanks(tmp_path, ends):
    """Windows line ends, blank lines or none at the end of the file, blanks around numbers."""
    files = {
        kind: text.replace("\n", ends) if ends.strip("\n") else text.strip() + ends for kind, text in SMALL.items()
    }
    expected = read_tu(write_folder(SMALL, tmp_path / "plain"))
    assert_equal(read_tu(write_folder(files, tmp_path / "odd")), expected)


def test_byte_order_mark(tmp_path):
    files = {kind: b"\xef\xbb\xbf" + text.encode() for kind, text in SMALL.items()}
    assert_equal(read_tu(write_folder(files, tmp_path / "b")), read_tu(write_folder(SMALL, tmp_path / "a")))


@st.composite
def graph_sets(draw):
    """Graphs with every optional part or none; the last one has a node, and there is an edge somewhere."""
    numbers = st.integers(-(2**63), 2**63 - 1) if draw(st.booleans()) else st.integers(0, 12)
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    parts = {part: draw(st.booleans()) for part in ("node_labels", "node_attributes", "edge_labels", "edge_attributes")}
    parts |= {f"{kind}_categories": parts[f"{kind}_labels"] and draw(st.booleans()) for kind in ("node", "edge")}
    width = draw(st.integers(1, 3))

    def rows(count, item):
        return draw(st.lists(item, min_size=count, max_size=count))

    def part(name, count):
        if not parts[name]:
            return None
        if name.endswith("labels"):
            return rows(count, numbers)
        if name.endswith("categories"):
            return {f"label {place}": rows(count, numbers) for place in (1, 2)}
        return np.array(rows(count, st.tuples(*[floats] * width)), np.float32).reshape(count, width)

    graphs = []
    sizes = [*draw(st.lists(st.integers(0, 5), max_size=5)), draw(st.integers(1, 5))]
    for size in sizes:
        ends = st.tuples(*[st.integers(0, size - 1)] * 2) if size else st.nothing()
        edges = draw(st.lists(ends, max_size=8, min_size=1 if len(graphs) == len(sizes) - 1 else 0)) if size else []
        values = {name: part(name, size if name.startswith("node") else len(edges)) for name in parts}
        graphs.append(Graph(size, edges, label=draw(numbers), **values))
    return graphs


def tu_files(graphs, comma, order):
    """The TU text of graphs; ``order`` of the edges, all graphs taken together."""
    starts = np.cumsum([1, *(graph.num_nodes for graph in graphs)])
    edges = [f"{a + s}{comma}{b + s}" for graph, s in zip(graphs, starts, strict=False) for a, b in graph.edges]

    def lines(values):
        return "".join(f"{value}\n" for value in values)

    def all_rows(part):
        if getattr(graphs[0], part) is None:
            return None
        return [row for graph in graphs for row in getattr(graph, part)]

    def all_labels(kind):
        labels = all_rows(f"{kind}_labels")
        columns = [getattr(graph, f"{kind}_categories") for graph in graphs]
        if labels is None or columns[0] is None:
            return labels
        more = [row for column in columns for row in zip(*column.values(), strict=True)]
        return [comma.join(map(str, row)) for row in zip(labels, *zip(*more, strict=True), strict=True)]

    def joined(rows):
        return rows and [comma.join(repr(float(value)) for value in row) for row in rows]

    node_labels = all_labels("node")
    edge_labels = all_labels("edge")
    edge_attributes = joined(all_rows("edge_attributes"))
    files = {
        "A": lines(edges[i] for i in order),
        "graph_indicator": lines(i for i, graph in enumerate(graphs, 1) for _ in range(graph.num_nodes)),
        "graph_labels": lines(graph.label for graph in graphs),
        "node_labels": node_labels and lines(node_labels),
        "node_attributes": all_rows("node_attributes") and lines(joined(all_rows("node_attributes"))),
        "edge_labels": edge_labels and lines(edge_labels[i] for i in order),
        "edge_attributes": edge_attributes and lines(edge_attributes[i] for i in order),
    }
    return {kind: text for kind, text in files.items() if text is not None}


@given(graph_sets(), st.data())
def test_round_trip(graphs, data):
    """In a folder and a zip, with the edges of the graphs mixed or not, however the files are cut into chunks."""
    owner = [g for g, graph in enumerate(graphs) for _ in graph.edges]
    order = list(range(len(owner)))
    if data.draw(st.booleans(), "mixed"):
        turns = data.draw(st.permutations(owner))
        ahead = {g: iter([i for i in order if owner[i] == g]) for g in set(owner)}
        order = [next(ahead[g]) for g in turns]
    files = tu_files(graphs, data.draw(st.sampled_from([", ", ",", " ,"])), order)
    chunk = data.draw(st.integers(1, 40), "chunk")
    expected = pack(graphs)
    with tempfile.TemporaryDirectory() as folder, patch.object(archive, "CHUNK", chunk):
        assert_equal(read_tu(write_folder(files, Path(folder) / "plain")), expected)
        method = data.draw(st.sampled_from([zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]))
        assert_equal(read_tu(write_zip(files, Path(folder) / "packed.zip", method)), expected)


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_abandoned_files_are_closed(tmp_path, kind):
    """An error in the middle leaves nothing open: warnings about it would be errors here."""
    files = SMALL | {"A": "1, 2\n" * 10_000 + "x\n" + "1, 2\n" * 500_000}
    path = write_folder(files, tmp_path) if kind == "folder" else write_zip(files, tmp_path / "a.zip")
    with pytest.raises(DataError, match=r"SMALL_A.txt, line 10001: 1 columns, expected 2"):
        read_tu(path)


# name: graphs, class sizes, most nodes, mean nodes, mean undirected edges without self-loops, node labels,
# self-loops, isolated nodes (None: not stated)
STATISTICS = {
    "MUTAG": (188, {1: 125, -1: 63}, 28, 17.93, 19.79, 7, 0, None),
    "PTC": (344, {1: 152, -1: 192}, 109, 25.56, 25.96, 19, 0, None),
    "PROTEINS": (1113, {1: 663, 2: 450}, 620, 39.06, 72.82, 3, 0, 5),
    "NCI1": (4110, {0: 2053, 1: 2057}, 111, 29.87, 32.30, 37, 0, 428),
    "DD": (1178, {1: 691, 2: 487}, 5748, 284.32, 715.66, 82, 0, None),
    "COLLAB": (5000, {1: 2600, 2: 775, 3: 1625}, 492, 74.49, 2457.22, 0, 2837, None),
    "IMDB-BINARY": (1000, {0: 500, 1: 500}, 136, 19.77, 96.53, 0, 0, None),
    "IMDB-MULTI": (1500, {1: 500, 2: 500, 3: 500}, 89, 13.00, 65.94, 0, 0, None),
    "REDDIT-BINARY": (2000, {1: 1000, -1: 1000}, 3782, 429.63, 497.75, 0, 0, 21),
}
LARGE = ("COLLAB", "DD", "REDDIT-BINARY")


@needs_data
@pytest.mark.parametrize("name", [pytest.param(name, marks=slow) if name in LARGE else name for name in STATISTICS])
def test_statistics(name):
    graphs, class_sizes, most, nodes, edges, node_labels, loops, isolated = STATISTICS[name]
    store = read_tu(DATA / f"{name}.zip")
    check_values(store)
    assert (store.name, len(store)) == (name, graphs)
    assert dict(zip(store.classes, store.labels.bincount().tolist(), strict=True)) == class_sizes
    assert int(store.sizes.max()) == most
    assert store.num_nodes / graphs == pytest.approx(nodes, abs=0.005)
    assert int((store.edge_index[0] == store.edge_index[1]).sum()) == loops
    assert (store.num_edges - loops) / 2 / graphs == pytest.approx(edges, abs=0.0051)
    assert len(store.node_label_names) == node_labels
    batch = store.batch(range(graphs))
    without = store.num_nodes - batch.edge_index.unique().numel()
    assert without == isolated if isolated is not None else without >= 0


@needs_data
def test_same_as_pyg(tmp_path):
    with zipfile.ZipFile(DATA / "MUTAG.zip") as packed:
        packed.extractall(tmp_path)
    shutil.move(tmp_path / "MUTAG", tmp_path / "raw")
    (tmp_path / "MUTAG").mkdir()
    shutil.move(tmp_path / "raw", tmp_path / "MUTAG" / "raw")
    theirs = TUDataset(str(tmp_path), "MUTAG")
    ours = read_tu(tmp_path / "MUTAG")
    assert len(theirs) == len(ours)
    for data, graph in zip(theirs, ours, strict=True):
        assert torch.equal(data.edge_index, graph.edge_index.long())
        assert torch.equal(data.x.argmax(1), graph.node_labels.long())
        assert torch.equal(data.y, graph.labels)
