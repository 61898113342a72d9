"""A Parquet file is read as a CSV with the same columns is."""

import csv
import datetime
import io
import json

import pytest

from sopool.data import DataError, load
from sopool.data.formats import limits
from sopool.data.formats.rows import row_options
from sopool.data.sources.stream import stream_graphs
from sopool.errors import MissingPackageError
from sopool.estimator import load_model
from tests.cli.conftest import QUICK

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("rdkit", reason="RDKit is not installed")

COLUMNS = {
    "name": ["one", "two", "three", "four"] * 4,
    "smiles": ["C", "CC", "CCO", "c1ccccc1"] * 4,
    "label": [0, 1, 0, 1] * 4,
    "mass": [16.04, None, 46.07, float("nan")] * 4,
    "when": [datetime.date(2001, 5, day) for day in range(1, 17)],
    "tags": [["a", "b"], [], None, ["c"]] * 4,
    "raw": [b"x", b"\xff", None, b""] * 4,
    "flag": [True, False, None, True] * 4,
}


def write(path, columns, **options):
    parquet.write_table(arrow.table(columns), path, **options)


@pytest.fixture
def table(tmp_path):
    write(tmp_path / "m.parquet", COLUMNS, row_group_size=3)
    return tmp_path / "m.parquet"


def test_predictions_have_the_columns_of_a_csv(table, call, tmp_path):
    assert call("fit", table, "-o", "m.sopool", *QUICK, "--folds", "0", "--pool", "sum").code == 0
    write(tmp_path / "more.parquet", COLUMNS | {"mass": list(range(16)), "flag": ["no"] * 16, "smiles": ["N"] * 16})
    for name in ("out.csv", "out.parquet"):
        shown = call("predict", "m.sopool", table, "more.parquet", "-o", name)
        assert shown.code == 0, shown.err
        assert f"The predictions are in {name}." in shown.err
    found = parquet.read_table(tmp_path / "out.parquet")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert found.column_names == list(rows[0])
    kinds = {field.name: str(field.type) for field in found.schema}
    texts = ("file", "name", "smiles", "when", "tags", "raw", "flag")
    assert {name for name in kinds if kinds[name] == "string"} == set(texts)
    assert {kinds[name] for name in ("row", "label", "prediction")} == {"int64"}
    assert {kinds[name] for name in ("mass", "probability_0", "uncertainty")} == {"double"}
    assert kinds["in_training"] == "bool"
    assert len(rows) == found.num_rows == 32
    for one, other in zip(found.to_pylist(), rows, strict=True):
        for name in one:
            text = "" if one[name] is None else str(one[name])
            assert text == other[name] or float(text) == float(other[name])
    assert found["in_training"].to_pylist() == [True] * 16 + [False] * 16
    assert found["mass"].to_pylist()[:4] == [16.04, None, 46.07, None]


def test_columns_of_text_files_are_text_in_parquet(table, call, tmp_path):
    assert call("fit", table, "-o", "m.sopool", *QUICK, "--folds", "0", "--pool", "sum").code == 0
    (tmp_path / "new.csv").write_text("smiles,year,row\nCC,2001,a\nCCC,,b\n")
    assert call("predict", "m.sopool", "new.csv", "-o", "out.parquet").code == 0
    first, second = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [first[name] for name in ("row", "smiles", "year", "input_row")] == [2, "CC", "2001", "a"]
    assert (second["year"], second["prediction"] in (0, 1)) == ("", True)
    shown = call("predict", "m.sopool", "new.csv", "--format", "parquet")
    assert "--format parquet needs a file to write to, e.g. -o predictions.parquet." in shown.err
    (tmp_path / "bad.csv").write_text("smiles\nC(C\n")
    before = (tmp_path / "out.parquet").read_bytes()
    assert call("predict", "m.sopool", "bad.csv", "-o", "out.parquet").code == 2
    assert (tmp_path / "out.parquet").read_bytes() == before


@pytest.mark.parametrize("name", ["numbers", "labels"])
def test_targets_in_parquet(name, call, tmp_path):
    truth = "mass,size" if name == "numbers" else "odd,even"
    rows = "".join(f"{'C' * n},{n % 2 or n}{'.5' * (name == 'numbers')},{n % 3 % 2}\n" for n in range(1, 13))
    rows = rows if name == "numbers" else "".join(f"{'C' * n},{n % 2},{n % 3 % 2}\n" for n in range(1, 13))
    (tmp_path / "t.csv").write_text(f"smiles,{truth}\n{rows}")
    options = [*QUICK, "--folds", "0", "--pool", "sum", "--target-columns", truth]
    assert call("fit", "t.csv", "-o", "m.sopool", *options).code == 0
    assert call("predict", "m.sopool", "t.csv", "-o", "out.parquet").code == 0
    kinds = {field.name: str(field.type) for field in parquet.read_table(tmp_path / "out.parquet").schema}
    predicted = [kinds[f"predicted_{one}"] for one in truth.split(",")]
    assert predicted == (["double"] * 2 if name == "numbers" else ["int64"] * 2)
    assert "probability_odd" in kinds or name == "numbers"


@pytest.mark.filterwarnings("ignore:.*skipped")
def test_it_is_read_as_a_table(table, tmp_path):
    names = ["name", "smiles", "label", "mass"]
    text = io.StringIO()
    csv.writer(text).writerows([names, *zip(*(COLUMNS[name] for name in names), strict=True)])
    (tmp_path / "m.csv").write_text(text.getvalue())
    for options in ({}, {"label_column": "mass"}, {"target_columns": ["mass", "label"]}, {"split": "scaffold"}):
        found, expected = (load(tmp_path / name, **options) for name in ("m.parquet", "m.csv"))
        assert repr(found) == repr(expected)
        for name, tensor in expected.tensors().items():
            assert found.tensors()[name].nan_to_num().equal(tensor.nan_to_num())


def test_rows_are_numbered_and_keep_their_cells(table):
    chunks = list(stream_graphs(table, {}, row_options(keep=True)))
    assert [row for chunk in chunks for row in chunk.rows] == list(range(1, 17))
    assert chunks[0].ids[:2] == ["one", "two"]
    assert chunks[0].cells[0].names == tuple(COLUMNS)
    first, second = (cells.values for cells in chunks[0].cells[:2])
    assert first == ("one", "C", 0, 16.04, "2001-05-01", "['a', 'b']", "x", True)
    assert second == ("two", "CC", 1, None, "2001-05-02", "[]", "\ufffd", False)


def test_commands_read_it(table, call):
    shown = call("fit", table, "-o", "m.sopool", *QUICK, "--folds", "0", "--split", "time:when", "--pool", "sum")
    assert shown.code == 0, shown.err
    assert load_model(table.parent / "m.sopool").columns_ == ("smiles", "label", ())
    shown = call("predict", "m.sopool", table, "--format", "jsonl")
    first = json.loads(shown.out.splitlines()[0])
    assert [first[name] for name in ("row", "label", "mass", "flag")] == [1, 0, 16.04, True]
    assert "of 16 predictions are correct" in shown.err
    header, row = call("predict", "m.sopool", table).out.splitlines()[:2]
    assert header.startswith("row,name,smiles,label,mass,when,tags,raw,flag,prediction,")
    assert row.startswith("1,one,C,0,16.04,2001-05-01,\"['a', 'b']\",x,True,")
    assert call("explain", "m.sopool", table, "--graph", "two", "-o", "x.json").code == 0


def test_bad_rows_are_named(tmp_path, recwarn):
    write(tmp_path / "m.parquet", {"smiles": ["C", "C(", None, "CC"], "label": ["a", "b", None, None]})
    load(tmp_path / "m.parquet")
    (warning,) = recwarn
    assert "m.parquet: 2 of 3 molecules skipped, the first in row 2, 'C('." in str(warning.message)
    with pytest.raises(DataError, match=r"m.parquet: row 2: RDKit cannot parse the molecule"):
        load(tmp_path / "m.parquet", on_error="raise")


def test_files_that_cannot_be_read(table, tmp_path, monkeypatch):
    content = table.read_bytes()
    for name, data in (("cut", content[:-20]), ("empty", b""), ("text", b"smiles,label\nC,a\n")):
        (tmp_path / f"{name}.parquet").write_bytes(data)
        with pytest.raises(DataError, match=rf"{name}.parquet: truncated, damaged or not a Parquet file \("):
            load(tmp_path / f"{name}.parquet")
    write(tmp_path / "none.parquet", {})
    with pytest.raises(DataError, match="the file has no columns"):
        load(tmp_path / "none.parquet")
    write(
        tmp_path / "rows.parquet", {"smiles": arrow.array([], arrow.string()), "label": arrow.array([], arrow.string())}
    )
    with pytest.raises(DataError, match="there are no molecules"):
        load(tmp_path / "rows.parquet")
    write(tmp_path / "names.parquet", {"smiles": ["C"], "x": [1]})
    with pytest.raises(DataError, match="no column is called label, class, target, y or activity"):
        load(tmp_path / "names.parquet")
    with pytest.raises(DataError, match="no such file"):
        list(stream_graphs(tmp_path / "missing.parquet", {}))
    monkeypatch.setattr(limits, "MAX_UNPACKED", 10)
    with pytest.raises(DataError, match="a row group unpacks to"):
        load(table)


def test_a_long_row_is_a_bad_row(tmp_path, monkeypatch, recwarn):
    write(tmp_path / "m.parquet", {"smiles": ["C", "CC"], "label": ["a", "b"], "note": ["x" * 2000, ""]})
    monkeypatch.setattr(limits, "MAX_LINE", 1000)
    assert len(load(tmp_path / "m.parquet")) == 1
    assert "The row is longer than 1,000 bytes" in str(recwarn[0].message)


def test_without_pyarrow_the_error_says_what_to_install(table, model, graphs, call, monkeypatch):
    monkeypatch.setattr("sopool._runtime.packages.find_spec", lambda name: None if name == "pyarrow" else True)
    with pytest.raises(
        MissingPackageError, match=r"reading Parquet files needs pyarrow, .* pip install 'sopool\[parquet\]'"
    ):
        load(table)
    shown = call("predict", model, graphs, "-o", "out.parquet")
    assert "error: writing Parquet files needs pyarrow, " in shown.err
