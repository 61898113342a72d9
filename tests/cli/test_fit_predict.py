import csv
import json
import sys
from dataclasses import replace
from io import BytesIO, TextIOWrapper

import pytest

from sopool import GraphClassifier
from sopool.data import DegreeEncoder, Graph, concatenate, load, pack, save_graphs
from sopool.data.formats.jsonl import write_jsonl
from tests.cli.conftest import QUICK
from tests.helpers.little_classifier import LABELS, STORE, tiny


def read_csv(text):
    return list(csv.DictReader(text.splitlines()))


def test_fit_says_how_good_it_is_and_writes_a_model(call, tmp_path):
    shown = call("fit", "MUTAG", "-o", "mutag.sopool", *QUICK)
    assert shown.code == 0
    for words in ("2-fold cross-validation", "balanced accuracy", "ROC-AUC", "66.5", "188 graphs", "expect similar"):
        assert words in " ".join(shown.out.split())
    assert "fold 2 of 2: accuracy" in shown.err
    for line in ("33 %: 2/6 model-epochs, 0/6 networks", "100 %: 6/6 model-epochs, 6/6 networks"):
        assert line in shown.err
    assert ", 1 of 2 folds\n" in shown.err
    assert shown.err.endswith(", final model\n")
    kept = GraphClassifier.load(tmp_path / "mutag.sopool")
    assert kept.about_["estimate"]["folds"] == 2
    assert 0 <= kept.about_["estimate"]["scores"]["accuracy"]["mean"] <= 1
    assert kept.n_models == 2
    again = call("predict", "mutag.sopool", "MUTAG", "-o", "-")
    rows = read_csv(again.out)
    assert len(rows) == 188
    assert {row["prediction"] for row in rows} <= {"-1", "1"}
    assert "of 188 predictions are correct" in again.err


@pytest.mark.parametrize("name", ["own.graphs", "own.jsonl"])
def test_graphs_that_the_model_was_trained_on_are_no_test_of_it(name, call, tmp_path):
    own = load("MUTAG")
    save = save_graphs if name.endswith(".graphs") else write_jsonl
    save(own, tmp_path / name)
    assert call("fit", name, "-o", "m.sopool", *QUICK, "--folds", "0").code == 0
    some, others = own[:100], replace(own[50:], labels=None, classes=())
    extended = concatenate([own[:60], replace(cycles(), classes=own.classes)])
    for store, told in (
        (own, "warning: 188 of 188 labelled graphs were in the training data: scores on them are too good"),
        (some, "warning: 100 of 100 labelled graphs were"),
        (replace(some, labels=some.labels.flip(0)), "warning: 100 of 100 labelled graphs were"),
        (others, "note: 138 of 138 graphs were in the training data."),
        (extended, "warning: 60 of 65 labelled graphs were"),
        (cycles(), None),
    ):
        save(store, tmp_path / f"other-{name}")
        shown = call("predict", "m.sopool", f"other-{name}", "-o", "out.csv")
        assert shown.code == 0
        said = " ".join(shown.err.split())
        assert "in the training data" not in said if told is None else told in said


def cycles():
    """Graphs of seven to eleven atoms that MUTAG does not have, with its labels."""
    sizes = range(7, 12)
    edges = [[(i, (i + step) % n) for i in range(n) for step in (1, -1)] for n in sizes]
    graphs = [
        Graph(n, own, n % 2, node_labels=["C"] * n, edge_labels=["single"] * 2 * n)
        for n, own in zip(sizes, edges, strict=True)
    ]
    return pack(graphs, "cycles")


def test_rows_say_whether_the_model_was_trained_on_them(model, graphs, call, tmp_path):
    lines = graphs.read_text().splitlines()[:2]
    larger = json.loads(lines[0])
    larger["nodes"] += 1  # a node more
    larger["node_labels"].append(larger["node_labels"][0])
    larger["node_attributes"].append(larger["node_attributes"][0])
    lines.append(json.dumps(larger))
    (tmp_path / "some.jsonl").write_text("\n".join(lines))
    rows = [json.loads(line) for line in call("predict", model, "some.jsonl", "--format", "jsonl").out.splitlines()]
    assert [row["in_training"] for row in rows] == [True, True, False]
    older = GraphClassifier.load(model)
    older.seen_graphs_ = None  # as in files of earlier versions
    older.save(tmp_path / "older.sopool")
    shown = call("predict", "older.sopool", "some.jsonl")
    assert shown.out.startswith("row,id,prediction,probability_even,probability_odd,uncertainty\n")


@pytest.mark.filterwarnings("ignore:.*skipped")
def test_a_row_without_a_label_does_not_hide_that_the_model_was_trained_on_the_file(call, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,label\n" + "C,no\nCCO,yes\n" * 4 + "CCO,\n")
    assert call("fit", "m.csv", "-o", "m.sopool", *QUICK, "--folds", "0").code == 0
    said = " ".join(call("predict", "m.sopool", "m.csv").err.split())
    assert "of 8 predictions are correct" in said
    assert "8 of 8 labelled graphs were in the training data" in said


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("to_file", [True, False])
def test_predictions_are_those_of_the_model(model, graphs, form, to_file, call, tmp_path):
    given = ["-o", f"out.{form}"] if to_file else ["--format", form]
    shown = call("predict", model, graphs, *given, "--device", "cpu")
    assert shown.code == 0
    text = (tmp_path / f"out.{form}").read_text() if to_file else shown.out
    rows = read_csv(text) if form == "csv" else [json.loads(line) for line in text.splitlines()]
    full = [g for g in range(40) if STORE.sizes[g]]
    expected = GraphClassifier.load(model).predict_with_uncertainty(STORE[full])
    assert [int(row["row"]) for row in rows] == [g + 1 for g in full]
    assert [row["prediction"] for row in rows] == expected.labels.tolist()
    for row, shares, spread in zip(rows, expected.probabilities, expected.uncertainty, strict=True):
        found = (
            [row[f"probability_{name}"] for name in ("even", "odd")] if form == "csv" else row["probabilities"].values()
        )
        assert list(map(float, found)) == pytest.approx(shares.tolist(), abs=1e-5)
        assert float(row["uncertainty"]) == pytest.approx(spread, abs=1e-5)
    assert "line 6: the graph has no nodes" in shown.err
    assert "1 row skipped" in shown.err


def test_graphs_of_a_data_set_that_have_no_nodes_are_left_out(model, call, tmp_path):
    (tmp_path / "DS").mkdir()
    for part, text in (("A", "1, 2\n2, 1\n"), ("graph_indicator", "1\n1\n3\n"), ("graph_labels", "0\n1\n0\n")):
        (tmp_path / "DS" / f"DS_{part}.txt").write_text(text)
    shown = call("predict", model, "DS", "--format", "jsonl")
    assert shown.code == 0, shown.err
    assert [json.loads(line)["row"] for line in shown.out.splitlines()] == [0, 2]
    assert "DS: graph 1: the graph has no nodes. Found '0 nodes'." in shown.err
    assert "1 row skipped" in shown.err


def test_the_standard_input_is_read(model, call, monkeypatch):
    lines = ['{"nodes": 2, "edges": [[0, 1]], "id": "first", "label": "odd"}', "what?"]
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO("\n".join(lines).encode())))
    shown = call("predict", model, "-", "--format", "jsonl")
    assert shown.code == 0
    assert json.loads(shown.out)["id"] == "first"
    assert "standard input, line 2: not JSON" in shown.err
    assert "of 1 predictions" in shown.err


def test_labels_that_are_no_classes_of_the_model_are_told(model, call, tmp_path):
    (tmp_path / "g.jsonl").write_text('{"nodes": 2, "edges": [[0, 1]], "label": "toxic"}\n' * 2)
    shown = call("predict", model, "g.jsonl")
    said = " ".join(shown.err.split())
    assert "2 of 2 labels are not among the model's classes: 'toxic'; the classes are 'even', 'odd'." in said
    assert "No accuracy can be computed" in said
    assert "accuracy 0.0 %" not in said


def test_a_number_is_the_same_class_however_it_is_written(call, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,label\n" + "C,00\nCCO,01\n" * 4)
    assert call("fit", "m.csv", "-o", "m.sopool", *QUICK, "--folds", "0").code == 0
    (tmp_path / "pandas.csv").write_text("smiles,label\n" + "C,0.0\nCCO,1.0\n" * 4)
    for name in ("m.csv", "pandas.csv"):
        said = " ".join(call("predict", "m.sopool", name).err.split())
        assert "of 8 predictions are correct" in said
        assert "not among the model's classes" not in said
        assert "8 of 8 labelled graphs were in the training data" in said
    (tmp_path / "other.csv").write_text("smiles,label\n" + "C,no\nCCO,yes\n" * 4)
    said = call("predict", "m.sopool", "other.csv").err
    assert "No accuracy can be computed" in " ".join(said.split())
    assert "note: 8 of 8 graphs were in the training data. " in f"{' '.join(said.split())} "


def test_labels_of_which_some_are_no_classes_count_as_wrong(model, call, tmp_path):
    line = '{"nodes": 2, "edges": [[0, 1]], "label": "%s"}\n'
    (tmp_path / "g.jsonl").write_text(line % "even" + line % "odd" + "".join(line % f"toxic{i}" for i in range(30)))
    said = " ".join(call("predict", model, "g.jsonl").err.split())
    assert "30 of 32 labels are not among the model's classes: 'toxic0', 'toxic1'," in said
    assert "'toxic9', ...; the classes are 'even', 'odd'. They count as wrong" in said
    assert "accuracy 3.1 %: 1 of 32 predictions are correct" in said


def test_a_bad_row_is_fatal_if_asked(model, call, tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_text('{"nodes": 2, "edges": [[0, 1]]}\nwhat?\n')
    shown = call("predict", model, path, "-o", "out.csv", "--on-error", "raise")
    assert shown.code == 2
    assert "line 2: not JSON" in shown.err
    assert not (tmp_path / "out.csv").exists()


def test_a_graph_too_large_to_score_is_a_bad_row(call, tmp_path):
    rows = [{"nodes": 2, "edges": [[0, 1]], "node_attributes": [[i % 2], [i]], "label": "ab"[i % 2]} for i in range(12)]
    graphs = [Graph(2, node_attributes=row["node_attributes"]) for row in rows]
    tiny().fit(graphs, [row["label"] for row in rows]).save(tmp_path / "m.sopool")
    rows[1]["node_attributes"] = [[1e30], [3e38]]
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shown = call("predict", "m.sopool", "g.jsonl")
    said = " ".join(shown.err.split())
    assert shown.code == 0, shown.err
    assert "skipped: g.jsonl, line 2: the model's scores for it are not finite" in said
    assert "predicted 11 graphs, 1 row skipped," in said
    assert [line.split(",")[0] for line in shown.out.splitlines()[1:]] == [str(row) for row in (1, *range(3, 13))]
    assert "nan" not in shown.out
    fatal = call("predict", "m.sopool", "g.jsonl", "-o", "out.csv", "--on-error", "raise")
    assert fatal.code == 2
    assert not (tmp_path / "out.csv").exists()


def test_only_some_bad_rows_are_named(model, call, tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_text("what?\n" * 20)
    shown = call("predict", model, path)
    assert shown.code == 2
    assert shown.err.count("skipped: ") == 10
    assert "none of the 20 rows can be read" in shown.err


@pytest.mark.parametrize(
    ("text", "message"), [("what?\n" * 3, "none of the 3 rows can be read"), ("\n", "there are no graphs to")]
)
def test_without_a_prediction_no_file_is_written(model, call, tmp_path, text, message):
    (tmp_path / "g.jsonl").write_text(text)
    (tmp_path / "old.csv").write_text("what was there")
    for name in ("new.csv", "old.csv"):
        shown = call("predict", model, tmp_path / "g.jsonl", "-o", tmp_path / name)
        assert shown.code == 2
        assert f"g.jsonl: {message}" in " ".join(shown.err.split())
    assert not (tmp_path / "new.csv").exists()
    assert (tmp_path / "old.csv").read_text() == "what was there"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["none.sopool", "MUTAG"], "there is no such file. Expected a model"),
        (["MODEL", "none.jsonl"], "no such file"),
        (["MODEL", "MUTAG", "-o", "out.txt"], "must end in .csv, .jsonl or .parquet"),
        (["MODEL", "MUTAG", "-o", "nowhere/out.csv"], "the folder nowhere does not exist"),
        (["MODEL", "MUTAG", "--device", "cuda:99"], "no such GPU"),
    ],
)
def test_what_predict_cannot_do(given, message, model, call):
    shown = call("predict", *[model if one == "MODEL" else one for one in given])
    assert shown.code == 2
    assert message in " ".join(shown.err.split())


def test_a_value_that_no_training_graph_had_is_told(model, call, tmp_path):
    star = {"nodes": 60, "edges": [[0, i] for i in range(1, 60)]}
    (tmp_path / "g.jsonl").write_text(json.dumps(star))
    shown = call("predict", model, "g.jsonl")
    assert "1 of 60 nodes have a label, a category or a degree that no training graph has" in " ".join(
        shown.err.split()
    )


def test_a_model_that_uses_edge_labels_asks_for_them(call, tmp_path):
    tiny(gnn="gine", encoder=DegreeEncoder()).fit(STORE, LABELS).save(tmp_path / "m.sopool")
    chain = {"nodes": 3, "edges": [[0, 1], [1, 2]]}
    lines = [chain | {"edge_labels": [0, 2]}, chain | {"edge_labels": [0, 77]}, chain, {"nodes": 1, "edges": []}]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = call("predict", "m.sopool", "g.jsonl")
    said = " ".join(shown.err.split())
    assert [row["row"] for row in read_csv(shown.out)] == ["1", "2", "4"]
    assert "line 3: the graph has no edge_labels, but the graphs that the model was trained on have" in said
    assert "2 of 8 edges have a label or a category that no training graph has" in said


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("on_error", ["skip", "raise"])
def test_nothing_is_printed_where_nothing_is_predicted(form, on_error, call, model, tmp_path):
    (tmp_path / "bad.jsonl").write_text("what?\n")
    shown = call("predict", model, "bad.jsonl", "--format", form, "--on-error", on_error, "--device", "cpu")
    assert shown.code == 2
    assert shown.out == ""


def test_the_names_of_columns_come_once_and_first_after_bad_rows(call, model, graphs, tmp_path):
    (tmp_path / "some.jsonl").write_text("what?\n" * 5000 + graphs.read_text() + "what?\n" * 5000)
    shown = call("predict", model, "some.jsonl", "--device", "cpu")
    assert shown.code == 0
    assert shown.out.startswith("row,id,prediction,probability_even,probability_odd,uncertainty,in_training\n5001,")
    assert shown.out.count("row,id") == 1
    assert len(read_csv(shown.out)) == int((STORE.sizes > 0).sum())
