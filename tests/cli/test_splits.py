"""The options --split, --test, --fold-seed and --keep-copies-together."""

import json
import os
from threading import Thread

import pytest

from sopool import GraphClassifier
from sopool.data import load, save_graphs
from tests.cli.conftest import TINY

FIT = ["--epochs", "1", "--models", "1", "--hidden", "4", "--workers", "1", "--device", "cpu"]
RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccsc1", "C1CCNCC1", "c1ccoc1"]


@pytest.fixture
def table(tmp_path):
    """Molecules of six scaffolds, with columns to split by."""
    path = tmp_path / "molecules.csv"
    lines = ["smiles,label,lab,year,set,site"]
    for i in range(36):
        part = ("train", "train", "valid", "test")[i // 2 % 4]
        lines.append(f"{RINGS[i % 6]}{'C' * (1 + i // 6)},{i // 3 % 2},lab {i // 4},{1990 + i},{part},{i % 3 % 2}")
    path.write_text("\n".join(lines) + "\n")
    return path


def words(shown):
    assert shown.code == 0, shown.err
    return " ".join(shown.out.split())


@pytest.mark.parametrize(
    ("options", "title", "meaning"),
    [
        (["--split", "scaffold"], "2-fold cross-validation (scaffold split)", "molecules whose scaffolds are not"),
        (["--split", "group:lab"], "2-fold cross-validation (group:lab split)", "graphs with a new value of 'lab'."),
        (["--split", "time:year"], "2-fold cross-validation (time:year split)", "graphs that are later, by 'year'"),
        (["--split", "column:set"], "on one test set (column:set split)", "graphs such as those whose 'set' is test"),
        (["--keep-copies-together"], "2-fold cross-validation (copies split)", "graphs that are no copies of"),
        (["--fold-seed", "5"], "2-fold cross-validation, percent", "new graphs like the given ones"),
    ],
)
def test_fit_says_what_its_estimate_is_for(call, table, options, title, meaning):
    said = words(call("fit", table, "-o", "m.sopool", "--folds", "2", *FIT, *options))
    assert title in said
    assert f"expect similar accuracy on {meaning}" in said
    assert "Trained 1 network on all 36 graphs" in said


def test_the_model_is_not_trained_on_the_test_file(call, table, tmp_path):
    test = tmp_path / "later.csv"
    test.write_text("smiles,label\n" + "".join(f"c1ccccc1{'C' * (i + 1)}O,{i % 2}\n" for i in range(6)))
    shown = call("fit", table, "-o", "m.sopool", "--test", test, *FIT)
    said = words(shown)
    assert "among the training graphs" not in shown.err
    assert "molecules: 36 training graphs and 6 test graphs (later) of 2 classes." in said
    assert "classes, training 0: 18 (50.0 %) 1: 18 (50.0 %) classes, test 0: 3 (50.0 %) 1: 3 (50.0 %)" in said
    assert "Trained 1 network on all 36 graphs" in said
    assert "The estimate is for graphs such as those of later, which the saved model was not trained on." in said
    model = GraphClassifier.load(tmp_path / "m.sopool")
    assert model.was_trained_on(load(table))
    assert model.about_["estimate"]["split"] == "test:later"


@pytest.mark.filterwarnings("ignore:.*skipped")
@pytest.mark.parametrize(
    ("command", "count", "said"),
    [
        (["controls", "--controls", "majority"], 1, "1 of 3 test graphs is among the training graphs (line 4): "),
        (["evaluate", "--pool", "sum", *TINY], 5, "5 of 7 test graphs are among the training graphs (line 4, line 5, "),
        (["fit", "-o", "m.sopool", *FIT], 5, "(line 4, line 5, line 6, ...): scores on them are too good for new "),
    ],
)
def test_test_graphs_among_the_training_graphs_are_named(call, table, tmp_path, command, count, said):
    """Those of line 4 on, because line 3 cannot be read; also if they are written in another way."""
    shared = "".join(f"C{'C' * i}c1ccccc1,{i % 2}\n" for i in range(count))
    (tmp_path / "test.csv").write_text(f"smiles,label\nCCCO,0\nC(C,1\n{shared}CCO,1\n")
    shown = call(command[0], table, "--test", "test.csv", *command[1:])
    assert shown.code == 0, shown.err
    assert said in " ".join(shown.err.split())


@pytest.mark.parametrize("name", ["test.graphs", "pipe.csv"])
def test_test_graphs_without_lines_have_numbers(call, table, tmp_path, name):
    if name == "test.graphs":
        save_graphs(load(table)[3:6], tmp_path / name)
    else:
        os.mkfifo(tmp_path / name)
        lines = ["smiles,label", "CCO,0", *(f"{RINGS[0]}{'C' * n},{n % 2}" for n in (1, 2))]
        Thread(target=(tmp_path / name).write_text, args=("\n".join(lines),)).start()
    shown = call("controls", table, "--test", name, "--controls", "majority")
    assert shown.code == 0, shown.err
    graphs = "graph 0, graph 1, graph 2" if name == "test.graphs" else "graph 1, graph 2"
    assert f"among the training graphs ({graphs}): " in " ".join(shown.err.split())


def test_targets_of_training_and_test_graphs_are_counted_apart(call, tmp_path):
    for name, atoms in (("train.csv", range(1, 13)), ("test.csv", range(13, 18))):
        (tmp_path / name).write_text("smiles,y\n" + "".join(f"{'C' * i},{i}.5\n" for i in atoms))
    said = words(call("fit", "train.csv", "-o", "m.sopool", "--test", "test.csv", *FIT))
    assert "train: 12 training graphs and 5 test graphs (test). known values, training y: 12 known" in said
    assert "known values, test y: 5" in said


def test_evaluate_and_controls_have_the_same_split(call, table):
    options = ["--split", "group:lab", "--fold-seed", "2", "--runs", "runs", "--folds", "2"]
    shown = call("evaluate", table, "--pool", "sum,mean", *TINY, *options)
    assert "molecules (group:lab split)" in words(shown)
    assert "Split: group:lab, fold seed 2." in words(shown)
    (found,) = json.loads(call("controls", table, "--controls", "majority", *options, "--json").out)
    assert found["split"].startswith("group:lab ")
    assert found["split_seed"] == 2
    assert "Nothing to train" in words(call("evaluate", table, "--pool", "sum,mean", *TINY, *options))
    assert "molecules (group:lab split)" in words(call("runs", "list", "--runs", "runs"))


def test_fit_gives_an_estimate_for_each_split(call, table):
    said = words(call("fit", table, "-o", "m.sopool", "--folds", "2", *FIT, "--split", "random,scaffold,column:set"))
    for title in ("cross-validation, percent", "cross-validation (scaffold split)", "one test set (column:set split)"):
        assert title in said
    assert "expect similar accuracy on new graphs like the given ones." in said
    assert "The estimate by the scaffold split is for molecules whose scaffolds are not among those" in said
    assert GraphClassifier.load(table.parent / "m.sopool").about_["estimate"]["split"] == "random"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--split", "scaffolds"], "--split scaffolds is not a split: expected random, scaffold, group:COLUMN"),
        (["--split", "group:labs"], "there is no column 'labs' (--split group:labs)"),
        (["--split", "column:lab"], "line 2: the column 'lab' holds 'lab 0', expected train, valid or test"),
        (["--split", "time:lab"], "line 2: the column 'lab' holds 'lab 0', expected a number such as 2019"),
        (["--split", "group:site", "--folds", "2"], "leave no group to hold out: give at least 3 groups, because one"),
        (["--split", "group:site", "--folds", "3"], "2 groups cannot be divided into 3 folds: give at least 3 groups"),
        (["--split", "group:site", "--folds", "3"], "a column that holds train and test (--split column:COLUMN)"),
        (["--split", "group:lab", "--folds", "20"], "9 groups cannot be divided into 20 folds"),
        (["--split", "time:year", "--folds", "40"], "36 different times cannot be cut into the 41 periods"),
        (["--split", "time:year", "--keep-copies-together"], "copies cannot be kept together by the split time:year"),
        (["--split", "scaffold", "--test", "a.csv"], "--test a.csv and --split scaffold were both given"),
        (["--test", "a.csv", "--keep-copies-together"], "--test a.csv and --keep-copies-together were both given"),
        (["--test", "empty.csv"], "empty.csv: there are no molecules"),
        (["--test", "nothing.csv"], "nothing.csv: there is no such file"),
    ],
)
def test_what_cannot_be_done(call, table, tmp_path, options, message):
    (tmp_path / "empty.csv").write_text("smiles,label\n")
    for command in (["fit", table, "-o", "m.sopool", *FIT], ["evaluate", table, *TINY], ["controls", table]):
        given = options if "--folds" in options or command[0] != "fit" else [*options, "--folds", "2"]
        shown = call(*command, *given)
        assert shown.code != 0
        assert message in " ".join(shown.err.split())


def test_only_molecules_have_scaffolds_and_columns(call):
    shown = call("evaluate", "MUTAG", "--split", "scaffold", *TINY)
    assert shown.code != 0
    assert (
        "MUTAG: --split scaffold needs molecules in a table (.csv, .tsv, .smi, .parquet) or an .sdf file"
        in " ".join(shown.err.split())
    )


def test_a_file_of_graphs_keeps_its_split_unless_told_otherwise(call, table):
    save_graphs(load(table, split="scaffold"), table.parent / "m.graphs")
    assert "split" not in load(table.parent / "m.graphs", split="random").split_columns
    assert load(table.parent / "m.graphs", split="random").split_values is None
    said = words(call("fit", "m.graphs", "-o", "m.sopool", "--folds", "2", *FIT))
    assert "(scaffold split)" in said
