"""Files of earlier versions are read as before: see fixtures/README.md."""

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sopool import GraphClassifier
from sopool.cli import app
from sopool.data import load, load_graphs
from sopool.experiments.summary import summarise
from sopool.training.runs.store import RunStore

HERE = Path(__file__).parent / "fixtures"
FOLDERS = {"first": HERE, "2026-11": HERE / "2026-11"}
EXPECTED = {name: json.loads((folder / "model-predictions.json").read_text()) for name, folder in FOLDERS.items()}
FACTS = {name: json.loads((folder / "store.json").read_text()) for name, folder in FOLDERS.items()}

HISTORY = {"loss", "validation_loss", "validation_score"}
each_folder = pytest.mark.parametrize("folder", FOLDERS)


@pytest.fixture
def store(folder, tmp_path):
    with zipfile.ZipFile(FOLDERS[folder] / "store.zip") as archive:
        archive.extractall(tmp_path)
    return RunStore(tmp_path)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(autouse=True)
def no_other_data(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("SOPOOL_DATA", raising=False)
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path_factory.mktemp("cache")))


def call(command, runs):
    done = CliRunner().invoke(app, [*command.split(), "--runs", str(runs)])
    assert done.exit_code == 0, done.output


def kept(store):
    """What is in a store, byte for byte; but the tables, which are written again from the same runs.

    Earlier versions did not write down what they were asked for.
    """
    files = [path for path in store.folder.rglob("*") if path.suffix in (".json", ".safetensors")]
    files = [path for path in files if path.parent.name != "requests"]
    return {path: None if path.parent == store.folder else path.read_bytes() for path in files}


@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder, models in EXPECTED.items() for name in models])
def test_models_predict_as_they_did(folder, name, tmp_path):
    model = GraphClassifier.load(FOLDERS[folder] / f"model-{name}.sopool", device="cpu")
    graphs = load(model.trained_on_["name"])
    expected = EXPECTED[folder][name]
    known = [number for number, row in enumerate(expected) if row is not None]
    assert known
    # In float32, by whatever order of additions this processor has.
    found = model.predict_proba(graphs[: len(expected)])[known]
    np.testing.assert_allclose(found, [expected[number] for number in known], atol=1e-4)
    assert set(model.classes_) == set(graphs.classes)
    assert model.was_trained_on(graphs)
    assert model.history_.keys() == HISTORY
    model.save(tmp_path / "again.sopool")  # as this version writes it
    again = GraphClassifier.load(tmp_path / "again.sopool", device="cpu")
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    np.testing.assert_array_equal(again.history_["validation_score"], model.history_["validation_score"])


def test_what_is_no_longer_written_is_read():
    model = GraphClassifier.load(HERE / "model-flat.sopool", device="cpu")
    assert model.about_["seconds"] > 0


@each_folder
def test_runs_tables_and_controls_are_reported(folder, store):
    facts, infos = FACTS[folder], store.list()
    assert {info.key: info.kind for info in infos} == facts["runs"]
    assert [info.key for info in infos] == [info.config.key for info in infos]
    assert all(store.load(info.config) is not None for info in infos if info.is_complete)
    found = summarise(store)
    entries = [[one.network, one.pool, list(one.seeds), sorted(one.outcomes)] for one in found.entries]
    assert entries == facts["entries"]
    assert [one.control for one in found.controls] == facts["controls"]
    assert [one.table for one in found.reproductions] == facts["tables"]


@each_folder
def test_the_same_commands_find_their_runs(folder, store):
    before = kept(store)
    for command in FACTS[folder]["finished"]:
        call(command, store.folder)
    # A run that was trained again would have taken another time.
    assert kept(store) == before


@each_folder
def test_interrupted_runs_go_on(folder, store):
    runs = [info.config for info in store.list() if info.kind == "interrupted"]
    before = [store.load_checkpoint(config)[0] for config in runs]
    for command in FACTS[folder]["interrupted"]:
        call(command, store.folder)
    for config, checkpoint in zip(runs, before, strict=True):
        curves = store.load(config).curves
        for name in ("train_loss", "seconds"):  # the first epoch is not trained again
            assert curves[name][0] == checkpoint[f"curve_{name}"][0]
        assert np.isfinite(curves["train_loss"]).all()


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in HERE.rglob("*.graphs")])
def test_graphs_are_what_they_were(path):
    found, boxed = load_graphs(path), load(path.stem)
    boxed = boxed[: len(found)]
    assert len(found) > 0
    assert repr(found) == repr(boxed)
    assert found.tensors().keys() == boxed.tensors().keys()
    assert all(torch.equal(found.tensors()[name], tensor) for name, tensor in boxed.tensors().items())
    for name in ("classes", "node_label_names", "edge_label_names"):
        assert getattr(found, name) == getattr(boxed, name)
