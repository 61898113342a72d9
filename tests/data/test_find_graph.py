import json

import pytest
import torch

from sopool.data import DataError, load
from sopool.data.sources.find_graph import find_graph

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
    one = find_graph(path, "2", LABELS)
    other = find_graph(path, "second", LABELS)
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
        (
            "5",
            "no graph is in row 5 or has that id. The graphs are in rows 1 to 4, with ids such as 'first', 'second',",
        ),
        ("0", "no graph is in row 0"),
        ("-1", "no graph is in row -1"),
        ("third", "no graph has the id 'third'. The graphs are in rows 1 to 4, with ids"),
    ],
)
def test_what_is_not_there(path, wanted, message):
    with pytest.raises(DataError, match=message):
        find_graph(path, wanted, LABELS)


def test_the_line_of_names_is_no_graph(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,id\nCCO,a\nCC,b\n")
    with pytest.raises(DataError, match=r"no graph is in row 1 or has that id. The graphs are in rows 2 to 3"):
        find_graph(tmp_path / "m.csv", "1", LABELS)
    (tmp_path / "m.csv").write_text("smiles,id\n")
    with pytest.raises(DataError, match="the file has no graphs"):
        find_graph(tmp_path / "m.csv", "1", LABELS)


NUMBERED = {"json": [7, "3", 2, "007"], "csv": ["7", "3", "2", "007"]}


@pytest.fixture(params=["json", "csv"])
def numbered(request, tmp_path):
    """Graphs of 1, 2, 3 and 4 nodes in rows that their ids do not tell; and the first row."""
    ids = NUMBERED[request.param]
    if request.param == "json":
        lines = [
            json.dumps({"nodes": n, "edges": [], "id": one, "node_labels": ["C"] * n}) for n, one in enumerate(ids, 1)
        ]
    else:
        pytest.importorskip("rdkit")
        lines = ["id,smiles", *(f"{one},{'C' * n}" for n, one in enumerate(ids, 1))]
    path = tmp_path / f"some.{request.param.replace('json', 'jsonl')}"
    path.write_text("\n".join(lines))
    return path, len(lines) - len(ids) + 1


def test_ids_that_are_numbers(numbered):
    path, first = numbered

    def nodes(wanted):
        return find_graph(path, wanted, LABELS).graph.num_nodes

    assert nodes("7") == nodes("id:7") == 1
    assert nodes("007") == nodes("id:007") == 4
    assert (nodes("3"), nodes("id:3")) == (3 - first + 1, 2)  # first the row
    assert nodes("id:2") == 3
    for wanted, message in (("8", "no graph is in row 8 or has that id"), ("id:4", "no graph has the id '4'")):
        with pytest.raises(
            DataError, match=f"{message}. The graphs are in rows .* with ids such as '7', '3', '2', '007'"
        ):
            find_graph(path, wanted, LABELS)


def test_a_bad_one_is_found_by_its_id(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,id\nCCO,a\nC1C,b\n")
    with pytest.raises(DataError, match=r"line 3: .*'C1C'"):
        find_graph(tmp_path / "m.csv", "b", LABELS)


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


def test_a_bad_record_of_an_sdf_file_is_called_so(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    path = tmp_path / "two.sdf"
    with chem.SDWriter(str(path)) as writer:
        writer.write(chem.MolFromSmiles("CCO"))
    path.write_text(path.read_text() + "bad\n\n\n  what?\nM  END\n$$$$\n")
    assert find_graph(path, "1", LABELS).graph.num_nodes == 3
    with pytest.raises(DataError, match=r"two\.sdf: record 2: .* Found 'bad'"):
        find_graph(path, "2", LABELS)
