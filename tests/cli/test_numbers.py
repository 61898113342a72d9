"""Numbers and several labels on the command line: found, said, estimated, predicted, explained and exported."""

import csv
import json

import numpy as np
import pytest

from sopool import GraphClassifier, GraphRegressor
from sopool.data.formats.jsonl import write_jsonl
from tests.cli.conftest import QUICK
from tests.helpers.little_classifier import STORE
from tests.helpers.little_targets import NUMBERS, SOME, SOME_FLAGS, with_targets

FULL = [g for g in range(40) if STORE.sizes[g]]


@pytest.fixture(autouse=True)
def files(tmp_path):
    for name, values in (("two", SOME), ("one", NUMBERS[:, :1]), ("flags", SOME_FLAGS)):
        graphs = with_targets(values, [f"{name} {t}" for t in range(values.shape[1])])
        write_jsonl(graphs, tmp_path / f"{name}.jsonl")


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("name", "task", "shown"),
    [
        ("one", "Task: regression of 1 target: target.", "RMSE of predicting the mean of the training graphs"),
        (
            "two",
            "Task: regression of 2 targets: target 1, target 2.",
            "the average for always predicting the mean of the training graphs",
        ),
        (
            "flags",
            "Task: multi-label classification of 2 labels: target 1, target 2.",
            "the average for always predicting the share of each label",
        ),
    ],
)
def test_the_task_is_found_from_the_values_and_said(name, task, shown, call, tmp_path):
    done = call("fit", f"{name}.jsonl", "-o", "m.sopool", *QUICK, "--pool", "sum")
    assert done.code == 0, done.err
    assert task in words(done.out)
    assert shown in words(done.out)
    metric = "ROC-AUC" if name == "flags" else "RMSE"
    assert f"fold 2 of 2: {metric}" in done.err
    assert f"held-out {metric}" in done.err
    kind = GraphClassifier if name == "flags" else GraphRegressor
    kept = kind.load(tmp_path / "m.sopool").about_["estimate"]
    assert kept["folds"] == 2
    assert kept["scores"][kept["metric"]]["std"] >= 0


def test_graphs_without_any_target_are_left_out_and_counted(call, tmp_path):
    missing = int(np.isnan(SOME).all(1).sum())
    done = call("fit", "two.jsonl", "-o", "m.sopool", *QUICK, "--folds", "0")
    assert f"{missing} graphs without any known target are left out" in done.err
    assert GraphRegressor.load(tmp_path / "m.sopool").trained_on_["graphs"] == 40 - missing


def test_columns_of_a_table_are_targets(call, tmp_path):
    pytest.importorskip("rdkit")
    rows = [f"{'C' * (i % 9 + 1)},{i % 9 + 0.5},{i % 2 if i % 5 else ''},{i % 3 == 0}" for i in range(30)]
    (tmp_path / "m.csv").write_text("smiles,size,odd,third\n" + "\n".join(rows))
    done = call("fit", "m.csv", "--target-columns", "odd,third", "-o", "m.sopool", *QUICK, "--metrics", "roc_auc,mcc")
    assert done.code == 0, done.err
    assert "Task: multi-label classification of 2 labels: odd, third." in done.out
    assert "odd: 24 third: 30" in words(done.out)
    assert "MCC" in done.out
    assert "average precision" not in done.out
    found = call("predict", "m.sopool", "m.csv", "--target-columns", "third,odd", "-o", "out.csv")
    assert "Scores on the known values" in found.err
    assert "30 of 30 labelled graphs were in the training data: scores on them are too good" in words(found.err)
    header = (
        "predicted_odd,predicted_third,probability_odd,probability_third,uncertainty_odd,uncertainty_third,in_training"
    )
    header = f"row,smiles,size,odd,third,{header}"
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == header
    one = ["--label-column", "size", "--loss", "huber", "--metric", "r2", "--pool", "sum,mean"]
    done = call("fit", "m.csv", *one, "-o", "one.sopool", *QUICK)
    assert done.code == 0, done.err
    model = GraphRegressor.load(tmp_path / "one.sopool")
    assert (model.loss, model.objective_.metric, model.target_names_) == ("huber", "r2", ["size"])
    assert "Selected: pool" in done.out
    found = call("predict", "one.sopool", "m.csv", "-o", "out.csv")
    assert "on 30 known values" in words(found.err)
    assert "RMSE" in found.err
    assert "scored as targets" not in found.err
    found = call("predict", "one.sopool", "m.csv", "--target-columns", "odd", "-o", "out.csv")
    assert "note: scored as targets of the model: odd as size." in words(found.err)


def test_whole_numbers_are_classes_unless_the_task_says_otherwise(call, tmp_path):
    lines = [{"nodes": 2 + i % 7, "edges": [[0, 1]], "label": i % 7} for i in range(30)]
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, lines)))
    quick = [*QUICK, "--folds", "0"]
    assert "Task: classification." in call("fit", "g.jsonl", "-o", "m.sopool", *quick).out
    done = call("fit", "g.jsonl", "-o", "m.sopool", *quick, "--task", "regression")
    assert "Task: regression of 1 target: target." in done.out
    assert GraphRegressor.load(tmp_path / "m.sopool").target_names_ == ["target"]
    lines = [line | {"label": line["label"] % 2} for line in lines]
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = call("fit", "g.jsonl", "-o", "m.sopool", *quick, "--task", "multi-label")
    assert "Task: multi-label classification of 1 label: target." in done.out


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("name", ["one", "two"])
def test_predictions_are_those_of_the_model(name, form, call, tmp_path):
    assert call("fit", f"{name}.jsonl", "-o", "m.sopool", *QUICK, "--folds", "0").code == 0
    done = call("predict", "m.sopool", f"{name}.jsonl", "-o", f"out.{form}", "--device", "cpu")
    assert done.code == 0
    model = GraphRegressor.load(tmp_path / "m.sopool")
    expected = model.predict_with_uncertainty(STORE[FULL])
    values, spread = (one.reshape(len(FULL), -1) for one in expected)
    text = (tmp_path / f"out.{form}").read_text()
    rows = (
        list(csv.DictReader(text.splitlines())) if form == "csv" else [json.loads(line) for line in text.splitlines()]
    )
    assert [int(row["row"]) for row in rows] == [g + 1 for g in FULL]
    for number, row in enumerate(rows):
        if name == "one":
            found, disagree = [row["prediction"]], [row["uncertainty"]]
        elif form == "csv":
            found, disagree = ([row[f"{what}_target {t}"] for t in (1, 2)] for what in ("predicted", "uncertainty"))
        else:
            found, disagree = (list(row[what].values()) for what in ("predictions", "uncertainty"))
        assert list(map(float, found)) == pytest.approx(values[number].tolist(), rel=1e-5)
        assert list(map(float, disagree)) == pytest.approx(spread[number].tolist(), rel=1e-3, abs=1e-3)
    scores = model.scores(STORE[FULL], (NUMBERS[:, 0] if name == "one" else SOME)[FULL])
    if name == "one":
        assert f"R2 {scores['r2']:.3f}"[:6] in words(done.err)
        assert f"on {len(FULL)} known values" in words(done.err)
    else:
        assert "Scores on the known values" in done.err
        assert "average" in done.err


def test_values_that_are_none_of_the_targets_are_told(call, tmp_path):
    assert call("fit", "flags.jsonl", "-o", "m.sopool", *QUICK, "--folds", "0").code == 0
    labels = [[1, 0], [0.5, 1], [1], "toxic", [None, None], None]
    lines = [{"nodes": 2, "edges": [[0, 1]], "label": label} for label in labels]
    for line in lines:
        line |= {"node_labels": [0, 1], "node_attributes": [[0.5, 1.0], [1.5, 2.0]]}
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = call("predict", "m.sopool", "g.jsonl", "-o", "out.csv")
    said = words(done.err)
    assert done.code == 0
    assert "Expected for each graph 2 values, each 0 or 1 or missing" in said
    assert "'toxic'" in said
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 7


def test_one_target_is_explained(call, tmp_path):
    assert call("fit", "two.jsonl", "-o", "m.sopool", *QUICK, "--folds", "0").code == 0
    done = call("explain", "m.sopool", "two.jsonl", "-g", "2", "--target", "target 2", "-o", "page.html")
    assert done.code == 0, done.err
    assert "predicted target 2" in done.err
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Why graph 2 of two.jsonl has a predicted target 2 of" in page
    assert ("The true value of target 2 is" in page) == (not np.isnan(SOME[1, 1]))
    done = call("explain", "m.sopool", "two.jsonl", "-g", "2", "--format", "json", "-o", "-")
    found = json.loads(done.out)
    assert found["target"] == "target 1"
    parts = found["decomposition"]
    assert parts["bias"] + sum(parts["nodes"]) == pytest.approx(found["prediction"], rel=1e-9)
    done = call("explain", "m.sopool", "two.jsonl", "-g", "2", "--target", "mass")
    assert done.code == 2
    assert "there is no target 'mass'" in done.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["one.jsonl", "--class-weight", "balanced"], "--class-weight balanced is for classes, but the task is regr"),
        (["flags.jsonl", "--loss", "huber"], "--loss huber is for regression, but the task is multi-label"),
        (["one.jsonl", "--task", "classification"], "has targets and no classes, so the task cannot be classification"),
        (["one.jsonl", "--task", "multi-label"], "has targets other than 0 and 1, so the task cannot be multi-label"),
        (["one.jsonl", "--metric", "accuracy"], "there is no metric 'accuracy'. Known: mae, rmse, r2, spearman."),
        (["one.jsonl", "--metrics", "mae,auc"], "there is no metric 'auc'"),
        (["same.jsonl"], "nothing to learn of the target 'target 2': all 3 known values are 1"),
        (["none.jsonl"], "the target 'target 2' has no value in any graph"),
        (["few.jsonl"], "3 graphs cannot be divided into 5 folds: use fewer folds"),
        (["MUTAG", "--target-columns", "a"], "a"),
    ],
)
def test_what_fit_cannot_do(given, message, call, tmp_path):
    for name, labels in {
        "same": [[0.5, 1], [1, 1], [2, 1]],
        "none": [[0.5, None], [1, None], [2, None]],
        "few": [[0.5, 1], [1, 2], [2, 3]],
    }.items():
        lines = [{"nodes": 2, "edges": [[0, 1]], "label": label} for label in labels]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    shown = call("fit", *given, "-o", "m.sopool", "--device", "cpu", "--workers", "1")
    assert shown.code == 2
    assert message in words(shown.err)
    assert not (tmp_path / "m.sopool").exists()


def test_columns_for_another_kind_of_model_are_refused(model, call):
    call("fit", "two.jsonl", "-o", "m.sopool", *QUICK, "--folds", "0")
    for given, message in (
        ([model, "MUTAG", "--target-columns", "a"], "the model predicts one class, so use --label-column"),
        (
            ["m.sopool", "two.jsonl", "--target-columns", "a"],
            "1 column, but the model predicts 2 targets: target 1, target 2. Name one column",
        ),
    ):
        shown = call("predict", *given)
        assert shown.code == 2
        assert message in words(shown.err)
    shown = call("explain", model, "MUTAG", "-g", "1", "--target", "a")
    assert "the model predicts one class, which is explained without it" in words(shown.err)
