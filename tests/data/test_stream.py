"""What is read some at a time is what is read at once, and a bad row harms no other."""

import gzip
import io
import json
import sys

import numpy as np
import pytest
import torch

from sopool.data import (
    AttributeEncoder,
    ConcatEncoder,
    ConstantEncoder,
    DataError,
    DegreeEncoder,
    Graph,
    NodeLabelEncoder,
    load,
    pack,
    save_graphs,
)
from sopool.data.formats import limits
from sopool.data.formats.jsonl import json_rows, write_jsonl
from sopool.data.formats.lines import TextLine
from sopool.data.formats.rows import row_options
from sopool.data.sources import stream as module
from sopool.data.sources.stream import stream_graphs
from sopool.errors import SettingError
from tests.helpers.training_graphs import little_store

FIELDS = {"node_labels": None, "node_attributes": 2}
STORE = little_store(graphs=40)
FULL = STORE[[g for g in range(40) if STORE.sizes[g]]]  # one has no nodes: that one is bad


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "NODES", 30)


def joined(chunks):
    """(rows, ids, labels, bad, stores) of all."""
    chunks = list(chunks)
    parts = ([x for c in chunks for x in getattr(c, name)] for name in ("rows", "ids", "labels", "bad"))
    return *parts, [chunk.graphs for chunk in chunks if chunk.graphs is not None]


def assert_same(stores, whole):
    assert torch.equal(torch.cat([store.sizes for store in stores]), whole.sizes)
    assert torch.equal(torch.cat([store.node_attributes for store in stores]), whole.node_attributes)
    names = [store.node_label_names[code] for store in stores for code in store.node_labels.tolist()]
    assert names == [whole.node_label_names[code] for code in whole.node_labels.tolist()]
    assert torch.equal(torch.cat([store.edge_ptr.diff() for store in stores]), whole.edge_ptr.diff())


@pytest.mark.parametrize("name", ["g.jsonl", "g.jsonl.gz", "g.graphs"])
def test_chunks_make_up_the_whole(name, tmp_path):
    path = tmp_path / name
    save_graphs(FULL, path) if name.endswith(".graphs") else write_jsonl(FULL, path)
    rows, ids, labels, bad, stores = joined(stream_graphs(path, FIELDS))
    whole = load(path)
    assert_same(stores, whole)
    assert len(stores) > 5
    assert all(store.num_nodes < 30 + 10 for store in stores)
    start = 0 if name.endswith(".graphs") else 1
    assert rows == list(range(start, len(FULL) + start))
    assert labels == [whole.classes[code] for code in whole.labels.tolist()]
    assert ids == [None] * len(FULL)
    assert bad == []


def test_rows_are_counted_too(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "NODES", 10**6)
    monkeypatch.setattr(module, "ROWS", 7)
    write_jsonl(FULL, tmp_path / "g.jsonl")
    save_graphs(FULL, tmp_path / "g.graphs")
    for name in ("g.jsonl", "g.graphs"):
        chunks = list(stream_graphs(tmp_path / name, FIELDS))
        assert [len(chunk.rows) for chunk in chunks] == [7] * (len(FULL) // 7) + [len(FULL) % 7] * (len(FULL) % 7 > 0)


LINES = [
    {"nodes": 2, "edges": [[0, 1]], "node_labels": [1, 2], "node_attributes": [[1, 2], [3, 4]], "id": "a", "label": 7},
    {"nodes": 2, "edges": [[0, 5]]},
    {"nodes": 1, "edges": [], "node_labels": [1]},
    {"nodes": 1, "edges": [], "node_labels": [1], "node_attributes": [[1, 2, 3]]},
    {"nodes": 0, "edges": []},
    {"nodes": 2**30, "edges": []},
    {"nodes": 1, "edges": [[0, 0]], "edge_labels": ["x"], "node_labels": [1], "node_attributes": [[1, 2]], "id": 5},
]


def test_bad_rows_are_named_and_the_others_come(tmp_path, monkeypatch):
    text = "\n".join(json.dumps(line) for line in LINES) + "\n\nnonsense\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + text.encode())))
    rows, ids, labels, bad, stores = joined(stream_graphs("-", FIELDS))
    assert (rows, ids, labels) == ([1, 7], ["a", 5], [7, None])
    assert [one.row for one in bad] == [2, 3, 4, 5, 6, 9]
    for one, words in zip(
        bad,
        ["[0, 5]", "no node_attributes", "3 node_attributes", "no nodes", "nodes must be 0 to", "not JSON"],
        strict=True,
    ):
        assert words in one.reason
    assert sum(len(store) for store in stores) == 2
    assert all(store.edge_labels is None for store in stores)


def test_edge_labels_are_asked_for_only_where_there_are_edges(tmp_path):
    path = tmp_path / "g.jsonl"
    lines = [
        {"nodes": 2, "edges": [[0, 1]], "edge_labels": ["single"]},
        {"nodes": 2, "edges": [[0, 1]]},
        {"nodes": 1, "edges": []},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows, _, _, bad, (store,) = joined(stream_graphs(path, {"edge_labels": None}))
    assert rows == [1, 3]
    assert [(one.row, one.reason.split(",")[0]) for one in bad] == [(2, "the graph has no edge_labels")]
    assert store.edge_label_names == ("single",)


EVERYTHING = {
    "node_categories": ("ring", "charge"),
    "edge_categories": ("stereo",),
    "edge_attributes": 2,
    "edge_weights": None,
    "graph_attributes": ("heat",),
}
BOND = {
    "nodes": 2,
    "edges": [[0, 1]],
    "node_categories": {"charge": [0, -1], "ring": ["no", "yes"]},
    "edge_categories": {"stereo": ["any"]},
    "edge_attributes": [[1, 2]],
    "edge_weights": [-0.5],
    "graph_attributes": {"size": 2, "heat": 20.5},
}
DOT = {"nodes": 1, "edges": [], "node_categories": {"ring": ["no"], "charge": [1]}, "graph_attributes": {"heat": None}}


def streamed(tmp_path, *lines):
    path = tmp_path / "g.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return joined(stream_graphs(path, EVERYTHING))


def test_all_that_graphs_carry_is_streamed(tmp_path):
    """Whatever the order of the columns; those that are not needed may differ or miss."""
    more = BOND | {"node_categories": BOND["node_categories"] | {"other": ["x", "x"]}}
    *_, bad, (store,) = streamed(tmp_path, BOND, DOT, more)
    assert not bad
    assert store.node_category_columns == (("ring", ("no", "yes")), ("charge", (-1, 0, 1)))
    assert store.node_categories.tolist() == [[0, 1], [1, 0], [0, 2], [0, 1], [1, 0]]
    assert store.edge_category_columns == (("stereo", ("any",)),)
    assert store.edge_attributes.tolist() == [[1, 2]] * 4
    assert store.edge_weights.tolist() == [-0.5] * 4
    assert store.graph_attribute_names == ("heat",)
    assert store.graph_attributes[::2].tolist() == [[20.5], [20.5]]
    assert bool(store.graph_attributes[1].isnan())


def test_a_stream_without_edges_has_their_columns(tmp_path):
    *_, (store,) = streamed(tmp_path, DOT, DOT)
    assert store.edge_category_columns == (("stereo", ()),)
    assert store.edge_attributes.shape == (0, 2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"node_categories": {"charge": [0, 0]}},
            "no column of node categories 'ring', but the graphs that the model was",
        ),
        ({"node_categories": None}, "the graph has no node_categories, but"),
        ({"edge_categories": {"other": [1]}}, "no column of edge categories 'stereo', but"),
        ({"edge_attributes": [1]}, "the graph has 1 edge_attributes each, but the model was trained with 2"),
        ({"edge_weights": None}, "the graph has no edge_weights, but"),
        ({"graph_attributes": {"size": 2}}, "the graph has no graph attribute 'heat', but"),
    ],
)
def test_graphs_without_what_the_model_needs_are_bad_rows(tmp_path, changes, says):
    rows, _, _, bad, _ = streamed(tmp_path, BOND, BOND | changes, DOT)
    assert rows == [1, 3]
    assert [one.row for one in bad] == [2]
    assert says in bad[0].reason


def test_a_graph_may_have_any_number_of_nodes_only_on_paper():
    chunks = list(module._chunks(json_rows([TextLine(1, json.dumps(LINES[5]))]), {}))
    assert chunks[0].graphs is None
    assert "nodes must be 0 to 16777216, found 1073741824" in chunks[0].bad[0].reason


@pytest.mark.parametrize(
    ("text", "ids", "labels"),
    [
        ("CCO ethanol\n\nC\nC((\n", ["ethanol", None], [None, None]),
        ("smiles,class,Name\nCCO,yes,x\nC,,\nC((,no,y\n", ["x", None], ["yes", None]),
        ("smiles,label\nCCO,nan\nC,0\nC((,1\n", [None, None], [None, "0"]),
        ("SMILES;id\nCCO;1\nC;2\nC((;3\n", ["1", "2"], [None, None]),
    ],
    ids=["bare", "comma", "nan", "semicolon"],
)
@pytest.mark.parametrize("name", ["-", "m.smi", "m.csv", "m.csv.gz"])
def test_molecules(text, ids, labels, name, tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    path = "-" if name == "-" else tmp_path / name
    if name != "-":
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    if "csv" in name and text.startswith("CCO"):
        with pytest.raises(DataError, match="no column is called smiles"):
            list(stream_graphs(path, {"node_labels": None}))
        return
    _, found_ids, found_labels, bad, stores = joined(stream_graphs(path, {"node_labels": None}))
    assert (found_ids, found_labels) == (ids, labels)
    assert [one.text for one in bad] == ["C(("]
    assert bad[0].row == 4
    assert [size for store in stores for size in store.sizes.tolist()] == [3, 1]


def test_molecules_of_an_sdf_file(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    path = tmp_path / "m.sdf"
    with chem.SDWriter(str(path)) as writer:
        for text, label in (("CCO", "yes"), ("C", None)):
            molecule = chem.MolFromSmiles(text)
            molecule.SetProp("_Name", f"title {text}")
            if label:
                molecule.SetProp("Toxic", label)
            writer.write(molecule)
    rows, ids, labels, _, stores = joined(stream_graphs(path, {"node_labels": None}, row_options(label_column="toxic")))
    assert (rows, ids, labels) == ([1, 2], ["title CCO", "title C"], ["yes", None])
    assert [size for store in stores for size in store.sizes.tolist()] == [3, 1]


def test_a_property_is_the_one_that_is_read_at_once(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    path = tmp_path / "m.sdf"
    with chem.SDWriter(str(path)) as writer:
        molecule = chem.MolFromSmiles("CCO")
        for name in ("label", "Label"):
            molecule.SetProp(name, f"of {name}")
        writer.write(molecule)
    for name in (None, "label", "Label"):
        (chunk,) = stream_graphs(path, {}, row_options(label_column=name))
        assert chunk.labels == list(load(path, label_column=name).classes)
    with pytest.raises(SettingError, match=r"no property 'Labels'.*Did you mean"):
        list(stream_graphs(path, {}, row_options(label_column="Labels")))


def test_a_file_that_is_not_there():
    for name in ("none.jsonl", "none.csv", "none.graphs"):
        with pytest.raises(DataError, match="no such file"):
            list(stream_graphs(name, {}))


def test_encoders_say_what_they_need():
    store = pack([Graph(1, node_labels=["a"], node_attributes=np.zeros((1, 3)))])
    assert ConcatEncoder([NodeLabelEncoder(), AttributeEncoder()]).fit(store).fields == {
        "node_labels": None,
        "node_attributes": 3,
    }
    assert DegreeEncoder().fit(store).fields == ConstantEncoder().fields == {}


def test_rows_that_are_kept_count_toward_the_size_of_a_chunk(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.setattr(limits, "MAX_LINE", 1000)
    (tmp_path / "m.csv").write_text("smiles,note\n" + f"C,{'x' * 300}\n" * 20)
    sizes = [
        [len(chunk.rows) for chunk in stream_graphs(tmp_path / "m.csv", {}, row_options(keep=keep))]
        for keep in (True, False)
    ]
    assert sizes == [[4] * 5, [20]]
    (tmp_path / "wide.csv").write_text("smiles" + "," * 500 + "\n" + f"C{',' * 500}\n" * 6)
    assert [len(chunk.rows) for chunk in stream_graphs(tmp_path / "wide.csv", {}, row_options(keep=True))] == [2] * 3
