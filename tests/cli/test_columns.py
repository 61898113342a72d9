"""``sopool predict`` keeps what a table has, and a model remembers the columns it was trained on."""

import csv
import io
import json
import sys

import pytest

from sopool.estimator import load_model
from tests.cli.conftest import QUICK

pytest.importorskip("rdkit")

FIT = [*QUICK, "--folds", "0", "--pool", "sum"]
ROWS = [("C" * n, "even" if n % 2 else "odd", f"mol {n}") for n in range(1, 9)]
HEADER = "structure,outcome,remark"
PREDICTED = ["prediction", "probability_even", "probability_odd", "uncertainty", "in_training"]


def table(*rows, header=HEADER):
    return "\n".join([header, *(",".join(row) for row in rows)]) + "\n"


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A model of a table whose columns have unusual names."""
    from tests.cli.test_hostile_text import _run

    folder = tmp_path_factory.mktemp("columns")
    (folder / "train.csv").write_text(table(*ROWS))
    columns = ["--smiles-column", "structure", "--label-column", "outcome"]
    assert _run("fit", folder / "train.csv", "-o", folder / "m.sopool", *columns, *FIT) == 0
    return folder / "m.sopool"


@pytest.fixture
def predict(fitted, call, tmp_path):
    """Predict a text, and return what was printed and the rows."""

    def predicted(text, *options, name="new.csv", form="csv"):
        (tmp_path / name).write_text(text)
        shown = call("predict", fitted, name, "--format", form, *options)
        rows = csv.DictReader(io.StringIO(shown.out)) if form == "csv" else map(json.loads, shown.out.splitlines())
        return shown, list(rows)

    return predicted


def said(shown):
    return " ".join(shown.err.split())


def test_a_model_remembers_its_columns(fitted, predict):
    assert load_model(fitted).columns_ == ("structure", "outcome", ())
    shown, rows = predict(table(*ROWS[:5]))
    assert "of 5 predictions are correct" in said(shown)
    assert list(rows[0]) == ["row", *HEADER.split(","), *PREDICTED]
    assert [(row["structure"], row["outcome"], row["remark"]) for row in rows] == ROWS[:5]


def test_told_columns_win(predict):
    text = table(*((*row, "C" * 5, "odd") for row in ROWS), header=f"{HEADER},other,truth")
    shown, rows = predict(text, "--smiles-column", "other", "--label-column", "truth")
    assert len({row["probability_odd"] for row in rows}) == 1
    assert "of 8 predictions are correct" in said(shown)


def test_a_table_without_the_remembered_label_is_not_scored(predict):
    shown, rows = predict("structure,label\nCC,even\n")
    assert shown.code == 0
    assert len(rows) == 1
    assert "correct" not in said(shown)
    assert "classes" not in said(shown)


def test_a_table_without_the_remembered_smiles_may_have_a_usual_name_for_them(predict):
    shown, rows = predict("smiles,outcome\nCC,odd\nCCC,even\n")
    assert len(rows) == 2
    assert "of 2 predictions are correct" in said(shown)
    shown, _ = predict("molecule,outcome\nCC,odd\n")
    assert shown.code == 2
    known = "no column is called structure, smiles, canonical_smiles or smi. The model was trained on the column"
    assert f"new.csv: {known} 'structure'. Found: molecule, outcome. Give its name as --smiles-column" in said(shown)


def test_standard_input_with_remembered_columns_is_a_table(fitted, call, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table(*ROWS).encode())))
    shown = call("predict", fitted, "-")
    assert shown.out.startswith(f"row,{HEADER},prediction,")
    assert "of 8 predictions are correct" in said(shown)


def test_several_targets_are_found_again_as_far_as_they_are_there(call, tmp_path):
    rows = [("C" * n, f"{n}.5", str(n % 2)) for n in range(1, 13)]
    (tmp_path / "t.csv").write_text(table(*rows, header="smiles,mass,odd"))
    assert call("fit", "t.csv", "--target-columns", "mass,odd", "-o", "m.sopool", *FIT).code == 0
    assert load_model(tmp_path / "m.sopool").columns_ == ("smiles", None, ("mass", "odd"))
    shown = call("predict", "m.sopool", "t.csv")
    assert "Scores on the known values" in shown.err
    (tmp_path / "u.csv").write_text(table(*(row[:2] for row in rows), ("CCCO", "heavy"), header="smiles,MASS"))
    shown = call("predict", "m.sopool", "u.csv")
    assert shown.code == 0
    assert len(shown.out.splitlines()) == 1 + 13  # a value that is no number costs its score only
    assert "1 of 13 labels are not scored" in said(shown)
    assert "mass 12" in said(shown)
    assert "odd 0 - -" in said(shown)
    (tmp_path / "v.csv").write_text("smiles\nCC\n")
    shown = call("predict", "m.sopool", "v.csv")
    assert "not scored" not in shown.err


def test_explanations_remember_them_too(fitted, call, tmp_path):
    (tmp_path / "new.csv").write_text(table(*ROWS))
    shown = call("explain", fitted, "new.csv", "-g", "mol 3", "--id-column", "remark", "-o", "x.json")
    assert shown.code == 0, shown.err
    found = json.loads((tmp_path / "x.json").read_text())
    assert (found["row"], found["id"], found["label"]) == (4, "mol 3", "even")


def test_without_the_input_there_are_row_id_and_predictions(predict):
    _, rows = predict(table(*ROWS), "--drop-input")
    assert list(rows[0]) == ["row", "id", *PREDICTED]
    assert {row["id"] for row in rows} == {""}
    _, rows = predict(table(*ROWS), "--drop-input", "--id-column", "remark")
    assert [row["id"] for row in rows] == [row[2] for row in ROWS]
    shown, _ = predict(table(*ROWS), "--id-column", "remrak")
    assert shown.code == 2
    assert "there is no column 'remrak' (--id-column). Found: structure, outcome, remark. Did you mean" in said(shown)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_names_that_are_taken_get_a_prefix(form, predict):
    header = "structure,row,prediction,probability_odd,input_row,note,note"
    _, (row,) = predict(table(("CCO", "a", "b", "c", "d", "e", "f"), header=header), form=form)
    given = {name: row[name] for name in row if row[name] in list("abcdef")}
    taken = "input_probability_odd" if form == "csv" else "probability_odd"
    expected = ["input_row", "input_prediction", taken, "input_input_row", "note", "input_note"]
    assert given == dict(zip(expected, "abcdef", strict=True))


def test_predictions_of_predictions_keep_all(predict, call, fitted):
    predict(table(*ROWS), "-o", "once.csv")
    shown = call("predict", fitted, "once.csv")
    header = shown.out.splitlines()[0].split(",")
    assert header == ["row", "input_row", *HEADER.split(","), *(f"input_{name}" for name in PREDICTED), *PREDICTED]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_hostile_cells_come_back_as_they_were(form, predict):
    cells = ['=1+1,"quoted"', "two\nlines", "\x1b[2J[red]", "Ω漢", "", "'; --", "\u2028"]
    text = io.StringIO()
    csv.writer(text).writerows([["structure", "a,b", 'c"d'], *(["CC", cell, cell] for cell in cells)])
    shown, rows = predict(text.getvalue(), form=form)
    assert shown.code == 0, shown.err
    assert [(row["a,b"], row['c"d']) for row in rows] == [(cell.strip(), cell.strip()) for cell in cells]


def test_a_list_of_smiles_is_kept(predict):
    _, (one, other) = predict("CCO ethanol\nCC\n", name="new.smi")
    assert list(one) == ["row", "smiles", "id", *PREDICTED]
    assert (one["smiles"], one["id"], other["id"]) == ("CCO", "ethanol", "")


def test_properties_of_records_are_kept(predict):
    from rdkit import Chem

    text = ""
    for number, smiles in enumerate(["CCO", "CC", "C"]):
        block = Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)).partition("\n")[2]
        text += f"{number}th\n{block}> <outcome>\neven\n\n> <only {number}>\nline 1\nline 2\n\n$$$$\n"
    shown, rows = predict(text, name="new.sdf", form="jsonl")
    assert shown.code == 0, shown.err
    assert list(rows[0])[:6] == ["row", "id", "outcome", "only 0", "only 1", "only 2"]
    assert [row["id"] for row in rows] == ["0th", "1th", "2th"]
    assert [row["only 1"] for row in rows] == [None, "line 1\nline 2", None]
    assert "of 3 predictions are correct" in said(shown)
    shown, rows = predict(text, "--id-column", "outcome", name="new.sdf")
    assert list(rows[0])[:3] == ["row", "title", "outcome"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (f"{HEADER}\n", "there are no graphs to predict"),
        (f"{HEADER}\nC,,,,5\n", "the only row"),
    ],
)
def test_tables_without_molecules(text, message, predict):
    shown, rows = predict(text)
    assert (shown.code, rows) == (2, [])
    assert message in said(shown)


def test_other_sources_have_no_columns(model, graphs, call):
    shown = call("predict", model, graphs, "--id-column", "x")
    assert shown.code == 2
    assert "--id-column x was given, but this source has no columns" in said(shown)
    shown = call("predict", model, graphs)
    assert shown.out.startswith("row,id,prediction,")
