"""``sopool show``: what a model is, for people and for programs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load as arrays_of

from sopool._files.sealed import read_header, seal
from sopool.data.features.encoders import default_encoder
from tests.cli.conftest import QUICK
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import FLAGS, NUMBERS, tiny_regressor
from tests.helpers.training_graphs import rich_store

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").rglob("*.sopool"))


def words(text):
    return " ".join(text.split())


def test_it_shows_what_fit_was_told(call, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("structure,toxic\n" + "C,no\nCCO,yes\nCC,no\n" * 6)
    columns = ["--smiles-column", "structure", "--label-column", "toxic", "--features", "charge", "--gnn", "gine"]
    assert call("fit", "m.csv", "-o", "m.sopool", *columns, *QUICK, "--pool", "sum").code == 0
    shown = call("show", "m.sopool")
    assert shown.code == 0, shown.err
    for said in (
        "task classification, one of several classes",
        "classes no: 12 (66.7 %), yes: 6 (33.3 %)",
        "graphs 18",
        "SMILES column structure",
        "label column toxic",
        "nodes 2 node labels, categories: 'charge'",
        "edges 1 edge labels",
        "layers 4 of gine, width 32",
        "ensemble 2 with",
        "by 2-fold cross-validation",
        "split random",
        "for new graphs like the given ones",
        "baseline 66.7 % accuracy, always predicting the most frequent class",
    ):
        assert said in words(shown.out)
    facts = json.loads(call("show", "m.sopool", "--json").out)
    assert facts["model"] == "m.sopool"
    assert facts["classes"] == [{"name": "no", "graphs": 12}, {"name": "yes", "graphs": 6}]
    assert facts["columns"] == {"smiles": "structure", "label": "toxic", "targets": []}
    assert facts["settings"]["epochs"] == 1
    assert facts["estimate"]["folds"] == 2
    assert facts["estimate"]["baseline"]["accuracy"] == pytest.approx(2 / 3)
    shown = call("show", "m.sopool", "--card", "card.md")
    assert "the model card is in card.md" in shown.err
    card = (tmp_path / "card.md").read_text()
    assert card.startswith(
        "# m.sopool\n\nThis model of sopool predicts one of several classes for each graph.\n\n## What"
    )
    assert "| classes | no: 12 (66.7 %), yes: 6 (33.3 %) |\n" in card
    assert "- The estimate is for new graphs like the given ones.\n" in card


def test_the_values_that_a_search_chose_from_are_shown(call, tmp_path):
    grid = ["--pool", "sum,mean", "--lr", "0.01,0.02", "--hidden", "3"]
    assert call("fit", "MUTAG", "-o", "m.sopool", *QUICK, "--folds", "0", "--models", "1", *grid).code == 0
    assert "selected from pool sum, mean; lr 0.01, 0.02" in words(call("show", "m.sopool", "--card", "card.md").out)
    assert "| selected from | pool sum, mean; lr 0.01, 0.02 |\n" in (tmp_path / "card.md").read_text()
    facts = json.loads(call("show", "m.sopool", "--json").out)
    assert facts["searched"] == {"pool": ["sum", "mean"], "lr": [0.01, 0.02]}


@pytest.mark.parametrize(
    ("make", "y", "said"),
    [
        (tiny_regressor, NUMBERS, ["regression, numbers", "targets target 1: 40, target 2: 40", "chosen by RMSE"]),
        (
            tiny,
            FLAGS,
            ["multi-label, several labels", "targets target 1:", "chosen by ROC-AUC", "scores not estimated"],
        ),
    ],
)
def test_models_of_targets(make, y, said, call, tmp_path):
    make().fit(STORE, y).save(tmp_path / "m.sopool")
    shown = call("show", "m.sopool", "--card", "m.md")
    assert all(one in words(shown.out) for one in said)
    assert "was not estimated" in (tmp_path / "m.md").read_text()


def test_everything_that_a_model_uses_is_shown(call, tmp_path):
    store = replace(rich_store(graphs=40), labels=None, classes=())
    tiny(gnn="gine", pool="sum", encoder=default_encoder(store)).fit(store, LABELS).save(tmp_path / "m.sopool")
    shown = words(call("show", "m.sopool").out)
    assert "nodes 3 node labels, categories: 'charge', 'ring', 2 attributes" in shown
    assert "edges 3 edge labels, categories: 'charge', 'ring', 2 attributes, weights" in shown
    assert "graphs 2 numbers: heat, pressure" in shown


def test_the_temperature_of_calibrated_probabilities_is_shown(call, tmp_path):
    model = tiny().fit(STORE, LABELS)
    model.temperature_ = 1.25
    model.save(tmp_path / "m.sopool")
    assert "calibration probabilities have the temperature 1.25" in words(call("show", "m.sopool").out)
    assert json.loads(call("show", "m.sopool", "--json").out)["network"]["temperature"] == 1.25


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_models_of_earlier_versions(path, call):
    shown = call("show", path)
    assert shown.code == 0, shown.err
    assert "ensemble" in shown.out
    facts = json.loads(call("show", path, "--json").out)
    assert facts["data"]["graphs"] > 0
    assert facts["columns"] == {"smiles": None, "label": None, "targets": []}


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"estimate": 1}, "about.estimate is 1, expected an object"),
        (
            {"estimate": {"folds": 2, "scores": {}, "split": "odd"}},
            "about.estimate.split is 'odd', which is not a split",
        ),
        (
            {"estimate": {"folds": 2, "scores": {"accuracy": {"mean": "1"}}}},
            "about.estimate.scores.accuracy.mean is '1'",
        ),
        ({"environment": {"sopool": []}}, "about.environment.sopool is []"),
        ({"searched": {"lr": 1}}, "about.searched.lr is 1, expected a list"),
        ({"data": {"graphs": 1, "graphs_of_class": [1, 2, 3]}}, "about.data has 3 counts of graphs for 2 classes"),
    ],
)
def test_a_forged_file(about, said, model, call, tmp_path):
    header = read_header(model.read_bytes())
    facts = json.loads(header["facts"])
    facts["about"] |= about
    content = seal(arrays_of(model.read_bytes()), header | {"facts": json.dumps(facts)})
    (tmp_path / "forged.sopool").write_bytes(content)
    shown = call("show", "forged.sopool")
    assert shown.code == 2
    assert f"forged.sopool: {said}" in words(shown.err)


def test_a_card_does_not_replace_the_model(model, call):
    before = model.read_bytes()
    shown = call("show", model, "--card", model)
    assert shown.code == 2
    assert "the same file" in shown.err
    assert model.read_bytes() == before
    assert call("show", "none.sopool").code == 2
