"""Commands read several files as one data set, and say of each row which file it is from."""

import csv
import io
import json
import os
from threading import Thread

import pytest

from sopool.data import load, save_graphs
from sopool.errors import DataError, SettingError
from sopool.estimator import load_model
from tests.cli.conftest import QUICK, TINY
from tests.helpers.little_classifier import NAMED

FIT = [*QUICK, "--folds", "0", "--pool", "sum"]


def said(shown):
    return " ".join(shown.err.split())


@pytest.fixture
def tables(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "a.csv").write_text("smiles,label\n" + "CC,1\nCCC,0\n" * 12)
    (tmp_path / "b.tsv").write_text("label\tsmiles\n" + "1\tCCCC\n0\tCCO\n" * 12 + "1\tC(C\n")
    return ["a.csv", "b.tsv"]


@pytest.mark.filterwarnings("default:.*skipped")
def test_files_of_molecules_are_joined(tables, call, tmp_path):
    shown = call("fit", *tables, "-o", "m.sopool", *FIT)
    assert shown.code == 0, shown.err
    assert "a+b: 48 graphs of 2 classes" in shown.out
    assert "note: b.tsv: 1 of 49 molecules skipped, the first in line 26, 'C(C'. Reasons: RDKit" in said(shown)
    model = load_model(tmp_path / "m.sopool")
    assert model.trained_on_["graphs"] == 48
    assert model.columns_.label == "label"
    for command in (["controls", "--controls", "majority"], ["evaluate", *TINY, "--pool", "sum"], ["inspect"]):
        folds = ["--folds", "2"] if command[0] == "controls" else []
        shown = call(command[0], *tables, *command[1:], *folds)
        assert shown.code == 0, shown.err
        assert "a+b" in shown.out


@pytest.mark.filterwarnings("ignore:.*skipped")
@pytest.mark.parametrize(
    ("data", "expected"),
    [('["a.csv", "b.tsv"]', 48), ('"a.csv"', 24), ("3", "[fit] data = 3, expected a string or a list")],
)
def test_a_config_file_may_name_several(data, expected, tables, call, tmp_path):
    (tmp_path / "c.toml").write_text(f'[fit]\ndata = {data}\noutput = "m.sopool"\n')
    shown = call("--config", "c.toml", "fit", *FIT)
    if isinstance(expected, str):
        assert shown.code == 2
        assert expected in said(shown)
        return
    assert shown.code == 0, shown.err
    assert load_model(tmp_path / "m.sopool").trained_on_["graphs"] == expected


def test_labels_are_read_together(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "a.csv").write_text("smiles,y\nCC,1\nCCC,2\n")
    (tmp_path / "b.csv").write_text("smiles,y\nCC,1.5\n")
    joined = load([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert joined.targets.flatten().tolist() == [1, 2, 1.5]
    assert joined.target_names == ("y",)
    assert load([tmp_path / "a.csv"]).classes == (1, 2)


def test_other_graphs_are_joined_too(call, tmp_path):
    save_graphs(NAMED[:20], tmp_path / "first.graphs")
    save_graphs(NAMED[20:], tmp_path / "second.graphs")
    assert call("fit", "first.graphs", "second.graphs", "-o", "m.sopool", *FIT).code == 0
    assert load_model(tmp_path / "m.sopool").trained_on_["graphs"] == 40
    shown = call("predict", "m.sopool", "first.graphs", "second.graphs")
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    assert [(row["file"], row["row"]) for row in rows[-2:]] == [("second.graphs", "18"), ("second.graphs", "19")]
    assert "39 of 39 labelled graphs were in the training data" in said(shown)
    assert "skipped: first.graphs: graph 5: the graph has no nodes" in said(shown)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_predictions_name_the_file(form, tables, call):
    assert call("fit", "a.csv", "-o", "m.sopool", *FIT).code == 0
    shown = call("predict", "m.sopool", *tables, "--format", form)
    assert shown.code == 0, shown.err
    rows = list(csv.DictReader(io.StringIO(shown.out)) if form == "csv" else map(json.loads, shown.out.splitlines()))
    assert list(rows[0])[:4] == ["file", "row", "smiles", "label"]
    assert [(row["file"], int(row["row"])) for row in (rows[23], rows[24])] == [("a.csv", 25), ("b.tsv", 2)]
    assert (rows[24]["smiles"], rows[24]["label"]) == ("CCCC", "1")
    assert len(rows) == 48
    assert "of 48 predictions are correct" in said(shown)
    assert "skipped: b.tsv, line 26: RDKit cannot parse" in said(shown)


def test_a_column_called_file_is_kept(tmp_path, call, tables):
    assert call("fit", "a.csv", "-o", "m.sopool", *FIT).code == 0
    for name in ("c.csv", "d.csv"):
        (tmp_path / name).write_text("smiles,file\nCC,x\n")
    assert call("predict", "m.sopool", "c.csv", "d.csv").out.startswith("file,row,smiles,input_file,prediction,")
    assert call("predict", "m.sopool", "c.csv").out.startswith("row,smiles,file,prediction,")


def test_predictions_of_files_with_other_columns(tables, call, tmp_path):
    assert call("fit", "a.csv", "-o", "m.sopool", *FIT).code == 0
    (tmp_path / "c.csv").write_text("smiles,remark\nCC,x\n")
    shown = call("predict", "m.sopool", "a.csv", "c.csv", "-o", "out.csv")
    assert shown.code == 2
    assert "c.csv: it lacks 'label' and has 'remark', but several sources must have the same columns" in said(shown)
    assert not (tmp_path / "out.csv").exists()
    shown = call("predict", "m.sopool", "a.csv", "c.csv", "-o", "out.csv", "--drop-input")
    assert shown.code == 0, shown.err
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert header == "file,row,id,prediction,probability_0,probability_1,uncertainty,in_training"


@pytest.mark.parametrize(
    ("last", "text", "message"),
    [
        ("c.csv", "smiles,remark\nCC,x\n", "c.csv: it lacks 'label' and has 'remark', but several sources must have"),
        ("c.csv", "smiles,remark\n???,x\n", "c.csv: it lacks 'label'"),
        ("c.csv", "smiles,label,label\n", None),
        ("c.csv", "molecule,label\nCC,1\n", "c.csv: no column is called smiles"),
        ("c.csv", "", "c.csv: the file is empty"),
        ("c.jsonl", '{"nodes": 1, "edges": []}\n', "c.jsonl: it lacks 'smiles', 'label' and has 'id', but several"),
        ("none.csv", None, "none.csv: there is no such file"),
        ("MUTAG", None, "MUTAG: it lacks 'smiles', 'label' and has 'id'"),
    ],
)
def test_columns_of_all_files_are_checked_before_any_is_predicted(last, text, message, tables, call, tmp_path):
    assert call("fit", "a.csv", "-o", "m.sopool", *FIT).code == 0
    if text is not None:
        (tmp_path / last).write_text(text)
    shown = call("predict", "m.sopool", "a.csv", last)
    if message is None:  # without a row there is nothing to be mixed up
        assert shown.code == 0
        assert len(shown.out.splitlines()) == 1 + 24
        return
    assert shown.code == 2
    assert message in said(shown)
    assert shown.out == ""


def test_a_pipe_among_files_is_read_once(tables, call, tmp_path):
    assert call("fit", "a.csv", "-o", "m.sopool", *FIT).code == 0
    os.mkfifo(tmp_path / "pipe.csv")
    writer = Thread(target=(tmp_path / "pipe.csv").write_text, args=("smiles,label\nCC,1\n",))
    writer.start()
    shown = call("predict", "m.sopool", "a.csv", "pipe.csv")
    writer.join()
    assert shown.code == 0, shown.err
    assert len(shown.out.splitlines()) == 1 + 24 + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smiles,activity\nCC,1\n", "c.csv: what is predicted is in 'activity', but in 'label' of a.csv"),
        ("", "c.csv: the file is empty"),
        ("smiles,remark\nCC,1\n", "c.csv: no column is called label, class, target, y or activity"),
    ],
)
def test_files_that_do_not_agree(text, message, tables, call, tmp_path):
    (tmp_path / "c.csv").write_text(text)
    shown = call("fit", "a.csv", "c.csv", "-o", "m.sopool", *FIT)
    assert shown.code == 2
    assert message in said(shown)


def test_bad_rows_name_their_file(tables, call):
    shown = call("fit", *tables, "-o", "m.sopool", *FIT, "--on-error", "raise")
    assert shown.code == 2
    assert "error: b.tsv, line 26: RDKit cannot parse" in said(shown)


def test_a_split_names_the_file_of_a_bad_row(tables, call, tmp_path):
    for name, year in (("a.csv", "2001"), ("c.csv", "soon")):
        (tmp_path / name).write_text("smiles,label,year\n" + f"CC,1,{year}\nCCC,0,{year}\n" * 4)
    shown = call("fit", "a.csv", "c.csv", "--split", "time:year", "-o", "m.sopool", *FIT)
    assert shown.code == 2
    assert "error: c.csv, line 2: the column 'year' holds 'soon'" in said(shown)


def test_sources_that_cannot_be_joined(tables, call, tmp_path):
    save_graphs(NAMED, tmp_path / "little.graphs")
    shown = call("fit", "a.csv", "little.graphs", "-o", "m.sopool", *FIT)
    assert shown.code == 2
    assert "the graphs of a.csv, little.graphs cannot be joined: some of the stores have" in said(shown)
    shown = call("fit", "a.csv", "-", "-o", "m.sopool", *FIT)
    assert "- is standard input, which only sopool predict" in said(shown)
    with pytest.raises(SettingError, match="given twice"):
        load([tmp_path / "a.csv", tmp_path / "a.csv"])
    with pytest.raises(SettingError, match="the list of sources is empty"):
        load([])
    with pytest.raises(DataError, match="no such file"):
        load([tmp_path / "a.csv", tmp_path / "none.csv"])


def test_no_source_is_written_over(tables, call, model, tmp_path):
    before = (tmp_path / "b.tsv").read_bytes()
    assert call("predict", model, *tables, "-o", "b.tsv", "--format", "csv").code == 2
    assert call("fit", *tables, "-o", "b.tsv").code == 2
    assert (tmp_path / "b.tsv").read_bytes() == before
