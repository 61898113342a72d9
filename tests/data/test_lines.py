"""However long a line or a record is, a bounded part of it is held in memory, and what follows it is read."""

import csv
import gzip
import io
import json
import sys
import tracemalloc
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from sopool.data import load
from sopool.data.formats import limits
from sopool.data.formats.csv import csv_header, csv_rows
from sopool.data.formats.jsonl import read_jsonl, write_jsonl
from sopool.data.formats.lines import SHOWN, TextLine, number_lines, read_lines
from sopool.data.formats.sdf import sdf_records
from sopool.data.pack import Graph, pack
from sopool.data.sources.find_graph import find_graph
from sopool.data.sources.stream import stream_graphs
from sopool.errors import DataError

LIMIT = 1000
HUGE = 2**20
NO_BOND = "\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0       0.0       0.0    C  0  0\nM  END\n"
SDF = f"first{NO_BOND}> <label>\n1\n\n$$$$\n"


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE", LIMIT)


@contextmanager
def peak_below(limit):
    """Check that Python's own memory never grew by more than this many bytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


class Counted(io.BytesIO):
    """A file that remembers the most bytes that it was asked for, and refuses to give all lines at once."""

    most = 0

    def readline(self, size=-1):
        assert size > 0
        self.most = max(self.most, size)
        return super().readline(size)

    def __iter__(self):
        raise AssertionError("lines must be asked for with a limit")


def test_of_a_long_line_only_the_beginning_is_kept():
    text = b"\xef\xbb\xbfa\n" + b"b" * (LIMIT - 1) + b"\n" + b'c"' * HUGE + b"\nlast"
    file = Counted(text)
    first, longest, long, last = number_lines(file, "x")
    assert (first, last) == (TextLine(1, "a\n"), TextLine(4, "last"))
    assert longest == TextLine(2, "b" * (LIMIT - 1) + "\n")
    assert long.number == 3
    assert long.text == 'c"' * (SHOWN // 2)
    assert long.quotes == HUGE
    assert long.problem.startswith("The line is longer than 1,000 bytes")
    assert file.most < 2**17


def test_text_streams_are_bounded_as_well():
    lines = list(number_lines(io.StringIO("é" * 5000 + "\nb"), "x"))
    assert [line.number for line in lines] == [1, 2]
    assert lines[0].problem
    assert lines[1] == TextLine(2, "b")


def test_a_long_line_without_an_end():
    (line,) = number_lines(io.BytesIO(b" " * 5000), "x")
    assert line.problem
    assert not line.blank


# Each has a huge row, then a good one.
GRAPH = json.dumps({"nodes": 1, "edges": [], "label": 1}) + "\n"
TEXTS = {
    "one.jsonl": GRAPH + '{"id": "' + "x" * HUGE + '"}\n' + GRAPH,
    "spaces.jsonl": GRAPH + " " * HUGE + "\n" + GRAPH,
    "one.csv": "smiles,label\nC,1\nC," + "x" * HUGE + "\nC,1\n",
    "quoted.csv": 'smiles,label\nC,1\nC,"' + "x" * HUGE + '"\nC,1\n',
    "wide.csv": "smiles,label\nC,1\nC" + "," * HUGE + "\nC,1\n",
    "bare.smi": "C\n" + "C" * HUGE + "\nC\n",
    "line.sdf": SDF + SDF.replace("first", "f" * HUGE) + SDF,
    "record.sdf": SDF + SDF.replace("> <label>", "> <x>\n" + ("m" * 511 + "\n") * (HUGE // 512) + "\n> <label>") + SDF,
}


@pytest.mark.parametrize("packed", ["", ".gz"], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_huge_row_is_bad_and_takes_no_memory(name, packed, tmp_path):
    if not name.endswith(".jsonl"):
        pytest.importorskip("rdkit.Chem", reason="needs RDKit, the extra chem")
    path = tmp_path / (name + packed)
    path.write_bytes(gzip.compress(TEXTS[name].encode(), 1) if packed else TEXTS[name].encode())
    with peak_below(HUGE // 2):
        chunks = list(stream_graphs(path, {}))
    (bad,) = [one for chunk in chunks for one in chunk.bad]
    assert "is longer than 1,000 bytes" in bad.reason
    assert len(bad.text) <= SHOWN
    rows = [row for chunk in chunks for row in chunk.rows]
    assert len(rows) == 2
    assert rows[0] < bad.row < rows[1]


@pytest.mark.parametrize("name", [name for name in TEXTS if "smi" not in name])
def test_a_huge_row_is_named_where_everything_is_read_at_once(name, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name])
    if name.endswith(".jsonl"):
        with pytest.raises(DataError, match=r"line 2: The line is longer than 1,000 bytes"):
            load(path)
        return
    pytest.importorskip("rdkit.Chem", reason="needs RDKit, the extra chem")
    with pytest.warns(UserWarning, match=r"1 of 3 molecules skipped.*is longer than 1,000 bytes"):
        assert len(load(path)) == 2
    with pytest.raises(DataError, match=r"(line 3|record 2): .*is longer than 1,000 bytes") as caught:
        load(path, on_error="raise")
    assert len(str(caught.value)) < 1000


def test_the_standard_input_is_read_with_a_limit(monkeypatch):
    file = Counted((GRAPH + "x" * HUGE + "\n" + GRAPH).encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file))
    chunks = list(stream_graphs("-", {}))
    assert [row for chunk in chunks for row in chunk.rows] == [1, 3]
    assert [one.row for chunk in chunks for one in chunk.bad] == [2]
    assert file.most < 2**17


def csv_of(text):
    return list(csv_rows(number_lines(io.BytesIO(text.encode()), "a.csv"), "a.csv"))


def test_a_row_of_a_csv_may_not_grow_by_quotes():
    start = 'smiles,note\nC,"open\n'
    with pytest.raises(DataError, match=r"a\.csv, line 2: The row is longer than 1,000 bytes.*quote"):
        csv_of(start + "more\n" * 1000)
    with pytest.raises(DataError, match=r"a\.csv, line 2: The row is longer.*A quote is left open"):
        csv_of('smiles,note\n"' + "x" * 2000 + '\nC,"\nC,1\n')


def test_a_long_row_of_several_lines_ends_where_its_quote_does():
    rows = csv_of('smiles,note\nC,"open\n' + "x" * 2000 + '"\nC,1\n')
    assert [(row.number, bool(row.problem)) for row in rows] == [(1, False), (2, True), (4, False)]
    assert rows[2].cells == ["C", "1"]


def test_too_long_a_cell_is_told_in_our_words(monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE", 10**6)
    cell = "x" * (csv.field_size_limit() + 1)
    rows = csv_of("smiles,note\nC," + cell + "\nC,1\n")
    assert [row.number for row in rows] == [1, 2, 3]
    assert f"A cell has more than {csv.field_size_limit():,} characters" in rows[1].problem
    with pytest.raises(DataError, match=r"column names cannot be read\. A cell has more"):
        csv_header(iter(csv_of("smiles," + cell + "\nC,1\n")), "a.csv")
    with pytest.raises(DataError, match=r"a\.csv, line 2: A cell has more.*A quote is left open"):
        csv_of('smiles,note\nC,"' + cell + '\nC,1"\n')


def test_of_a_long_record_the_title_is_kept(tmp_path):
    path = tmp_path / "a.sdf"
    path.write_text(TEXTS["record.sdf"])
    records = list(sdf_records(path))
    assert [record.title for record in records] == ["first"] * 3
    assert [bool(record.problem) for record in records] == [False, True, False]
    assert len(records[1].text) <= SHOWN


def test_a_long_row_is_not_taken_for_the_graph_that_was_asked_for(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(TEXTS["one.jsonl"])
    assert find_graph(path, "3", {}).row == 3
    with pytest.raises(DataError, match=r"line 2: The line is longer than") as caught:
        find_graph(path, "2", {})
    assert len(str(caught.value)) < 1000


def test_a_chunk_holds_no_more_than_two_lines_may(tmp_path):
    path = tmp_path / "a.jsonl"
    edges = {"nodes": 1, "edges": [[0, 0]] * 60, "directed": True}
    path.write_text((json.dumps(edges) + "\n") * 10 + ("x" * 900 + "\n") * 10)
    chunks = list(stream_graphs(path, {}))
    assert [len(chunk.rows) for chunk in chunks[:5]] == [2] * 5
    assert [len(chunk.bad) for chunk in chunks[5:]] == [2] * 5
    assert all(len(one.text) <= SHOWN for chunk in chunks for one in chunk.bad)


def test_blank_lines_before_the_first_are_not_kept(monkeypatch):
    file = Counted(b"\n" * 2**16 + GRAPH.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file))
    with peak_below(2**18):
        (chunk,) = stream_graphs("-", {})
    assert chunk.rows == [2**16 + 1]


def test_few_bytes_may_not_name_many_nodes(monkeypatch):
    monkeypatch.setattr(limits, "MAX_BARE_NODES", 50)
    assert read_jsonl(io.StringIO('{"nodes": 50, "edges": []}')).num_nodes == 50
    with pytest.raises(DataError, match=r"line 1: graph 7: 51 nodes on a line of 35 characters"):
        read_jsonl(io.StringIO('{"id": 7, "nodes": 51, "edges": []}'))
    full = json.dumps({"nodes": 60, "edges": [], "node_labels": [1] * 60})
    assert read_jsonl(io.StringIO(full)).num_nodes == 60


def test_what_could_not_be_read_is_not_written(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    with pytest.raises(DataError, match=r"a\.jsonl: graph 1: The line is longer than 1,000 bytes.*\.graphs file"):
        write_jsonl(pack([Graph(1), Graph(400, [(0, i) for i in range(400)])]), path)
    monkeypatch.setattr(limits, "MAX_BARE_NODES", 50)
    with pytest.raises(DataError, match=r"graph 0: 51 nodes on a line of .*\.graphs file"):
        write_jsonl(pack([Graph(51)]), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ('{"' + "x" * HUGE + '": 1}', "unknown key"),
        ("{" + "".join(f'"{i}": 1, ' for i in range(30_000)) + '"x": 1, "x": 1}', "the key 'x' occurs twice"),
    ],
    ids=["long key", "many keys"],
)
def test_hostile_keys_take_little_memory(record, words, monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE", 2 * HUGE)
    with peak_below(20 * HUGE), pytest.raises(DataError, match=words):
        read_jsonl(io.StringIO(record))


def test_read_lines_names_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        list(read_lines(tmp_path))
