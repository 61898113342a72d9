"""``sopool fit --system``: the network of a system as a model, and what other commands do with it."""

import json
import re
from dataclasses import replace

import pytest

from sopool.estimator import load_model
from sopool.experiments.systems import SYSTEMS
from tests.cli.conftest import QUICK

FIT = ["-o", "m.sopool", *QUICK]


def words(text):
    return " ".join(text.split())


@pytest.fixture
def fitted(call, graphs):
    shown = call("fit", graphs, *FIT, "--system", "dgcnn", "--system-options", "k=11")
    assert shown.code == 0, shown.err
    assert "Trained 2 networks on all 40 graphs" in words(shown.out)
    return graphs


def test_other_commands_take_the_model(fitted, call, tmp_path):
    shown = words(call("show", "m.sopool").out)
    assert "system dgcnn (k=11), width 32" in shown
    assert "batch size 50 " in shown
    assert "lr 0.001 " in shown
    assert "pooling" not in shown
    facts = json.loads(call("show", "m.sopool", "--json").out)
    assert facts["network"]["system_options"] == {"k": 11}
    assert facts["estimate"]["folds"] == 2
    assert call("predict", "m.sopool", fitted, "-o", "p.jsonl").code == 0
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 39  # one has no nodes
    shown = call("explain", "m.sopool", fitted, "--graph", "3", "-o", "e.json")
    assert "The approximate explanation is in e.json" in shown.err
    assert json.loads((tmp_path / "e.json").read_text())["pool"] == "dgcnn"
    pytest.importorskip("jinja2")
    call("explain", "m.sopool", fitted, "--graph", "3", "-o", "e.html")
    page = (tmp_path / "e.html").read_text()
    assert "The model is m.sopool: dgcnn." in page
    assert "Approximate." in page
    pytest.importorskip("onnxscript")
    shown = call("export", "m.sopool", "-o", "m.onnx")
    assert shown.code != 0
    assert "system='dgcnn' cannot be exported" in shown.err


def test_its_config_file_repeats_it(fitted, call, tmp_path):
    assert call("config", "m.sopool", "-o", "again.toml").code == 0
    first = load_model(tmp_path / "m.sopool")
    shown = call("--config", "again.toml", "fit")
    assert shown.code == 0, shown.err
    again = load_model(tmp_path / "m.sopool")
    assert again.get_params() == first.get_params()
    assert again.history_["loss"].tolist() == first.history_["loss"].tolist()


def test_settings_are_searched_where_one_asks_for_it(call, graphs, tmp_path):
    given = ["--system", "dgcnn", "--search", "--folds", "0", "--models", "1"]
    shown = call("fit", graphs, *FIT, *given)
    assert "7/7 networks" in shown.err  # two settings in three inner folds, and the model
    model = load_model(tmp_path / "m.sopool")
    assert model.lr in (0.001, 0.0001)
    assert f"Selected: lr {model.lr}." in words(shown.out)
    shown = call("fit", graphs, *FIT, *given, "--lr", "0.02")
    assert "Selected" not in shown.out
    assert load_model(tmp_path / "m.sopool").lr == 0.02


def test_options_of_a_network_are_searched_too(call, graphs, tmp_path):
    given = ["--system", "patchy-san", "--search", "--batch-size", "16", "--folds", "0", "--models", "1"]
    shown = call("fit", graphs, *FIT, *given)
    assert "7/7 networks" in shown.err  # k is 10 or 5
    k = load_model(tmp_path / "m.sopool").config_.system_options["k"]
    assert f"Selected: k {k}." in words(shown.out)
    shown = words(call("show", "m.sopool").out)
    assert "selected from k 10, 5" in shown
    assert "optimizer rmsprop" in shown


def test_its_recipe_says_how_long(call, graphs, monkeypatch, tmp_path):
    own = SYSTEMS["dgcnn"]
    monkeypatch.setitem(SYSTEMS, "dgcnn", replace(own, recipe=replace(own.recipe, epochs=3)))
    given = ["--models", "1", "--folds", "2", "--workers", "1", "--device", "cpu", "--system", "dgcnn"]
    shown = call("fit", graphs, "-o", "m.sopool", *given)
    assert "9/9 model-epochs" in shown.err
    assert load_model(tmp_path / "m.sopool").about_["training"]["epochs"] == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--system", "wl"], "--system wl: this is a fixed system, .* sopool evaluate .* --system wl"),
        (["--system", "dgcn"], "no trained system 'dgcn' .*Did you mean 'dgcnn'"),
        (["--system", "dgcnn", "--pool", "sum"], "--pool is for networks with a pooling, but --system dgcnn is"),
        (["--system", "dgcnn", "--pool", "sopool-bimap"], "--pool is for networks with a pooling"),
        (["--system", "dgcnn", "--gnn", "gcn"], "--gnn is for networks with a pooling"),
        (["--system", "dgcnn", "--layers", "2"], "--layers is for networks with a pooling"),
        (["--system", "dgcnn", "--pool-options", "k=3"], "--pool-options is for networks with a pooling"),
        (["--system", "dgcnn", "--system-options", "q=3"], "dgcnn cannot be made with .*q=3"),
        (["--system", "dgcnn", "--system-options", "k=none"], "dgcnn cannot be made with k=None: give a number"),
        (["--system-options", "k=3"], "--system-options is for the network of a system"),
        (["--search"], "--search is for the network of a system"),
    ],
)
def test_what_it_cannot_do(given, message, call, graphs, tmp_path):
    shown = call("fit", graphs, *FIT, *given)
    assert shown.code == 2
    assert re.search(message, words(shown.err)), shown.err
    assert not (tmp_path / "m.sopool").exists()
