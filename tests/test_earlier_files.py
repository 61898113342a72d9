"""Files of earlier versions are read as before: see fixtures/README.md."""

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sopool import GraphClassifier
from sopool.data.sources.catalogue import load
from sopool.experiments.executors.local import encoder_for
from sopool.report.store.summary import summarise
from sopool.training.bank.batching import GraphTables
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Trainer

HERE = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((HERE / "model-predictions.json").read_text())


@pytest.fixture
def store(tmp_path):
    with zipfile.ZipFile(HERE / "store.zip") as archive:
        archive.extractall(tmp_path)
    return RunStore(tmp_path)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", EXPECTED)
def test_models_predict_as_they_did(name):
    model = GraphClassifier.load(HERE / f"model-{name}.sopool", device="cpu")
    # In float32, by whatever order of additions this processor has.
    np.testing.assert_allclose(model.predict_proba(load("MUTAG"))[:8], EXPECTED[name], atol=1e-4)
    assert model.about_["data"]["name"] == "MUTAG"
    assert model.about_["seconds"] > 0  # which is no longer written


def test_runs_tables_and_controls_are_reported(store):
    infos = store.list()
    assert sorted(info.kind for info in infos) == ["finished"] * 14 + ["interrupted"] * 2
    assert all(store.load(info.config) is not None for info in infos if info.is_complete)
    found = summarise(store)
    assert [sorted(entry.outcomes) for entry in found.entries] == [["fair", "per-fold-max", "single-epoch"]]
    assert [one.control for one in found.controls] == ["majority", "size"]
    assert [one.table for one in found.reproductions] == ["table2"]


@pytest.mark.parametrize("looks", ["test", "validation"])
def test_interrupted_runs_go_on(store, looks):
    (config,) = [info.config for info in store.list() if info.kind == "interrupted" and info.config.looks == looks]
    graphs = load("MUTAG")
    tables = GraphTables.build(graphs, encoder_for(graphs, looks).transform(graphs), None)
    before = store.load_checkpoint(config)[0]["curve_train_loss"].numpy()
    Trainer(tables, store).train([config])
    run = store.load(config)
    assert run.curves["train_loss"][0] == before[0]  # the first epoch is not trained again
    assert np.isfinite(run.curves["train_loss"]).all()
