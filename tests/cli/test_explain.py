import json

import numpy as np
import pytest

from tests.helpers.little_classifier import LABELS, STORE, tiny


def test_a_page(model, graphs, call, tmp_path):
    shown = call("explain", model, graphs, "--graph", "2", "-o", "page.html")
    assert shown.code == 0
    assert "The exact explanation is in page.html" in " ".join(shown.err.split())
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Why graph 2 of graphs.jsonl is assigned to class" in page
    assert "The true class is" in page


def test_figures_for_the_graph_that_predict_names_the_same(model, graphs, call):
    shown = call("explain", model, graphs, "-g", "4", "--format", "json", "-o", "-")
    assert shown.code == 0
    found = json.loads(shown.out)
    rows = [json.loads(line) for line in call("predict", model, graphs, "--format", "jsonl").out.splitlines()]
    (row,) = [row for row in rows if row["row"] == 4]
    assert found["row"] == 4
    assert found["prediction"] == row["prediction"]
    assert found["probabilities"] == pytest.approx(list(row["probabilities"].values()), abs=1e-5)
    assert len(found["nodes"]) == int(STORE.sizes[3])
    np.testing.assert_allclose(np.sum(found["contributions"], 0) + found["bias"], found["scores"], atol=1e-10)


def test_the_name_of_the_file_says_what_to_write(model, call, tmp_path):
    assert call("explain", model, "MUTAG", "-g", "0", "-o", "found.json", "--pairs", "3").code == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert [len(pairs) for pairs in found["pairs"]] == [3, 3]
    assert found["data"] == "MUTAG"


@pytest.mark.parametrize(("ids", "known"), [("abcd", False), (["a", "b", "c", 3], True), (["3", "b", "c", "d"], True)])
def test_an_id_is_advised_only_where_it_is(ids, known, model, call, tmp_path):
    lines = [json.dumps({"nodes": 2, "edges": [[0, 1]], "id": one}) for one in ids]
    (tmp_path / "some.jsonl").write_text("\n".join(lines))
    said = " ".join(call("explain", model, "some.jsonl", "-g", "3", "--format", "json", "-o", "-").err.split())
    assert "using row 3, which has the id c." in said
    assert ("Use --graph id:3" in said) is known


@pytest.mark.parametrize(("wanted", "row"), [("2", 2), ("id:2", 1), ("3", 3), ("9", 1)])
def test_of_a_row_and_an_id_it_says_which_it_takes(wanted, row, model, call, tmp_path):
    ids = {"2": [2, 9, 1], "id:2": [2, 9, 1], "3": [2, 9, 3], "9": [9, 2, 1]}[wanted]
    (tmp_path / "some.jsonl").write_text("\n".join(f'{{"nodes": 2, "edges": [[0, 1]], "id": {one}}}' for one in ids))
    shown = call("explain", model, "some.jsonl", "-g", wanted, "--format", "json", "-o", "-")
    assert json.loads(shown.out)["row"] == row
    said = "using row 2, which has the id 9. Use --graph id:2 for the graph with the id 2."
    assert (said in " ".join(shown.err.split())) is (wanted == "2")
    assert ("using row" in shown.err) is (wanted == "2")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["MODEL", "MUTAG", "-g", "188"], "there is no graph 188: MUTAG has 188 graphs"),
        (["MODEL", "GRAPHS", "-g", "99"], "no graph is in row 99"),
        (["MODEL", "GRAPHS", "-g", "6"], "the graph has no nodes"),
        (["MODEL", "GRAPHS", "-g", "nobody"], "no graph has the id 'nobody'"),
        (["none.sopool", "MUTAG", "-g", "0"], "there is no such file. Expected a model"),
        (["MODEL", "none.jsonl", "-g", "0"], "no such file"),
        (["MODEL", "MUTAG", "-g", "0", "-o", "nowhere/page.html"], "the folder nowhere does not exist"),
        (["MODEL", "MUTAG", "-g", "0", "-o", "why.svg"], "must end in .html or .json"),
    ],
)
def test_what_it_cannot_do(given, message, model, graphs, call, tmp_path):
    places = {"MODEL": model, "GRAPHS": graphs}
    shown = call("explain", *[places.get(one, one) for one in given])
    assert shown.code == 2
    assert message in " ".join(shown.err.split())
    assert not (tmp_path / "explanation.html").exists()


def test_model_and_data_that_were_exchanged(model, graphs, call):
    for command in (["predict", graphs, model], ["explain", graphs, model, "-g", "1"]):
        said = " ".join(call(*command).err.split())
        assert "not a file written by sopool" in said
        assert "m.sopool is a model: give the model first, and then the data." in said
    assert "is a model" not in call("predict", graphs, "MUTAG").err


@pytest.mark.parametrize(("normalize", "exact"), [(None, False), ("size", True)])
def test_it_says_what_makes_an_explanation_of_pairs_exact(normalize, exact, graphs, call, tmp_path):
    options = {"rank": 2, "distances": 2} | ({} if normalize is None else {"normalize": normalize})
    tiny(pool="sopool-pairs", pool_options=options).fit(STORE, LABELS).save(tmp_path / "p.sopool")
    shown = call("explain", "p.sopool", graphs, "-g", "1")
    said = " ".join(shown.err.split())
    assert f"The {'exact' if exact else 'approximate'} explanation is in explanation.html." in said
    why = "It is approximate because of normalize=norm; models that are trained with --pool-options normalize=size have"
    assert (why in said) is not exact


def test_an_id_that_is_not_there_may_be_in_another_column(call, tmp_path):
    pytest.importorskip("rdkit")
    tiny().fit(["C", "CC", "CO", "CCO"], [0, 1, 0, 1]).save(tmp_path / "m.sopool")
    (tmp_path / "new.csv").write_text("smiles,code\nC,a\nCC,b\n")
    said = " ".join(call("explain", "m.sopool", "new.csv", "-g", "b").err.split())
    assert "rows 2 to 3 and have no ids. Ids are in a column named id or name, or --id-column names it." in said


def test_graphs_that_lack_what_the_model_looks_at(call, graphs, tmp_path):
    tiny().fit(STORE, LABELS).save(tmp_path / "labels.sopool")
    (tmp_path / "bare.jsonl").write_text('{"nodes": 2, "edges": [[0, 1]]}')
    shown = call("explain", tmp_path / "labels.sopool", "bare.jsonl", "-g", "1")
    assert shown.code == 2
    assert "the graph has no node_labels" in " ".join(shown.err.split())
