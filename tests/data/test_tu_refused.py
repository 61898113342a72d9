"""TU files that are refused, and why; and whatever the bytes, no error but our own."""

import struct
import tempfile
import zipfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.data.formats import archive, limits
from sopool.data.formats.tu import read_tu
from sopool.data.graphs import check_values
from sopool.errors import DataError
from tests.helpers.tu_files import SMALL, write_folder, write_zip

BAD_TEXT = {
    "word": ("A", "1, 2\n2, x\n", 2, r"node number 'x' is not an integer"),
    "fraction": ("A", "1, 2\n2, 1.0\n", 2, r"'1.0' is not an integer"),
    "underscore": ("A", "1, 2\n2, 1_0\n", 2, r"'1_0' is not an integer"),
    "no number": ("A", "1, 2\n2, \n1, 2\n", 2, r"'' is not an integer"),
    "two numbers": ("A", "1, 2\n2 3, 1\n", 2, r"'2 3' is not an integer"),
    "NUL": ("A", "1, 2\n2, 1\x00\n", 2, r"is not an integer"),
    "not UTF-8": ("A", b"1, 2\n2, \xff1\n", 2, r"is not an integer"),
    "binary": ("A", bytes(range(128, 256)), 1, r"1 columns, expected 2"),
    "overflow": ("A", "1, 2\n2, 99999999999999999999\n", 2, r"too large for 64 bits"),
    "long number": ("A", "1, 2\n2, " + "9" * 9999 + "\n", 2, r"'9{40}\.\.\.' is not an integer"),
    "one column": ("A", "1, 2\n2\n", 2, r"1 columns, expected 2 separated by commas: '2'"),
    "three columns": ("A", "1, 2\n2, 1, 3\n", 2, r"3 columns, expected 2"),
    "blank line": ("A", "1, 2\n\n2, 1\n", 2, r"blank line"),
    "no comma": ("A", "1 2\n", 1, r"1 columns, expected 2"),
    "node 0": ("A", "1, 2\n0, 1\n", 2, r"the edge 0, 1 is invalid: nodes are numbered 1 to 5"),
    "node -1": ("A", "1, 2\n-1, 1\n", 2, r"the edge -1, 1 is invalid"),
    "node too high": ("A", "1, 2\n2, 1\n2, 6\n", 3, r"the edge 2, 6 is invalid: nodes are numbered 1 to 5"),
    "across": ("A", "1, 2\n2, 1\n3, 4\n", 3, r"the edge 3, 4 is invalid: these nodes are in different graphs"),
    "no edges": ("A", "", None, r"the file is empty"),
    "blank": ("A", " \n\n", None, r"the file is empty"),
    "out of order": ("graph_indicator", "1\n1\n2\n1\n2\n", 4, r"graph number 1 after 2: nodes must be sorted"),
    "graph 0": ("graph_indicator", "0\n0\n0\n1\n1\n", 1, r"graph number 0, expected numbers from 1"),
    "no nodes": ("graph_indicator", "", None, r"the file is empty"),
    "graph too high": ("graph_indicator", "1\n1\n1\n2\n999999999999999\n", None, r"2 labels, expected 999999999999999"),
    "columns": ("graph_indicator", "1\n1, 1\n", 2, r"2 columns, expected 1"),
    "no graphs": ("graph_labels", "", None, r"the file is empty"),
    "few labels": ("graph_labels", "1\n", None, r"1 labels, expected 2: SMALL_graph_indicator.txt ends with graph 2"),
    "many labels": ("graph_labels", "1\n2\n3\n", None, r"3 labels, expected 2"),
    "target": (
        "graph_labels",
        "1\n0.75\n",
        2,
        r"label '0.75' is not an integer. Numbers to predict are read from SMALL_graph_attributes.txt",
    ),
    "few targets": ("graph_attributes", "1, 2\n", None, r"1 attributes, expected 2: SMALL_graph_indicator.txt ends"),
    "many targets": ("graph_attributes", "1\n2\n3\n", None, r"3 attributes, expected 2"),
    "infinite target": ("graph_attributes", "1\n-inf\n", 2, r"attribute '-inf' is larger than 1e\+38 in size"),
    "huge target": ("graph_attributes", "1\n1e39\n", 2, r"attribute '1e39' is larger than 1e\+38 in size"),
    "text as target": ("graph_attributes", "1\nhigh\n", 2, r"'high' is not a number; write nan if it is missing"),
    "no target": ("graph_attributes", "1, 2\n1, \n", 2, r"'' is not a number"),
    "target underscore": ("graph_attributes", "1\n1_0\n", 2, r"'1_0' is not a number"),
    "ragged targets": ("graph_attributes", "1, 2\n1\n", 2, r"1 columns, expected 2"),
    "too many targets": ("graph_attributes", "1" + ",1" * 2**16 + "\n", None, r"65,537 targets, expected 1 to 65,536"),
    "large label": ("graph_labels", "1\n9223372036854775808\n", 2, r"too large for 64 bits"),
    "few node labels": ("node_labels", "1\n2\n", None, r"2 node labels, expected 5: one line for each node"),
    "many node labels": ("node_labels", "1\n" * 6, None, r"6 node labels, expected 5"),
    "ragged node labels": ("node_labels", "1, 2\n1\n", 2, r"1 columns, expected 2"),
    "many columns of labels": (
        "node_labels",
        ("1" + ",1" * 4096 + "\n") * 5,
        1,
        r"4,097 columns, expected at most 4,096",
    ),
    "empty node labels": ("node_labels", "", None, r"the file is empty"),
    "edge label with a fraction": ("edge_labels", "1, 2\n" * 5 + "1, 0.5\n", 6, r"edge label '0.5' is not an integer"),
    "few edge labels": ("edge_labels", "1\n", None, r"1 edge labels, expected 6: one line for each edge"),
    "NaN": ("node_attributes", "1, 2\n1, nan\n", 2, r"the node attribute 'nan' is not finite"),
    "infinite": ("edge_attributes", "1\n-inf\n", 2, r"the edge attribute '-inf' is not finite"),
    "beyond double": ("edge_attributes", "1\n1e999\n", 2, r"'1e999' is not finite"),
    "beyond float": ("edge_attributes", "1\n1e39\n", 2, r"'1e39' is too large for float32"),
    "no attribute": ("node_attributes", "1, 2\n1, \n", 2, r"'' is not a number"),
    "attribute underscore": ("node_attributes", "1, 2\n1, 1_0\n", 2, r"'1_0' is not a number"),
    "few attributes": ("node_attributes", "1, 2\n", None, r"1 node attributes, expected 5"),
    "ragged attributes": ("node_attributes", "1, 2\n1\n", 2, r"1 columns, expected 2"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize(("kind", "text", "line", "message"), BAD_TEXT.values(), ids=BAD_TEXT.keys())
def test_bad_text(tmp_path, kind, text, line, message, packed):
    files = SMALL | {kind: text}
    path = write_zip(files, tmp_path / "S.zip") if packed else write_folder(files, tmp_path)
    with pytest.raises(DataError, match=message) as caught:
        read_tu(path)
    if "labels, expected" in message and kind == "graph_indicator":
        kind = "graph_labels"
    where = f"{path}: SMALL/SMALL_{kind}.txt" if packed else str(path / f"SMALL_{kind}.txt")
    assert str(caught.value.path) == where
    assert caught.value.line == line
    assert str(caught.value).startswith(where if line is None else f"{where}, line {line}: ")


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_lines_are_counted_across_chunks(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(archive, "CHUNK", chunk)
    for text, line in (
        ("1, 2\n" * 40 + "1, x\n", 41),
        ("1, 2\n" * 40 + "\n\n1, 2\n", 41),
        ("1, 2\n" * 40 + "1, 9\n", 41),
    ):
        with pytest.raises(DataError, match=f"line {line}: "):
            read_tu(write_folder(SMALL | {"A": text}, tmp_path))


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "CHUNK", 64)
    monkeypatch.setattr(limits, "MAX_LINE", 1000)
    with pytest.raises(DataError, match=r"SMALL_A.txt, line 2: a line has more than 1,000 bytes"):
        read_tu(write_folder(SMALL | {"A": "1, 2\n" + "1" * 2000}, tmp_path))


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("kind", ["A", "graph_indicator", "graph_labels"])
def test_missing_file(tmp_path, kind, packed):
    files = {key: text for key, text in SMALL.items() if key != kind}
    path = write_zip(files, tmp_path / "S.zip") if packed else write_folder(files, tmp_path)
    message = r"there is no NAME_A.txt" if kind == "A" else rf"SMALL_{kind}.txt: this file is missing"
    with pytest.raises(DataError, match=message):
        read_tu(path)


def test_no_such_path(tmp_path):
    with pytest.raises(DataError, match=r"nowhere: there is no such file or folder"):
        read_tu(tmp_path / "nowhere")


def test_not_a_zip(tmp_path):
    path = tmp_path / "a.zip"
    for content in (b"", b"1, 2\n", b"PK\x03\x04" + b"\0" * 99):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a.zip: cannot be read \(File is not a zip file\)"):
            read_tu(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_STORED])
def test_damaged_zip(tmp_path, method):
    path = write_zip(SMALL | {"A": "1, 2\n2, 1\n" * 5000}, tmp_path / "a.zip", method)
    whole = path.read_bytes()
    inside = whole.index(b"SMALL_A.txt") + 30
    for broken in (whole[:-30], whole[: len(whole) // 2], whole[:inside] + b"\x7f\x01\x80" + whole[inside + 3 :]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"cannot be read|damaged"):
            read_tu(path)


@pytest.mark.parametrize(
    "name", ["../evil_A.txt", "/evil_A.txt", "a/../../evil_A.txt", "C:\\evil_A.txt", "..\\evil.txt", "../folder/"]
)
def test_member_outside(tmp_path, name):
    path = write_zip(SMALL, tmp_path / "a.zip")
    with zipfile.ZipFile(path, "a") as out:
        out.writestr(name, "1, 2\n")
    with pytest.raises(DataError, match=r"points outside the zip"):
        read_tu(path)


def test_member_twice(tmp_path):
    path = write_zip(SMALL, tmp_path / "a.zip")
    with zipfile.ZipFile(path, "a") as out, pytest.warns(UserWarning, match="Duplicate name"):
        out.writestr("SMALL/SMALL_A.txt", "1, 2\n")
    with pytest.raises(DataError, match=r"holds 'SMALL/SMALL_A.txt' 2 times"):
        read_tu(path)


def patch_header(path, member, offset, new):
    """Overwrite bytes of a member's entry in the central directory."""
    data = bytearray(path.read_bytes())
    entry = data.rindex(member.encode()) - 46
    assert data[entry : entry + 4] == b"PK\x01\x02"
    data[entry + offset : entry + offset + len(new)] = new
    path.write_bytes(data)


def test_encrypted_or_unknown_packing(tmp_path):
    path = write_zip(SMALL, tmp_path / "a.zip")
    patch_header(path, "SMALL/SMALL_A.txt", 8, struct.pack("<H", 1))
    with pytest.raises(DataError, match=r"SMALL_A.txt: cannot be read \(.*encrypted"):
        read_tu(path)
    path = write_zip(SMALL, tmp_path / "b.zip")
    patch_header(path, "SMALL/SMALL_A.txt", 10, struct.pack("<H", 93))
    with pytest.raises(DataError, match=r"SMALL_A.txt: compressed by method 93, expected deflate or LZMA"):
        read_tu(path)
    with pytest.raises(DataError, match=r"compressed by method 12, expected deflate or LZMA"):
        read_tu(write_zip(SMALL, tmp_path / "c.zip", zipfile.ZIP_BZIP2))


def test_declared_size_over_the_limit(tmp_path, monkeypatch):
    path = write_zip(SMALL, tmp_path / "a.zip")
    monkeypatch.setattr(limits, "MAX_UNPACKED", 100)
    with pytest.raises(DataError, match=r"a.zip: unpacks to \d+ bytes or more, the limit is 100"):
        read_tu(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("size", [4, 1_000_000])
def test_declared_size_is_a_lie(tmp_path, method, size):
    path = write_zip(SMALL, tmp_path / "a.zip", method)
    patch_header(path, "SMALL/SMALL_A.txt", 24, struct.pack("<L", size))
    with pytest.raises(DataError, match=r"SMALL_A.txt: .*(CRC|were declared)"):
        read_tu(path)


def test_real_size_over_the_limit(tmp_path, monkeypatch):
    with archive.open_source(write_zip(SMALL, tmp_path / "a.zip")) as source:
        monkeypatch.setattr(limits, "MAX_UNPACKED", 20)
        with pytest.raises(DataError, match=r"the limit is 20"):
            list(source.text("SMALL/SMALL_A.txt").chunks)


pieces = st.sampled_from(
    [b"", b"\n", b",", b"-", b"0", b"9" * 25, b" ", b"\r", b"\0", b".", b"e", b"\xff", b"nan", b"\n\n"]
)
mutations = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), st.one_of(pieces, st.binary(max_size=3))), min_size=1, max_size=4
)


def mutated(data, changes):
    """Each change replaces some bytes somewhere."""
    for place, length, new in changes:
        start = round(place * len(data))
        data = data[:start] + new + data[start + length :]
    return data


def read_or_refuse(read, path):
    try:
        store = read(path)
    except DataError:
        return
    check_values(store)


@given(st.sampled_from(sorted(SMALL)), mutations, st.integers(1, 30))
def test_fuzz_text(kind, changes, chunk):
    files = SMALL | {kind: mutated(SMALL[kind].encode(), changes)}
    with tempfile.TemporaryDirectory() as folder, patch.object(archive, "CHUNK", chunk):
        read_or_refuse(read_tu, write_folder(files, Path(folder)))


@given(st.sampled_from([zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]), mutations)
def test_fuzz_zip(method, changes):
    with tempfile.TemporaryDirectory() as folder:
        path = write_zip(SMALL, Path(folder) / "a.zip", method)
        path.write_bytes(mutated(path.read_bytes(), changes))
        read_or_refuse(read_tu, path)


@given(st.binary(max_size=200), st.sampled_from(sorted(SMALL)))
def test_fuzz_random(data, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zip"
        path.write_bytes(data)
        read_or_refuse(read_tu, path)
        read_or_refuse(read_tu, write_folder(SMALL | {kind: data}, Path(folder) / "plain"))
