import json

import pytest
import torch

from sopool.data import DataError, load
from sopool.data.find_graph import find_graph

LINES = [
    {"nodes": 2, "edges": [[0, 1]], "id": "first", "label": "odd", "node_labels": ["C", "N"]},
    {"nodes": 3, "edges": [[0, 1], [1, 2]], "id": "second", "node_labels": ["C", "N", "O"]},
    {"nodes": 1, "edges": [], "id": "bare"},
]
LABELS = {"node_labels": None}


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "some.jsonl"
    made.write_text("\n".join([*map(json.dumps, LINES), "what?"]))
    return made


def test_by_row_and_by_id(path):
    one, other = find_graph(path, "2", LABELS), find_graph(path, "second", LABELS)
    assert one.row == other.row == 2
    assert one.graph.num_nodes == 3
    assert one.graph.labels is None
    assert (one.id, one.label) == ("second", None)
    assert find_graph(path, "1", LABELS).label == "odd"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("3", "line 3: the graph has no node_labels"),
        ("4", "line 4: not JSON"),
        ("5", "row 5 is no graph: they are in rows 1 to 4"),
        ("0", "row 0 is no graph"),
        ("-1", "row -1 is no graph"),
        ("third", "no graph has the id 'third'. Give the row, from 1 to 4"),
    ],
)
def test_what_is_not_there(path, wanted, message):
    with pytest.raises(DataError, match=message):
        find_graph(path, wanted, LABELS)


def test_the_line_of_names_is_no_graph(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,id\nCCO,a\nCC,b\n")
    with pytest.raises(DataError, match="row 1 is no graph: they are in rows 2 to 3"):
        find_graph(tmp_path / "m.csv", "1", LABELS)
    (tmp_path / "m.csv").write_text("smiles,id\n")
    with pytest.raises(DataError, match="there are no graphs"):
        find_graph(tmp_path / "m.csv", "1", LABELS)


def test_it_reads_no_further_than_it_must(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_bytes(json.dumps(LINES[0]).encode() + b"\n" + b"\xff" * 10)
    assert find_graph(path, "1", LABELS).row == 1


def test_of_a_data_set_graphs_are_numbered_from_0():
    found = find_graph("MUTAG", "0", LABELS)
    assert (found.row, found.label) == (0, 1)
    assert found.graph.edge_labels is not None
    assert torch.equal(found.graph.sizes, load("MUTAG")[0].sizes)
    for wanted in ("188", "-1", "x"):
        with pytest.raises(DataError, match="188 graphs, numbered from 0 to 187"):
            find_graph("MUTAG", wanted, LABELS)
