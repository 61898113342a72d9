"""Configurations hold all options of a pooling, and their keys stay what they were when a default changes."""

import json
from dataclasses import MISSING, fields, replace
from functools import partial

import numpy as np
import pytest

from sopool import GraphClassifier
from sopool.data import load
from sopool.models.config import FIRST_BLOCK_DEFAULTS, FIRST_FLAT_DEFAULTS, LATER, ModelConfig
from sopool.models.make import make_model
from sopool.nn import registry
from sopool.nn.aggr.covariance import CovarianceAggregation
from sopool.nn.pool.diff import DiffPooling
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS, default_options
from sopool.training.runs.config import LATER as RUN_LATER
from sopool.training.runs.config import RunConfig
from sopool.training.runs.files import CONFIG as FILE
from sopool.training.runs.files import read_config, write_config
from tests.helpers.runs import CONFIG

FIRST = {True: FIRST_BLOCK_DEFAULTS, False: FIRST_FLAT_DEFAULTS}
CHANGED = {
    ("sopool-m-attn", True): {"normalize": "norm"},
    ("sopool-pairs", False): {"normalize": "norm", "layers": None, "decay": 0.1},
}
"""Defaults that have changed since."""
NAMES = [(name, False) for name in (*READOUTS, *GRAPH_READOUTS)] + [(name, True) for name in POOLINGS]


@pytest.mark.parametrize(("name", "blocks"), NAMES)
def test_defaults_are_those_of_the_first_files(name, blocks):
    # When a default changes, expect the change here. The tables of first defaults are frozen.
    today = json.loads(json.dumps(default_options(name, blocks)))
    assert FIRST[blocks].get(name, {}) | CHANGED.get((name, blocks), {}) == today
    assert ModelConfig(pool=name, blocks=int(blocks)).pool_defaults == today


@pytest.mark.parametrize(("kind", "later"), [(ModelConfig, LATER), (RunConfig, RUN_LATER)])
def test_later_fields_have_the_defaults_of_the_first_files(kind, later):
    # The same holds here: a class's default may change, and these values may not.
    made = {item.name: item.default_factory() for item in fields(kind) if item.default_factory is not MISSING}
    assert {name: made[name] if name in made else getattr(kind, name) for name in later} == later


MODELS = (
    ModelConfig(pool="covpool"),
    ModelConfig(pool="covpool", pool_options={"rank": 32}),
    ModelConfig(pool="diffpool", blocks=2),
)


def test_keys_are_those_of_the_first_version():
    keys = [CONFIG.key] + [replace(CONFIG, model=model).key for model in MODELS]
    assert keys == ["4955c9fdf7189e4b", "a0f8f95e0f7b7eb3", "ccf2cf02cd533e44", "06210f6440a515ab"]


def test_all_options_are_written():
    saved = json.loads(json.dumps(replace(CONFIG, model=MODELS[0]).to_json()))
    assert saved["model"]["pool_defaults"] == {"rank": 32, "triangle": False, "normalize": None, "moments": [2]}
    assert saved["weight_decay"] == 0.0
    assert RunConfig.from_json(saved).to_json() == replace(CONFIG, model=MODELS[0]).to_json()


@pytest.fixture
def other_defaults(monkeypatch):
    """Change two defaults, as a later version may."""

    def change():
        covariance = partial(CovarianceAggregation, rank=5)
        monkeypatch.setitem(registry.READOUTS, "covpool", covariance)
        monkeypatch.setitem(registry.SHIPPED, ("covpool", False), covariance)
        assignment = partial(DiffPooling, clusters=6)
        monkeypatch.setitem(registry.POOLINGS, "diffpool", assignment)
        monkeypatch.setitem(registry.SHIPPED, ("diffpool", True), assignment)

    return change


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=["flat", "blocks"])
@pytest.mark.parametrize("version", ["first", "this"])
def test_a_changed_default_gives_new_keys_and_leaves_saved_runs(model, version, other_defaults, tmp_path):
    before = replace(CONFIG, model=model)
    folder = tmp_path / before.key
    folder.mkdir()
    (folder / FILE).write_text(json.dumps(before.canonical() if version == "first" else before.to_json()))
    shapes = [tensor.shape for tensor in make_model(model, 3, 2).parameters()]
    other_defaults()
    after = replace(CONFIG, model=ModelConfig(pool=model.pool, blocks=model.blocks))
    assert after.key != before.key
    assert [tensor.shape for tensor in make_model(after.model, 3, 2).parameters()] != shapes
    found = read_config(folder)
    assert found.key == before.key
    assert [tensor.shape for tensor in make_model(found.model, 3, 2).parameters()] == shapes
    content = (folder / FILE).read_bytes()
    write_config(folder, found)
    assert (folder / FILE).read_bytes() == content


def test_a_changed_default_leaves_saved_models(other_defaults, tmp_path):
    graphs = load("MUTAG")
    model = GraphClassifier("covpool", epochs=1, n_models=2, hidden=4, steps=2, random_state=0).fit(graphs)
    model.save(tmp_path / "model.sopool")
    expected = model.predict_proba(graphs)
    other_defaults()
    back = GraphClassifier.load(tmp_path / "model.sopool")
    np.testing.assert_allclose(back.predict_proba(graphs), expected, atol=1e-6)


def test_a_config_that_cannot_be_read_is_written_again(tmp_path):
    folder = tmp_path / CONFIG.key
    folder.mkdir()
    for content in (b"", b"{}", json.dumps(replace(CONFIG, seed=1).to_json()).encode()):
        (folder / FILE).write_bytes(content)
        write_config(folder, CONFIG)
        assert read_config(folder) == CONFIG
